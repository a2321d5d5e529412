// SimDevice: one device of a simulated machine behind ashlar::Device.
//
// Thread safety: any thread; each call takes the machine's lock.
#pragma once

#include <memory>

#include <ashlar/device/device.h>

#include "spec/gpu/sim_sharing.h"
#include "spec/gpu/stream_pool.h"

namespace ashlar::spec {

class Machine;

class SimDevice final : public device::Device {
 public:
  SimDevice(Machine& machine, std::uint32_t index)
      : machine_(&machine),
        index_(index),
        sharing_(machine, index),
        pool_(std::make_unique<StreamPool>()) {}

  device::DeviceTraits traits() const noexcept override;
  Result<Address> segment_alloc(Bytes size) noexcept override;
  Status segment_free(Address base) noexcept override;
  Result<Address> address_reserve(Bytes size, Bytes alignment) noexcept override;
  Status address_release(Address base, Bytes size) noexcept override;
  Result<PageHandle> page_create(Bytes size) noexcept override;
  Status page_release(PageHandle page) noexcept override;
  Status page_map(Address at, Bytes size, PageHandle page) noexcept override;
  Status page_access(Address at, Bytes size) noexcept override;
  Status page_unmap(Address at, Bytes size) noexcept override;
  Result<EventHandle> event_create() noexcept override;
  Status event_destroy(EventHandle event) noexcept override;
  Status event_record(EventHandle event, StreamHandle stream) noexcept override;
  Status event_query(EventHandle event) noexcept override;
  Status event_synchronize(EventHandle event, std::uint32_t timeout_ms) noexcept override;
  Status stream_wait(StreamHandle stream, EventHandle event) noexcept override;
  Result<Stream> identify(StreamHandle handle) noexcept override;
  Result<device::CaptureStatus> capture_status(StreamHandle stream) noexcept override;
  Result<device::CaptureMark> capture_mark(StreamHandle stream) noexcept override;
  Status capture_covers(StreamHandle stream, device::CaptureMark mark) noexcept override;
  Result<device::CaptureMode> exchange_capture_mode(device::CaptureMode mode) noexcept override;
  Result<device::MemoryInfo> memory_info() noexcept override;
  Result<Address> pinned_alloc(Bytes size) noexcept override;
  Status pinned_free(Address base) noexcept override;
  Status host_register(Address base, Bytes size) noexcept override;
  Status host_unregister(Address base) noexcept override;
  Result<Address> stream_alloc(Bytes size, StreamHandle stream) noexcept override;
  Status stream_free(Address base, StreamHandle stream) noexcept override;
  Status stream_trim(Bytes keep) noexcept override;
  Status synchronize() noexcept override;
  Status synchronize_for(std::uint32_t timeout_ms) noexcept override;
  device::Sharing* sharing() noexcept override { return &sharing_; }
  std::uint64_t now_ns() const noexcept override;

 private:
  /// The gate of a call of the pool, which does its work after it.
  Status enter_pool(device::CallKind kind, Bytes size) noexcept;
  /// The same for a call that names a stream: the stream.
  Result<Stream> enter_pool(device::CallKind kind, Bytes size, StreamHandle stream) noexcept;

  Machine* machine_;
  std::uint32_t index_;
  SimSharing sharing_;
  std::unique_ptr<StreamPool> pool_;  ///< of stream_alloc
};

}  // namespace ashlar::spec
