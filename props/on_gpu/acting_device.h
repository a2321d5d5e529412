// ActingDevice: a GPU as a rule case sees it: calls are made by the acting thread, and what is enqueued is an entry.
//
// Purpose: the cases of props/rules on a driver, whose answers CUDA gives no finer than they are. Where a case tells two reasons apart
// that the driver does not, the device says which of them holds: an event of another device, a range that is mapped.
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include <ashlar/device/forwarding_device.h>

#include "props/on_gpu/stream_entries.h"

namespace ashlar::props {

/// What the devices of one machine know together.
struct RuleNotes {
  std::map<EventHandle, std::uint32_t> events;  ///< whose they are
  std::set<EventHandle> recorded;
  std::map<Address, Bytes> mappings;
};

class ActingDevice final : public device::ForwardingDevice {
 public:
  /// All must outlive this. `index`: of the device.
  ActingDevice(device::Device& inner, ActingThreads& threads, StreamEntries& entries,
               RuleNotes& notes, std::uint32_t index)
      : ForwardingDevice(inner),
        threads_(threads),
        entries_(entries),
        notes_(notes),
        index_(index) {}

  Result<Address> segment_alloc(Bytes size) noexcept override {
    return threads_.run([&] { return ForwardingDevice::segment_alloc(size); });
  }
  /// A driver's waits for all work of the GPU.
  Status segment_free(Address base) noexcept override {
    entries_.open_all();
    return threads_.run([&] { return ForwardingDevice::segment_free(base); });
  }
  Result<Address> pinned_alloc(Bytes size) noexcept override {
    return threads_.run([&] { return ForwardingDevice::pinned_alloc(size); });
  }
  Status pinned_free(Address base) noexcept override {
    entries_.open_all();
    return threads_.run([&] { return ForwardingDevice::pinned_free(base); });
  }
  Status address_release(Address base, Bytes size) noexcept override;
  Status page_map(Address at, Bytes size, PageHandle page) noexcept override;
  Status page_unmap(Address at, Bytes size) noexcept override;

  Result<EventHandle> event_create() noexcept override;
  Status event_record(EventHandle event, StreamHandle stream) noexcept override;
  Status event_query(EventHandle event) noexcept override {
    return threads_.run([&] { return ForwardingDevice::event_query(event); });
  }
  /// kDeadlock, and no call, where work that the event may stand for cannot run.
  Status event_synchronize(EventHandle event, std::uint32_t timeout_ms) noexcept override;
  Status stream_wait(StreamHandle stream, EventHandle event) noexcept override;

  Result<Stream> identify(StreamHandle handle) noexcept override {
    return threads_.run([&] { return ForwardingDevice::identify(handle); });
  }
  Result<device::CaptureMode> exchange_capture_mode(device::CaptureMode mode) noexcept override {
    return threads_.run([&] { return ForwardingDevice::exchange_capture_mode(mode); });
  }
  /// As event_synchronize().
  Status synchronize() noexcept override;

 private:
  Stream named(StreamHandle handle) const {
    return {handle, StreamId{}, DeviceId{static_cast<std::int32_t>(index_)}};
  }

  ActingThreads& threads_;
  StreamEntries& entries_;
  RuleNotes& notes_;
  const std::uint32_t index_;
};

}  // namespace ashlar::props
