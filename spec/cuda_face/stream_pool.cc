#include "spec/cuda_face/stream_pool.h"

#include <algorithm>

#include "spec/cuda_face/face_calls.h"

namespace ashlar::spec::cuda_face {
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

bool is_complete(int device, EventHandle freed) {
  return machine()->device(device).event_query(freed).is_ok();
}

void end_event(int device, EventHandle freed) {
  static_cast<void>(machine()->device(device).event_destroy(freed));
}

}  // namespace

void StreamPool::refresh() {
  if (attachment_ == attachment()) return;
  held_.clear();
  freed_.clear();
  attachment_ = attachment();
}

void StreamPool::trim_freed(Bytes keep) {
  Bytes all;
  for (const auto& [at, block] : held_) all += block.size;
  for (const FreedBlock& each : freed_) all += each.block.size;
  std::erase_if(freed_, [&](const FreedBlock& each) {
    if (all <= keep || !is_complete(each.event_device, each.freed)) return false;
    if (!machine()->device(each.block.device).segment_free(each.block.at).is_ok()) return false;
    end_event(each.event_device, each.freed);
    all -= each.block.size;
    return true;
  });
}

StreamPool::Block StreamPool::take_freed(int device, Bytes size, StreamId stream) {
  auto best = freed_.end();
  for (auto each = freed_.begin(); each != freed_.end(); ++each) {
    const Block& block = each->block;
    if (block.device != device || block.size < size || block.size.count() / 2 > size.count())
      continue;
    if (best != freed_.end() && best->block.size <= block.size) continue;
    if (each->stream == stream || is_complete(each->event_device, each->freed)) best = each;
  }
  if (best == freed_.end()) return {};
  const Block taken = best->block;
  end_event(best->event_device, best->freed);
  freed_.erase(best);
  return taken;
}

Result<Address> StreamPool::allocate(device::Device& on, Bytes size, const Stream& stream) {
  constexpr std::uint64_t kGrain = 512;
  const Bytes rounded{(size.count() + kGrain - 1) / kGrain * kGrain};
  const int device = on.traits().id.value();
  const Relaxed relaxed(on);
  const MutexGuard guard(lock_);
  refresh();
  Block block = take_freed(device, rounded, stream.id);
  if (block.size == Bytes{}) {
    Result<Address> made = on.segment_alloc(rounded);
    if (made.code() == Code::kOutOfMemory) {
      trim_freed(Bytes{});
      made = on.segment_alloc(rounded);
    }
    if (!made.is_ok()) return made;
    block = {made.value(), rounded, device};
  }
  held_[block.at] = block;
  return block.at;
}

Status StreamPool::free_behind(device::Device& on, Address base, const Stream& stream) {
  const Relaxed relaxed(on);
  const MutexGuard guard(lock_);
  refresh();
  const auto at = held_.find(base);
  if (at == held_.end()) return kNotOfPool;
  const Result<EventHandle> freed = on.event_create();
  if (!freed.is_ok()) return freed.status();
  const Status recorded = on.event_record(freed.value(), stream.handle);
  if (!recorded.is_ok()) {
    static_cast<void>(on.event_destroy(freed.value()));
    return recorded;
  }
  freed_.push_back({at->second, stream.id, on.traits().id.value(), freed.value()});
  held_.erase(at);
  return Status::ok();
}

Status StreamPool::free_now(Address base) {
  const MutexGuard guard(lock_);
  refresh();
  const auto at = held_.find(base);
  if (at == held_.end()) return kNotOfPool;
  const Status freed = machine()->device(at->second.device).segment_free(at->first);
  if (freed.is_ok()) held_.erase(at);
  return freed;
}

void StreamPool::trim(Bytes keep) {
  const MutexGuard guard(lock_);
  refresh();
  if (!freed_.empty()) trim_freed(keep);
}

Result<Stream> stream_outside_captures(device::Device& on, StreamHandle stream) {
  const Result<device::CaptureStatus> asked = on.capture_status(stream);
  if (!asked.is_ok()) return asked.status();
  if (asked.value() != device::CaptureStatus::kNone)
    return Status{Code::kUnsupported, "graphs have no nodes of memory here"};
  return on.identify(stream);
}

}  // namespace ashlar::spec::cuda_face
