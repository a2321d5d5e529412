#include <ashlar/cache/reclaimer.h>

#include <algorithm>
#include <utility>

#include <ashlar/cache/device_cache.h>
#include <ashlar/cache/node_shrink.h>
#include <ashlar/cache/rounding.h>

namespace ashlar::inline v0::cache {

namespace {
/// The maximum number of heaps whose epoch a miss asks before it grows: keeps C17's bound.
constexpr unsigned kRefreshesPerMiss = 2;
/// How many heaps are looked at when a new stream's heap is made, and how many dead streams among
/// them are asked. A new stream adds at most one heap and looks at several, so forgotten heaps are
/// found faster than streams come (C29).
constexpr unsigned kHeapsLookedAtMax = 16;
constexpr unsigned kDeadAskedMax = 4;
/// The maximum number of events of a dead stream's blocks that are asked at a time.
constexpr unsigned kDeadPollsMax = 8;
/// The least and the most time that a trim may wait.
constexpr std::uint32_t kTrimWaitMinMs = 2;
/// After each of so many sweeps of a trim the least time is granted anew. After a later sweep it is
/// granted only if the event that was waited for is done: a device that takes a millisecond for each
/// of many events is waited for, one that is stuck is not.
constexpr unsigned kTrimGracesMax = 4;
constexpr std::uint32_t kTrimWaitMaxMs = 1000;
/// The maximum number of uses that are finished before the heap's lock is let go (C31): each may
/// release a block.
constexpr unsigned kFinishedPerHold = 8;
}  // namespace

Reclaimer::Reclaimer(DeviceCache& cache, SharedState& shared, Driver& driver, UseTracker& uses,
                     SegmentSupply& supply) noexcept
    : cache_(cache),
      shared_(shared),
      driver_(driver),
      supply_(supply),
      epochs_(driver, uses),
      reuse_(driver, shared.config, uses, epochs_, supply),
      release_(cache.heaps(), shared, supply, lock_) {}

Address Reclaimer::try_steal(StreamHeap& heap, const Request& request, Reach reach) noexcept {
  if (!lock_.try_lock()) return Address{};
  Address address;
  if (!shared_.is_capturing() || heap.is_reserved())
    address = reuse_.steal(cache_.heaps(), heap, request, reach, kRefreshesPerMiss);
  lock_.unlock();
  return address;
}

Result<Address> Reclaimer::reclaim(StreamHeap& heap, const Request& request, Deadline& deadline,
                                   bool* wait_ran_out) noexcept {
  BoundedWait wait(cache_, shared_, deadline, waits_, &heap);
  bool has_asked_for_destroyed = false;
  for (;; wait.wait()) {
    // A capture may be announced while this waits, or queues for the lock.
    if (shared_.is_capturing()) return kShortOfMemory;
    const ReclaimGuard reclaim(lock_);
    if (shared_.is_capturing()) return kShortOfMemory;
    if (const Status health = driver_.health(); !health.is_ok()) return health;
    // Once: each round of a wait would ask again.
    if (!std::exchange(has_asked_for_destroyed, true))
      reuse_.notice_destroyed(cache_.heaps(), heap, request);
    epochs_.sweep(cache_.heaps(), lock_);
    if (shared_.is_capturing()) return kShortOfMemory;
    wait.note_unfinished();
    const Result<Address> found = search_all(heap, request);
    if (found.code() != Code::kOutOfMemory) return found;
    // If the search found the device gone, the next round returns its error.
    if (driver_.health().is_ok() && !wait.choose()) break;
  }
  *wait_ran_out = wait.ran_out();
  return kShortOfMemory;
}

Result<Address> Reclaimer::search_all(StreamHeap& heap, const Request& request) noexcept {
  const Config& config = shared_.config;
  // Whoever reclaimed before us may have left enough: search first.
  const HostRefusals refusals;
  Address address;
  {
    const Guard guard(heap.lock);
    address = heap.search(request).value_or(Address{});
  }
  if (address.is_null() && !refusals.any())
    address = reuse_.steal(cache_.heaps(), heap, request, Reach::kAll, 0);
  if (!address.is_null()) return address;
  // What the host's memory fails no memory of the device's can help.
  if (refusals.any()) return kShortOfHostMemory;
  // Whoever reclaimed before us may have given back more than it took: ask the driver before giving
  // back ourselves.
  Result<Address> grown = supply_.grow(heap, request);
  const Bytes segment = segment_size(config, request.size).value_or(Bytes::max());
  if (grown.code() != Code::kOutOfMemory) return grown;
  // What another thread gives back while a pass lets it in counts as well (C12), and a capture that
  // it announces keeps the next pass from beginning (C9).
  std::uint64_t removals = supply_.removals();
  const auto has_more_room = [this, &removals]() ASHLAR_REQUIRES(reclaiming) {
    return std::exchange(removals, supply_.removals()) != supply_.removals();
  };
  // Just enough, the oversize first (row DEV-13); then, if the driver still refuses, all.
  Bytes back;
  if (config.max_split_size != Bytes::max())
    back = release_.release_enough(heap, segment, config.max_split_size);
  if (back < segment && !shared_.is_capturing())
    back += release_.release_enough(heap, segment - back, Bytes{});
  if (has_more_room()) grown = supply_.grow(heap, request);
  if (grown.code() != Code::kOutOfMemory || shared_.is_capturing()) return grown;
  release_.release_all();
  return has_more_room() ? supply_.grow(heap, request) : grown;
}

Status Reclaimer::trim() noexcept {
  const Status trimmed = trim_segments();
  const ReclaimGuard reclaim(lock_);
  for (StreamHeap& heap : cache_.heaps()) {
    if (shared_.is_capturing() || !driver_.health().is_ok()) break;
    shrink_nodes(heap, shared_, lock_);
  }
  return driver_.health().is_ok() ? trimmed : driver_.health();
}

Status Reclaimer::trim_segments() noexcept {
  if (const Status health = driver_.health(); !health.is_ok()) return health;
  // Work that is done is recognised whatever wait is permitted (C28): an event recorded just now,
  // or a synchronisation, takes the driver a moment to answer.
  // At most a second: a trim gives back what is idle, it is not a wait for work that is stuck.
  Deadline deadline(driver_, std::clamp(shared_.config.wait_ms, kTrimWaitMinMs, kTrimWaitMaxMs));
  const Deadline longest(driver_, kTrimWaitMaxMs);
  BoundedWait wait(cache_, shared_, deadline, waits_, nullptr);
  unsigned sweeps = 0;
  for (;; wait.wait()) {
    ASHLAR_REQUIRE(!shared_.is_capturing(), Code::kBusy, "a capture is underway");
    const ReclaimGuard reclaim(lock_);
    ASHLAR_REQUIRE(!shared_.is_capturing(), Code::kBusy, "a capture is underway");
    epochs_.sweep(cache_.heaps(), lock_);
    ASHLAR_REQUIRE(!shared_.is_capturing(), Code::kBusy, "a capture is underway");
    // From here, not from the call's entry: the sweep, or the queue for the lock, may have taken
    // long, and the events that it recorded are as new as ever.
    const bool has_progressed = wait.has_progressed() && longest.left_ms() != 0;
    if (++sweeps <= kTrimGracesMax || has_progressed) deadline.leave_ms(kTrimWaitMinMs);
    wait.note_unfinished();
    if (const Status health = driver_.health(); !health.is_ok()) return health;
    if (wait.choose()) continue;
    Status refused;
    release_.release_all(&refused);
    ASHLAR_REQUIRE(!shared_.is_capturing(), Code::kBusy, "a capture is underway");
    if (const Status health = driver_.health(); !health.is_ok()) return health;
    if (!refused.is_ok()) return refused;
    break;
  }
  ASHLAR_REQUIRE(!wait.ran_out(), Code::kNotReady,
                 "some segments stay: work that uses them is not done");
  return Status::ok();
}

void Reclaimer::shrink_to_limit() noexcept {
  if (cache_.ledger().over_limit() == Bytes{}) return;
  Deadline deadline(driver_, std::clamp(shared_.config.wait_ms, kTrimWaitMinMs, kTrimWaitMaxMs));
  BoundedWait wait(cache_, shared_, deadline, waits_, nullptr);
  for (bool is_first = true;; wait.wait(), is_first = false) {
    if (shared_.is_capturing()) return;
    const ReclaimGuard reclaim(lock_);
    if (shared_.is_capturing() || !driver_.health().is_ok()) return;
    epochs_.sweep(cache_.heaps(), lock_);
    if (shared_.is_capturing()) return;
    // From here: the sweep may have taken long, and the events that it recorded are new.
    if (is_first) deadline.leave_ms(kTrimWaitMinMs);
    wait.note_unfinished();
    release_.release_enough(cache_.ledger().over_limit());
    const bool is_within = cache_.ledger().over_limit() == Bytes{};
    if (is_within || !driver_.health().is_ok() || !wait.choose()) return;
  }
}

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

StreamHeap* Reclaimer::add_pool_heap(const Stream& stream, MemoryPoolId pool,
                                     std::vector<StreamHeap*>& others) noexcept {
  // Queues for the lock: a pool may be made for each graph, and each time without a look at forgotten
  // heaps there would be one more (C29).
  const ReclaimGuard reclaim(lock_);
  std::erase_if(others, [](StreamHeap* heap) ASHLAR_REQUIRES(reclaiming) {
    const Guard guard(heap->lock);
    const bool is_left = heap->life.is_finished() && !heap->has_segments() &&
                         heap->uses.is_empty() && heap->misses.under_way == 0;
    if (is_left) heap->membership.is_reserved.store(false);
    return is_left;
  });
  return cache_.heaps().make_for_pool(stream, pool, find_forgotten());
}

Status Reclaimer::release_reserved(std::span<StreamHeap* const> heaps) noexcept {
  const ReclaimGuard reclaim(lock_);
  const auto reserve_again = [](std::span<StreamHeap* const> some) {
    for (StreamHeap* heap : some) {
      const Guard guard(heap->lock);
      heap->membership.is_reserved.store(true);
    }
  };
  for (std::size_t i = 0; i < heaps.size(); ++i) {
    bool is_busy = false;
    {
      const Guard guard(heaps[i]->lock);
      is_busy = heaps[i]->misses.under_way != 0;
      // From now on no allocation begins in it.
      if (!is_busy) heaps[i]->membership.is_reserved.store(false);
    }
    if (!is_busy) continue;
    reserve_again(heaps.first(i));
    return {Code::kBusy, "an allocation from that pool is underway"};
  }
  for (StreamHeap* heap : heaps) {
    // nullptr if the stream's own heap has passed on: then the stream is dead and its work complete, and
    // no use is needed.
    StreamHeap* const user = cache_.heaps().find_stable(heap->stream.id);
    if (user == nullptr || heap->add_use_to_live(*user)) continue;
    reserve_again(heaps);
    return kShortOfHostMemory;
  }
  // The marks cover the stream's own work and not the launches of graphs: a synchronisation has to.
  const std::uint64_t sequence = cache_.uses().next_sequence();
  for (StreamHeap* heap : heaps) {
    heap->marks.clear(cache_.uses().events());
    heap->last_event.ask_again.reset();
    bool has_memory = false;
    {
      const Guard guard(heap->lock);
      has_memory = heap->has_segments();
      heap->clock.reopen();
      heap->life.lose_anew(sequence);
    }
    // No launch uses a heap without memory: it serves again at once.
    if (!has_memory) UseTracker::finish(*heap);
  }
  return Status::ok();
}

Status Reclaimer::check_handle(const Stream& stream) noexcept {
  ASHLAR_REQUIRE(stream.id != StreamId{}, Code::kInvalidArgument,
                 "a stream without identity: Device::identify gives it");
  ASHLAR_REQUIRE(stream.id.value() < kStreamIdEnd, Code::kInvalidArgument,
                 "a stream's identity of 2^63 or more");
  const StreamId other = cache_.heaps().find_other_of_handle(stream);
  if (other == StreamId{}) return Status::ok();
  const Result<Stream> named = driver_.identify(stream.handle);
  const bool is_dead_handle =
      named.code() == Code::kInvalidHandle || named.code() == Code::kWrongDevice;
  // Not known now. Whom the handle names is asked again before an event is recorded on it.
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

bool Reclaimer::is_unfinished(StreamHeap& heap) noexcept {
  if (!heap.life.is_finished()) return true;
  const Guard guard(heap.lock);
  return !heap.uses.is_empty();
}

std::uint64_t Reclaimer::work_left(StreamHeap& heap) noexcept {
  const Guard guard(heap.lock);
  return heap.uses.work_left();
}

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

Status Reclaimer::retire(const Stream& stream) noexcept {
  const ReclaimGuard reclaim(lock_);
  StreamHeap* heap = cache_.heaps().find_stable(stream.id);
  ASHLAR_REQUIRE(heap != nullptr, Code::kNotFound,
                 "the allocator has never seen that stream, or forgotten it");
  ASHLAR_REQUIRE(heap->life.is_alive(), Code::kInvalidHandle, "the stream is dead already");
  ASHLAR_REQUIRE(!heap->life.is_capturing(), Code::kBusy, "a capture of the stream is underway");
  heap->last_event.ask_again.reset();
  epochs_.retire(*heap);
  // Most streams are idle when they end: then their memory is in reach at once.
  if (!shared_.is_capturing()) epochs_.query(*heap);
  return Status::ok();
}

void Reclaimer::give_everything_back(bool is_settled) noexcept {
  const ReclaimGuard reclaim(lock_);
  // If this device is gone, its heaps may still hold events of another, which is not.
  for (StreamHeap& heap : cache_.heaps()) {
    // What could not be waited for is only asked; the rest stays with the device.
    if (!is_settled) epochs_.query(heap);
    heap.destroy_events();
    finish_uses_at_end(heap, is_settled);
  }
  if (driver_.health().is_ok()) release_.release_all();
}

void Reclaimer::finish_uses_at_end(StreamHeap& heap, bool is_settled) noexcept {
  const Guard guard(heap.lock);
  unsigned finished = 0;
  const auto finish = [&heap, &finished](UseNode* use) ASHLAR_REQUIRES(heap.lock) {
    // A device that could not be synchronised keeps what its streams may still touch.
    if (use->user->cache.is_settled()) heap.finish_use(use);
    if (++finished % kFinishedPerHold == 0) heap.lock.let_others_in();
  };
  for (UseNode* queue = nullptr; heap.uses.queues().take(&queue, 1) != 0;) {
    while (queue != nullptr) finish(std::exchange(queue, queue->next));
  }
  for (UseNode* list = heap.uses.take_unrecorded(kEverything); list != nullptr;) {
    finish(std::exchange(list, list->next));
  }
  if (!is_settled) return;
  heap.clock.complete(kEverything);
  heap.membership.is_reserved.store(false);
}

const char* Reclaimer::validate() const noexcept {
  const ReclaimGuard reclaim(lock_);
  for (StreamHeap& heap : cache_.heaps()) {
    if (const char* broken = heap.marks.validate()) return broken;
  }
  return nullptr;
}

void Reclaimer::reset_counts() noexcept {
  waits_.store(0, std::memory_order_relaxed);
  reuse_.reset_steals();
}

}  // namespace ashlar::inline v0::cache
