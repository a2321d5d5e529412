// ImmediateDevice: the streams and events of a device whose work is done when the call that does it returns.
//
// Purpose: the base of devices that have memory and no queues of work: page-locked memory of the host
// (pinned/pinned_space.h), a device that costs nothing (the tool's). What is left to them is memory.
// Thread safety: every member from any thread (an atomic counter).
//
// Every event is complete, every wait returns at once, and no stream captures. Streams are numbers: stream(n)
// has handle and identity n + 1. Handles are not checked (D7 permits that), and none is used twice. The
// device has no virtual memory.
#pragma once

#include <atomic>

#include <ashlar/device/device.h>

namespace ashlar::inline v0::device {

/// A device without queues of work. See the head of this file.
class ImmediateDevice : public Device {
 public:
  /// The device with that ordinal.
  explicit ImmediateDevice(DeviceId id) noexcept : id_(id) {}
  ImmediateDevice(const ImmediateDevice&) = delete;
  ImmediateDevice& operator=(const ImmediateDevice&) = delete;

  /// Its ordinal.
  DeviceId id() const noexcept { return id_; }
  /// The stream with that number.
  Stream stream(std::uint64_t number) const noexcept {
    return {StreamHandle{number + 1}, StreamId{number + 1}, id_};
  }

  DeviceTraits traits() const noexcept override {
    DeviceTraits traits;
    traits.id = id_;
    return traits;
  }

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
  Result<CaptureStatus> capture_status(StreamHandle) noexcept override {
    return CaptureStatus::kNone;
  }
  Result<CaptureMode> exchange_capture_mode(CaptureMode) noexcept override {
    return CaptureMode::kGlobal;
  }
  Status synchronize() noexcept override { return Status::ok(); }
  Status synchronize_for(std::uint32_t) noexcept override { return Status::ok(); }

 private:
  static Status unsupported() noexcept {
    return {Code::kUnsupported, "the device has no virtual memory"};
  }

  const DeviceId id_;
  std::atomic<std::uint64_t> next_event_{1};
};

}  // namespace ashlar::inline v0::device
