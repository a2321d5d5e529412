// OrderLog: forwards all calls to another device, and logs in order those that order streams or
// that take and return segments.
//
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <vector>

#include <ashlar/device/forwarding_device.h>

namespace ashlar::props {

class OrderLog final : public device::ForwardingDevice {
 public:
  enum class Kind : std::uint8_t { kRecord, kWait, kGrant, kReturn };
  struct Entry {
    Kind kind;
    std::uint64_t what;   ///< the event's handle, or the segment's base
    StreamHandle stream;  ///< the stream of a record or a wait
  };

  using ForwardingDevice::ForwardingDevice;

  const std::vector<Entry>& entries() const { return entries_; }
  void clear() { entries_.clear(); }

  Result<Address> segment_alloc(Bytes size) noexcept override {
    const Result<Address> got = ForwardingDevice::segment_alloc(size);
    if (got.is_ok()) entries_.push_back({Kind::kGrant, got.value().value(), {}});
    return got;
  }
  Status segment_free(Address base) noexcept override {
    return note(ForwardingDevice::segment_free(base), {Kind::kReturn, base.value(), {}});
  }
  Status event_record(EventHandle event, StreamHandle stream) noexcept override {
    return note(ForwardingDevice::event_record(event, stream),
                {Kind::kRecord, event.value(), stream});
  }
  Status stream_wait(StreamHandle stream, EventHandle event) noexcept override {
    return note(ForwardingDevice::stream_wait(stream, event), {Kind::kWait, event.value(), stream});
  }

 private:
  Status note(Status done, const Entry& entry) {
    if (done.is_ok()) entries_.push_back(entry);
    return done;
  }

  std::vector<Entry> entries_;
};

}  // namespace ashlar::props
