#include "props/on_gpu/acting_device.h"

#include <algorithm>

namespace ashlar::props {

Status ActingDevice::address_release(Address base, Bytes size) noexcept {
  const Status done = ForwardingDevice::address_release(base, size);
  const auto first = notes_.mappings.lower_bound(base);
  const bool is_mapped = first != notes_.mappings.end() && first->first < base + size;
  if (!done.is_ok() && is_mapped) return {Code::kBusy, "refused, with a mapping in the range"};
  return done;
}

Status ActingDevice::page_map(Address at, Bytes size, PageHandle page) noexcept {
  const Status done = ForwardingDevice::page_map(at, size, page);
  if (done.is_ok()) notes_.mappings[at] = size;
  // Of a rule's machine kUnsupported would mean that it cannot run the case.
  if (done.code() == Code::kUnsupported)
    return {Code::kDriverError, "the driver answers that this is not supported"};
  return done;
}

Status ActingDevice::page_unmap(Address at, Bytes size) noexcept {
  const Status done = ForwardingDevice::page_unmap(at, size);
  if (!done.is_ok()) return done;
  const auto end = notes_.mappings.lower_bound(at + size);
  notes_.mappings.erase(notes_.mappings.lower_bound(at), end);
  return done;
}

Result<EventHandle> ActingDevice::event_create() noexcept {
  const Result<EventHandle> made = ForwardingDevice::event_create();
  if (!made.is_ok()) return made;
  notes_.events[made.value()] = index_;
  notes_.recorded.erase(made.value());  // a dead event's handle may come back
  return made;
}

Status ActingDevice::event_record(EventHandle event, StreamHandle stream) noexcept {
  const Status done = entries_.enqueue(
      named(stream), [&] { return ForwardingDevice::event_record(event, stream); });
  if (done.is_ok()) notes_.recorded.insert(event);
  if (done.code() == Code::kInvalidHandle && notes_.events[event] != index_)
    return {Code::kWrongDevice, "refused, with an event of another device"};
  return done;
}

Status ActingDevice::event_synchronize(EventHandle event, std::uint32_t timeout_ms) noexcept {
  if (timeout_ms != device::kWaitForever) {
    entries_.open_all();
    return threads_.run([&] { return ForwardingDevice::event_synchronize(event, timeout_ms); });
  }
  if (const Status settled = entries_.settle(); !settled.is_ok()) return settled;
  return threads_.run([&] { return ForwardingDevice::event_synchronize(event, timeout_ms); });
}

Status ActingDevice::stream_wait(StreamHandle stream, EventHandle event) noexcept {
  const auto wait = [&] { return ForwardingDevice::stream_wait(stream, event); };
  // A wait for an event that was never recorded is no entry.
  if (notes_.recorded.count(event) == 0) return threads_.run(wait);
  return entries_.enqueue(named(stream), wait);
}

Status ActingDevice::synchronize() noexcept {
  if (const Status settled = entries_.settle(index_); !settled.is_ok()) return settled;
  return threads_.run([&] { return ForwardingDevice::synchronize(); });
}

}  // namespace ashlar::props
