#include "spec/gpu/stream_pool.h"

#include <algorithm>

namespace ashlar::spec {
namespace {

constexpr Status kNotOfPool{Code::kInvalidArgument, "no memory of the pool begins there"};

/// The thread's calls are permitted while another stream captures.
class Relaxed {
 public:
  explicit Relaxed(device::Device& on)
      : on_(on), before_(on.exchange_capture_mode(device::CaptureMode::kRelaxed)) {}
  ~Relaxed() {
    if (before_.is_ok()) static_cast<void>(on_.exchange_capture_mode(before_.value()));
  }
  Relaxed(const Relaxed&) = delete;
  Relaxed& operator=(const Relaxed&) = delete;

 private:
  device::Device& on_;
  const Result<device::CaptureMode> before_;
};

}  // namespace

StreamPool::FreedBlock StreamPool::take_complete(Bytes keep) {
  const MutexGuard guard(lock_);
  if (use_.reserved <= keep) return {};
  const auto done = std::find_if(freed_.begin(), freed_.end(), [](const FreedBlock& each) {
    return each.event_device->event_query(each.freed).is_ok();
  });
  if (done == freed_.end()) return {};
  const FreedBlock taken = *done;
  freed_.erase(done);
  use_.reserved -= taken.block.size;
  return taken;
}

void StreamPool::hold(const Block& block) {
  held_[block.at] = block;
  use_.used += block.size;
  use_.used_peak = std::max(use_.used_peak, use_.used);
}

StreamPool::Block StreamPool::take_freed(const device::Device& on, Bytes size, StreamId stream,
                                         bool reuses_complete) {
  const MutexGuard guard(lock_);
  const auto found = std::find_if(freed_.begin(), freed_.end(), [&](const FreedBlock& each) {
    return each.block.device == &on && each.block.size == size &&
           (each.stream == stream ||
            (reuses_complete && each.event_device->event_query(each.freed).is_ok()));
  });
  if (found == freed_.end()) return {};
  const FreedBlock taken = *found;
  freed_.erase(found);
  hold(taken.block);
  static_cast<void>(taken.event_device->event_destroy(taken.freed));
  return taken.block;
}

Result<Address> StreamPool::allocate(device::Device& on, Bytes size, const Stream& stream,
                                     Limits limits) {
  const Relaxed relaxed(on);
  const Block block = take_freed(on, size, stream.id, limits.reuses_complete);
  if (block.device != nullptr) return block.at;
  const bool has_place = size <= limits.size_max;
  if (has_place) trim(limits.size_max - size);
  if (!has_place || use().reserved > limits.size_max - size)
    return Status{Code::kOutOfMemory, "the pool may not have more memory"};
  Result<Address> made = on.segment_alloc(size);
  if (made.code() == Code::kOutOfMemory) {
    trim(Bytes{});
    made = on.segment_alloc(size);
  }
  if (made.is_ok()) put_back({made.value(), size, &on});
  return made;
}

Status StreamPool::free_behind(device::Device& on, Address base, const Stream& stream) {
  const Relaxed relaxed(on);
  const MutexGuard guard(lock_);
  const auto at = held_.find(base);
  if (at == held_.end()) return kNotOfPool;
  const Result<EventHandle> freed = on.event_create();
  if (!freed.is_ok()) return freed.status();
  const Status recorded = on.event_record(freed.value(), stream.handle);
  if (!recorded.is_ok()) {
    static_cast<void>(on.event_destroy(freed.value()));
    return recorded;
  }
  freed_.push_back({at->second, stream.id, &on, freed.value()});
  use_.used -= at->second.size;
  held_.erase(at);
  return Status::ok();
}

Status StreamPool::free_now(Address base) {
  const Block block = take(base);
  if (block.device == nullptr) return kNotOfPool;
  const Status freed = block.device->segment_free(base);
  if (!freed.is_ok()) put_back(block);
  return freed;
}

StreamPool::Block StreamPool::take(Address base) {
  const MutexGuard guard(lock_);
  const auto at = held_.find(base);
  if (at == held_.end()) return {};
  const Block taken = at->second;
  held_.erase(at);
  use_.used -= taken.size;
  use_.reserved -= taken.size;
  return taken;
}

void StreamPool::put_back(const Block& block) {
  const MutexGuard guard(lock_);
  hold(block);
  use_.reserved += block.size;
  use_.reserved_peak = std::max(use_.reserved_peak, use_.reserved);
}

void StreamPool::trim(Bytes keep) {
  for (FreedBlock next = take_complete(keep); next.block.device != nullptr;
       next = take_complete(keep)) {
    if (!next.block.device->segment_free(next.block.at).is_ok()) {
      const MutexGuard guard(lock_);
      freed_.push_back(next);
      use_.reserved += next.block.size;
      return;
    }
    static_cast<void>(next.event_device->event_destroy(next.freed));
  }
}

StreamPool::Use StreamPool::use() const {
  const MutexGuard guard(lock_);
  return use_;
}

void StreamPool::reset_used_peak() {
  const MutexGuard guard(lock_);
  use_.used_peak = use_.used;
}

void StreamPool::reset_reserved_peak() {
  const MutexGuard guard(lock_);
  use_.reserved_peak = use_.reserved;
}

Result<Stream> stream_outside_captures(device::Device& on, StreamHandle stream) {
  const Result<device::CaptureStatus> asked = on.capture_status(stream);
  if (!asked.is_ok()) return asked.status();
  if (asked.value() != device::CaptureStatus::kNone)
    return Status{Code::kUnsupported, "graphs have no nodes of memory here"};
  return on.identify(stream);
}

}  // namespace ashlar::spec
