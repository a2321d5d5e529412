// NullDevice: a device that costs nothing and never runs out, to time an allocator alone.
//
// Purpose: addresses come from a counter, events are complete at once, and every call succeeds
// except those of virtual memory, which give kUnsupported. It checks nothing: trace runs and
// benchmarks use it to time an allocator that ran on a checked device before.
// Thread safety: every member from any thread (two atomic counters).
#pragma once

#include <atomic>

#include <ashlar/device/device.h>

namespace ashlar::tool {

class NullDevice : public device::Device {
 public:
  explicit NullDevice(DeviceId id = DeviceId{0}) : id_(id) {}

  /// The stream with that number: handle and identity are the number plus one.
  Stream stream(std::uint64_t number) const {
    return {StreamHandle{number + 1}, StreamId{number + 1}, id_};
  }

  device::DeviceTraits traits() const noexcept override {
    device::DeviceTraits traits;
    traits.id = id_;
    return traits;
  }
  Result<Address> segment_alloc(Bytes size) noexcept override {
    const std::uint64_t span = (size.count() + kSpacing - 1) / kSpacing * kSpacing;
    return Address{next_address_.fetch_add(span, std::memory_order_relaxed)};
  }
  Status segment_free(Address) noexcept override { return Status::ok(); }

  Result<Address> address_reserve(Bytes, Bytes) noexcept override { return unsupported(); }
  Status address_release(Address, Bytes) noexcept override { return unsupported(); }
  Result<PageHandle> page_create(Bytes) noexcept override { return unsupported(); }
  Status page_release(PageHandle) noexcept override { return unsupported(); }
  Status page_map(Address, Bytes, PageHandle) noexcept override { return unsupported(); }
  Status page_access(Address, Bytes) noexcept override { return unsupported(); }
  Status page_unmap(Address, Bytes) noexcept override { return unsupported(); }

  Result<EventHandle> event_create() noexcept override {
    return EventHandle{next_event_.fetch_add(1, std::memory_order_relaxed)};
  }
  Status event_destroy(EventHandle) noexcept override { return Status::ok(); }
  Status event_record(EventHandle, StreamHandle) noexcept override { return Status::ok(); }
  Status event_query(EventHandle) noexcept override { return Status::ok(); }
  Status event_synchronize(EventHandle, std::uint32_t) noexcept override { return Status::ok(); }
  Status stream_wait(StreamHandle, EventHandle) noexcept override { return Status::ok(); }

  Result<Stream> identify(StreamHandle handle) noexcept override {
    return Stream{handle, StreamId{handle.value()}, id_};
  }
  Result<device::CaptureStatus> capture_status(StreamHandle) noexcept override {
    return device::CaptureStatus::kNone;
  }
  Result<device::CaptureMode> exchange_capture_mode(device::CaptureMode) noexcept override {
    return device::CaptureMode::kGlobal;
  }

  Result<device::MemoryInfo> memory_info() noexcept override {
    return device::MemoryInfo{kMemory, kMemory};
  }
  Result<Address> pinned_alloc(Bytes size) noexcept override { return segment_alloc(size); }
  Status pinned_free(Address) noexcept override { return Status::ok(); }
  Status synchronize() noexcept override { return Status::ok(); }
  Status synchronize_for(std::uint32_t) noexcept override { return Status::ok(); }

 private:
  static constexpr std::uint64_t kSpacing = std::uint64_t{2} << 20;
  static constexpr Bytes kMemory{std::uint64_t{1} << 50};
  static Status unsupported() { return {Code::kUnsupported, "NullDevice: no virtual memory"}; }

  const DeviceId id_;
  std::atomic<std::uint64_t> next_address_{std::uint64_t{1} << 40};
  std::atomic<std::uint64_t> next_event_{1};
};

}  // namespace ashlar::tool
