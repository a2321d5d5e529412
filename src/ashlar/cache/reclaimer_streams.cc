// The part of Reclaimer that makes heaps, passes on those of dead streams, retires streams, and gives memory
// pools their heaps. The other part: reclaimer.cc.
#include <ashlar/cache/reclaimer.h>

#include <utility>
#include <vector>

#include <ashlar/cache/device_cache.h>
#include <ashlar/cache/pool_layout.h>

namespace ashlar::inline v0::cache {

namespace {
/// How many heaps are looked at when a new stream's heap is made, and how many dead streams among
/// them are asked. A new stream adds at most one heap and looks at several, so forgotten heaps are
/// found faster than streams come (C29).
constexpr unsigned kHeapsLookedAtMax = 16;
constexpr unsigned kDeadAskedMax = 4;
/// The maximum number of events of a dead stream's blocks that are asked at a time.
constexpr unsigned kDeadPollsMax = 8;
/// Is work of the dead stream, or of others with its blocks, not known complete?
bool is_unfinished(StreamHeap& heap) noexcept ASHLAR_EXCLUDES(heap.lock) {
  if (!heap.life.is_finished()) return true;
  const Guard guard(heap.lock);
  return !heap.uses.is_empty();
}

}  // namespace

Result<StreamHeap*> Reclaimer::make_heap(const Stream& stream) noexcept {
  if (const Status alive = check_handle(stream); !alive.is_ok()) return alive;
  ask_some_dead();
  StreamHeap* heap = add_heap(stream);
  if (heap == nullptr) return kShortOfHostMemory;
  return heap;
}

Result<StreamHeap*> Reclaimer::make_user(const Stream& stream, Status alive) noexcept {
  if (alive.code() == Code::kInvalidArgument) return alive;
  StreamHeap* heap = add_heap(stream);
  if (heap == nullptr) return kShortOfHostMemory;
  // By its identity: the heap may be another stream's by now.
  if (!alive.is_ok()) cache_.heaps().lose(stream.id, cache_.uses().next_sequence());
  return heap;
}

Status Reclaimer::ask_before(const Stream& stream) noexcept {
  const Status alive = check_handle(stream);
  if (alive.code() != Code::kInvalidArgument) ask_some_dead();
  return alive;
}

void Reclaimer::ask_some_dead() noexcept {
  if (!lock_.try_lock()) return;
  look_for_forgotten();
  lock_.unlock();
}

StreamHeap* Reclaimer::add_heap(const Stream& stream) noexcept {
  // A dead stream's heap is reassigned only if no other thread holds the lock, because that one may
  // be at work on the heap. Without reassigning there would be as many heaps as there ever were
  // streams.
  if (!lock_.try_lock()) return cache_.heaps().get_or_make(stream);
  StreamHeap* heap = cache_.heaps().get_or_make(stream, find_forgotten());
  lock_.unlock();
  return heap;
}

Result<StreamHeap*> Reclaimer::add_pool_heap(StreamHeap& own, const Stream& stream,
                                             MemoryPoolId pool, const MemoryPoolOptions& options,
                                             std::vector<StreamHeap*>& others) noexcept {
  // Under the lock: a pool may be made for each graph, and each time without a look at forgotten heaps
  // there would be one more (C29).
  if (const Status served = check_serves(own, stream); !served.is_ok()) return served;
  std::erase_if(others, [](StreamHeap* heap) ASHLAR_REQUIRES(reclaiming) {
    const Guard guard(heap->lock);
    const bool is_left = heap->life.is_finished() && !heap->has_memory() && heap->uses.is_empty() &&
                         heap->misses.under_way == 0;
    if (is_left) heap->membership.is_reserved.store(false);
    return is_left;
  });
  StreamHeap* const made = cache_.heaps().make_for_pool(stream, pool, options, find_forgotten());
  if (made == nullptr) return kShortOfHostMemory;
  return made;
}

void Reclaimer::resume(std::span<StreamHeap* const> heaps) noexcept {
  for (StreamHeap* heap : heaps) {
    const Guard guard(heap->lock);
    heap->membership.is_suspended.store(false);
  }
}

Status Reclaimer::suspend(std::span<StreamHeap* const> heaps) noexcept {
  for (std::size_t i = 0; i < heaps.size(); ++i) {
    bool is_busy = false;
    {
      const Guard guard(heaps[i]->lock);
      is_busy = heaps[i]->misses.under_way != 0;
      if (!is_busy) heaps[i]->membership.is_suspended.store(true);
    }
    if (!is_busy) continue;
    resume(heaps.first(i));
    return {Code::kBusy, "an allocation from that pool is underway"};
  }
  return Status::ok();
}

void Reclaimer::lose_anew(StreamHeap& heap, std::uint64_t sequence) noexcept {
  heap.marks.clear(cache_.uses().events());
  heap.last_event.ask_again.reset();
  const Guard guard(heap.lock);
  heap.clock.reopen();
  heap.life.lose_anew(sequence);
}

bool Reclaimer::add_own_uses(std::span<StreamHeap* const> heaps) noexcept {
  // nullptr if the stream's own heap has passed on: then the stream is dead and its work complete, and
  // no use is needed.
  const auto user_of = [this](const StreamHeap& heap) {
    return cache_.heaps().find_stable(heap.stream.id);
  };
  for (std::size_t i = 0; i < heaps.size(); ++i) {
    StreamHeap* const user = user_of(*heaps[i]);
    // The reference: it must not pass on while the walk lets go of the lock.
    if (user == nullptr || !user->life.refer()) continue;
    const bool is_added = heaps[i]->change_live_uses(*user, LiveUses::kAdd, &lock_);
    user->life.drop_reference();
    if (is_added) continue;
    // C13. While its pool was in use no block had such a use (StreamHeap::has_use).
    for (StreamHeap* heap : heaps.first(i + 1)) {
      if (StreamHeap* const added = user_of(*heap))
        heap->change_live_uses(*added, LiveUses::kDrop, &lock_);
    }
    return false;
  }
  return true;
}

bool change_body_uses(DeviceCache& cache, StreamHeap& body, LiveUses change) noexcept {
  const ReclaimGuard reclaim(cache.reclaimer().lock());
  for (StreamHeap& heap : cache.heaps()) {
    const bool is_meant =
        heap.is_reserved() && (change != LiveUses::kAddOfBody || is_in_order_of(heap, body));
    if (is_meant && !heap.change_live_uses(body, change, nullptr)) return false;
  }
  return true;
}

Status Reclaimer::release_reserved(std::span<StreamHeap* const> heaps,
                                   bool may_have_graphs) noexcept {
  const ReclaimGuard reclaim(lock_);
  if (const Status suspended = suspend(heaps); !suspended.is_ok()) return suspended;
  if (!add_own_uses(heaps)) {
    resume(heaps);
    return kShortOfHostMemory;
  }
  // The marks cover the stream's own work and not the launches of graphs: a synchronisation has to.
  const std::uint64_t sequence = cache_.uses().next_sequence();
  for (StreamHeap* heap : heaps) {
    bool has_memory = false;
    {
      const Guard guard(heap->lock);
      has_memory = heap->has_memory();
    }
    if (has_memory && !may_have_graphs) {
      if (heap->life.is_alive()) retire(*heap);
      continue;
    }
    lose_anew(*heap, sequence);
    // No launch uses a heap without memory: it serves again at once.
    if (!has_memory) UseTracker::finish(*heap);
  }
  for (StreamHeap* heap : heaps) {
    const Guard guard(heap->lock);
    heap->membership.is_reserved.store(false);
    heap->membership.is_suspended.store(false);
  }
  return Status::ok();
}

Status Reclaimer::read_reserved(std::span<StreamHeap* const> heaps,
                                std::vector<CheckpointBlock>* out) noexcept {
  {
    const ReclaimGuard reclaim(lock_);
    if (const Status suspended = suspend(heaps); !suspended.is_ok()) return suspended;
  }
  PoolLayout layout(heaps);
  const Status read = layout.read();  // without the lock: it may be long (C30)
  {
    const ReclaimGuard reclaim(lock_);
    resume(heaps);
  }
  if (read.is_ok()) *out = std::move(layout).take_live();
  return read;
}

Status Reclaimer::restore_reserved(std::span<StreamHeap* const> heaps,
                                   std::span<const CheckpointBlock> target,
                                   RestoredPool* out) noexcept {
  {
    const ReclaimGuard reclaim(lock_);
    ASHLAR_REQUIRE(shared_.bodies.count.load() == 0, Code::kBusy,
                   "the body of a conditional is being captured");
    for (StreamHeap* heap : heaps) {
      if (shared_.is_capturing() || !epochs_.ask_for_uses(*heap, lock_)) break;
    }
    if (const Status suspended = suspend(heaps); !suspended.is_ok()) return suspended;
  }
  PoolLayout layout(heaps);
  Status restored = layout.read();  // without the lock: it may be long (C30)
  if (restored.is_ok()) restored = layout.check_replaceable();
  const ReclaimGuard reclaim(lock_);
  if (restored.is_ok()) restored = layout.replace(target, out);
  for (StreamHeap* heap : heaps) note_freed(*heap);
  resume(heaps);
  return restored;
}

Status Reclaimer::check_handle(const Stream& stream) noexcept {
  ASHLAR_REQUIRE(stream.id != StreamId{}, Code::kInvalidArgument,
                 "a stream without identity: Device::identify gives it");
  ASHLAR_REQUIRE(stream.id.value() < kStreamIdEnd, Code::kInvalidArgument,
                 "a stream's identity of 2^63 or more");
  const StreamId other = cache_.heaps().find_other_of_handle(stream);
  if (other == StreamId{}) return Status::ok();
  const BlockingCallScope call(shared_);  // the announcement of a capture waits for the answer
  const Result<Stream> named = cache_.uses().identify(stream.handle);
  const bool is_dead_handle =
      named.code() == Code::kInvalidHandle || named.code() == Code::kWrongDevice;
  // Not known now, perhaps because the stream captures. Whom the handle names is asked again before an
  // event is recorded on it.
  if (!named.is_ok() && !is_dead_handle) return Status::ok();
  if (is_dead_handle || named.value().id != other) {
    cache_.heaps().lose(other, cache_.uses().next_sequence());
  }
  ASHLAR_REQUIRE(named.is_ok() && named.value().id == stream.id, Code::kInvalidHandle,
                 "the stream was destroyed: its handle names another stream, or none");
  return Status::ok();
}

StreamHeap* Reclaimer::find_forgotten() noexcept {
  while (forgotten_count_ > 0) {
    StreamHeap* const heap = forgotten_[--forgotten_count_];
    const Guard guard(heap->lock);
    if (heap->is_forgotten()) return heap;  // not if it serves another stream by now
  }
  return nullptr;
}

void Reclaimer::look_for_forgotten() noexcept {
  ++searches_;
  const bool is_capturing = shared_.is_capturing();
  unsigned asks_left = is_capturing ? 0 : kDeadAskedMax;
  // Goes on when it has found one: otherwise, while there are enough forgotten heaps, nobody would
  // ask for the memory of those that died since.
  for (unsigned looks = 0; looks < kHeapsLookedAtMax; ++looks) {
    StreamHeap* const heap = cache_.heaps().next_after(looked_at_);
    if (heap == nullptr) return;
    const bool is_alive = heap->life.is_alive();
    if (!is_alive && is_unfinished(*heap) && heap->last_event.ask_again.is_due(searches_)) {
      if (asks_left == 0 && !is_capturing) return;  // the next new stream asks from here on
      if (asks_left > 0) ask_dead(*heap);
      asks_left -= asks_left > 0;
    }
    looked_at_ = heap;
    if (is_alive || forgotten_count_ == forgotten_.size()) continue;
    const Guard guard(heap->lock);
    if (heap->is_forgotten()) forgotten_[forgotten_count_++] = heap;
  }
}

namespace {

/// PendingUses::work_left of the heap.
std::uint64_t work_left(StreamHeap& heap) noexcept ASHLAR_EXCLUDES(heap.lock) {
  const Guard guard(heap.lock);
  return heap.uses.work_left();
}

}  // namespace

void Reclaimer::ask_dead(StreamHeap& heap) noexcept {
  epochs_.query(heap);
  if (heap.life.state() == StreamLife::State::kLost) {
    cache_.uses().ask_whether_done();
    epochs_.query(heap);
  }
  // Nobody allocates on a dead stream: what other streams still did with its blocks is asked here.
  const std::uint64_t left_before = work_left(heap);
  UseTracker::ask_for_unrecorded(heap, 1);
  UseTracker::retry_unrecorded(heap, kDeadPollsMax);
  {
    const Guard guard(heap.lock);
    static_cast<void>(cache_.uses().poll(heap, kDeadPollsMax));
  }
  const bool has_progressed = work_left(heap) < left_before;
  if (!has_progressed && is_unfinished(heap)) heap.last_event.ask_again.postpone(searches_);
}

void Reclaimer::retire(StreamHeap& heap) noexcept {
  heap.last_event.ask_again.reset();
  epochs_.retire(heap);
  // Most streams are idle when they end: then their memory is in reach at once.
  if (!shared_.is_capturing()) epochs_.query(heap);
}

Status Reclaimer::retire(const Stream& stream) noexcept {
  const ReclaimGuard reclaim(lock_);
  StreamHeap* heap = cache_.heaps().find_stable(stream.id);
  ASHLAR_REQUIRE(heap != nullptr, Code::kNotFound,
                 "the allocator has never seen that stream, or forgotten it");
  ASHLAR_REQUIRE(heap->life.is_alive(), Code::kInvalidHandle, "the stream is dead already");
  ASHLAR_REQUIRE(!heap->life.is_capturing(), Code::kBusy, "a capture of the stream is underway");
  retire(*heap);
  // Those of memory pools. None passes on meanwhile, and add_pool_heap() makes no more.
  for (StreamHeap& other : cache_.heaps()) {
    if (other.stream.id == stream.id && other.life.is_alive()) retire(other);
  }
  return Status::ok();
}

}  // namespace ashlar::inline v0::cache
