// MeteredDevice: counts the calls to another device and adds up what they would cost by a cost model.
//
// Thread safety: one thread.
#pragma once

#include <ashlar/device/device.h>

#include "spec/gpu/cost_model.h"

namespace ashlar::tool {

class MeteredDevice final : public device::Device {
 public:
  /// `device` must outlive this.
  explicit MeteredDevice(device::Device& device) : device_(device) {}
  const spec::CallAccount& account() const { return account_; }

  device::DeviceTraits traits() const noexcept override { return device_.traits(); }
  Result<Address> segment_alloc(Bytes size) noexcept override {
    return charge(device::CallKind::kSegmentAlloc, size), device_.segment_alloc(size);
  }
  Status segment_free(Address base) noexcept override {
    return charge(device::CallKind::kSegmentFree), device_.segment_free(base);
  }
  Result<Address> address_reserve(Bytes size, Bytes alignment) noexcept override {
    return charge(device::CallKind::kAddressReserve, size),
           device_.address_reserve(size, alignment);
  }
  Status address_release(Address base, Bytes size) noexcept override {
    return charge(device::CallKind::kAddressRelease, size), device_.address_release(base, size);
  }
  Result<PageHandle> page_create(Bytes size) noexcept override {
    return charge(device::CallKind::kPageCreate, size), device_.page_create(size);
  }
  Status page_release(PageHandle page) noexcept override {
    return charge(device::CallKind::kPageRelease), device_.page_release(page);
  }
  Status page_map(Address at, Bytes size, PageHandle page) noexcept override {
    return charge(device::CallKind::kPageMap, size), device_.page_map(at, size, page);
  }
  Status page_access(Address at, Bytes size) noexcept override {
    return charge(device::CallKind::kPageAccess, size), device_.page_access(at, size);
  }
  Status page_unmap(Address at, Bytes size) noexcept override {
    return charge(device::CallKind::kPageUnmap, size), device_.page_unmap(at, size);
  }
  Result<EventHandle> event_create() noexcept override {
    return charge(device::CallKind::kEventCreate), device_.event_create();
  }
  Status event_destroy(EventHandle event) noexcept override {
    return charge(device::CallKind::kEventDestroy), device_.event_destroy(event);
  }
  Status event_record(EventHandle event, StreamHandle stream) noexcept override {
    return charge(device::CallKind::kEventRecord), device_.event_record(event, stream);
  }
  Status event_query(EventHandle event) noexcept override {
    return charge(device::CallKind::kEventQuery), device_.event_query(event);
  }
  Status event_synchronize(EventHandle event, std::uint32_t timeout_ms) noexcept override {
    return charge(device::CallKind::kEventSynchronize),
           device_.event_synchronize(event, timeout_ms);
  }
  Status stream_wait(StreamHandle stream, EventHandle event) noexcept override {
    return charge(device::CallKind::kStreamWait), device_.stream_wait(stream, event);
  }
  Result<Stream> identify(StreamHandle handle) noexcept override {
    return charge(device::CallKind::kIdentify), device_.identify(handle);
  }
  Result<device::CaptureStatus> capture_status(StreamHandle stream) noexcept override {
    return charge(device::CallKind::kCaptureStatus), device_.capture_status(stream);
  }
  Result<device::CaptureMode> exchange_capture_mode(device::CaptureMode mode) noexcept override {
    return charge(device::CallKind::kExchangeCaptureMode), device_.exchange_capture_mode(mode);
  }
  Result<device::MemoryInfo> memory_info() noexcept override {
    return charge(device::CallKind::kMemoryInfo), device_.memory_info();
  }
  Result<Address> pinned_alloc(Bytes size) noexcept override {
    return charge(device::CallKind::kPinnedAlloc, size), device_.pinned_alloc(size);
  }
  Status pinned_free(Address base) noexcept override {
    return charge(device::CallKind::kPinnedFree), device_.pinned_free(base);
  }
  Status synchronize() noexcept override {
    return charge(device::CallKind::kSynchronize), device_.synchronize();
  }

 private:
  void charge(device::CallKind kind, Bytes size = 0_B) noexcept {
    account_.charge(kind, model_.of(kind, size));
  }

  device::Device& device_;
  const spec::CostModel model_;
  spec::CallAccount account_;
};

}  // namespace ashlar::tool
