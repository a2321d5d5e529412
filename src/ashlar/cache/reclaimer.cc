#include <ashlar/cache/reclaimer.h>

#include <algorithm>
#include <utility>

#include <ashlar/cache/device_cache.h>
#include <ashlar/cache/node_shrink.h>
#include <ashlar/cache/nvtx_ranges.h>
#include <ashlar/cache/rounding.h>

namespace ashlar::inline v0::cache {

namespace {
/// The maximum number of heaps whose epoch a miss asks before it grows: keeps C17's bound.
constexpr unsigned kRefreshesPerMiss = 2;
/// The least and the most time that a trim may wait.
constexpr std::uint32_t kTrimWaitMinMs = 2;
constexpr std::uint32_t kTrimWaitMaxMs = 1000;
/// After each of so many sweeps of a trim the least time is granted anew. After a later sweep it is
/// granted only if the event that was waited for is done: a device that takes a millisecond for each
/// of many events is waited for, one that is stuck is not.
constexpr unsigned kTrimGracesMax = 4;
/// The maximum number of uses that are finished before the heap's lock is let go (C31): each may
/// release a block.
constexpr unsigned kFinishedPerHold = 8;
/// How often a free without a cache asks whether what it has just recorded is done. A driver takes some microseconds
/// for an event on an idle stream, and one for the answer.
constexpr unsigned kFreshAsksMax = 32;
constexpr unsigned kUsesPerAsk = 16;
constexpr const char* kCaptureUnderWay = "a capture is underway";

/// Is memory free that no memory pool keeps?
bool has_idle_memory(const GiveBackList& heaps) noexcept ASHLAR_REQUIRES(reclaiming) {
  for (StreamHeap& heap : heaps) {
    const Guard guard(heap.lock);
    for (const PoolId id : kPoolIds) {
      const Bytes free = heap.pool(id).counts().bytes[static_cast<unsigned>(BlockState::kFree)];
      if (free != Bytes{} && !heap.is_reserved()) return true;
    }
  }
  return false;
}

void finish_uses_at_end(StreamHeap& heap, bool is_settled) noexcept ASHLAR_EXCLUDES(heap.lock) {
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

Result<Address> Reclaimer::reclaim(StreamHeap& heap, const Request& request, Status shortage,
                                   Deadline& deadline, bool* wait_ran_out) noexcept {
  BoundedWait wait(cache_, shared_, deadline, waits_, &heap);
  bool has_asked_for_destroyed = false;
  for (;; wait.wait()) {
    // A capture may be announced while this waits, or queues for the lock.
    if (shared_.is_capturing()) return shortage;
    const ReclaimGuard reclaim(lock_);
    if (shared_.is_capturing()) return shortage;
    if (const Status health = driver_.health(); !health.is_ok()) return health;
    // Once: each round of a wait would ask again.
    if (!std::exchange(has_asked_for_destroyed, true))
      reuse_.notice_destroyed(cache_.heaps(), heap, request);
    epochs_.sweep(cache_.heaps(), lock_);
    if (shared_.is_capturing()) return shortage;
    wait.note_unfinished();
    const Result<Address> found = search_all(heap, request);
    if (!is_short(found.code())) return found;
    shortage = found.status();
    // If the search found the device gone, the next round returns its error.
    if (!driver_.health().is_ok() || wait.choose()) continue;
    const HostRefusals refusals;
    const Address lent =
        heap.is_reserved() ? Address{} : reuse_.borrow_overflow(cache_.heaps(), heap, request);
    if (!lent.is_null()) return lent;
    if (refusals.any()) return kShortOfHostMemory;
    break;
  }
  *wait_ran_out = wait.ran_out();
  return shortage;
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
  Result<Address> grown = release_.grow(heap, request);
  if (grown.code() != Code::kOutOfMemory) return grown;
  const Bytes segment = supply_.growth_size(heap, request);
  // What another thread gives back while a pass lets it in counts as well (C12), and a capture that
  // it announces keeps the next pass from beginning (C9).
  const auto removals_now = [this]() ASHLAR_REQUIRES(reclaiming) {
    return supply_.removals() + supply_.pages().removals();
  };
  std::uint64_t removals = removals_now();
  const auto has_more_room = [&]() ASHLAR_REQUIRES(reclaiming) {
    const std::uint64_t before = std::exchange(removals, removals_now());
    return before != removals;
  };
  // Just enough, the oversize first (row DEV-13); then, if the driver still refuses, all. Enough for what
  // is reserved over the limit too, which may have been lowered while a capture was announced.
  const Bytes need = segment + std::max(cache_.ledger().over_limit(), supply_.below_headroom());
  Bytes back;
  if (config.max_split_size != Bytes::max())
    back = release_.release_enough(heap, need, config.max_split_size);
  if (back < need && !shared_.is_capturing())
    back += release_.release_enough(heap, need - back, Bytes{});
  if (has_more_room()) grown = release_.grow(heap, request);
  if (grown.code() == Code::kOutOfMemory && !shared_.is_capturing()) {
    release_.release_all();
    if (has_more_room()) grown = release_.grow(heap, request);
  }
  // Pages that were taken away and not needed after all.
  release_.drop_stock();
  return is_short(grown.code()) && refusals.any() ? Result<Address>(kShortOfHostMemory) : grown;
}

Status Reclaimer::trim() noexcept {
  const NvtxRange range(SlowPath::kTrim);
  const Status trimmed = trim_segments();
  const ReclaimGuard reclaim(lock_);
  for (StreamHeap& heap : cache_.heaps()) {
    if (shared_.is_capturing() || !driver_.health().is_ok()) break;
    shrink_nodes(heap, shared_, lock_);
  }
  return driver_.health().is_ok() ? trimmed : driver_.health();
}

template <class Round>
Status Reclaimer::give_back_in_rounds(Round&& round) noexcept {
  if (const Status health = driver_.health(); !health.is_ok()) return health;
  // Work that is done is recognised whatever wait is permitted (C28): an event recorded just now,
  // or a synchronisation, takes the driver a moment to answer.
  // At most a second: memory that is idle is given back, there is no wait for work that is stuck.
  Deadline deadline(driver_, std::clamp(shared_.config.wait_ms, kTrimWaitMinMs, kTrimWaitMaxMs));
  const Deadline longest(driver_, kTrimWaitMaxMs);
  BoundedWait wait(cache_, shared_, deadline, waits_, nullptr);
  unsigned sweeps = 0;
  for (;; wait.wait()) {
    ASHLAR_REQUIRE(!shared_.is_capturing(), Code::kBusy, kCaptureUnderWay);
    const ReclaimGuard reclaim(lock_);
    ASHLAR_REQUIRE(!shared_.is_capturing(), Code::kBusy, kCaptureUnderWay);
    epochs_.sweep(cache_.heaps(), lock_);
    ASHLAR_REQUIRE(!shared_.is_capturing(), Code::kBusy, kCaptureUnderWay);
    // From here, not from the call's entry: the sweep, or the queue for the lock, may have taken
    // long, and the events that it recorded are as new as ever.
    const bool has_progressed = wait.has_progressed() && longest.left_ms() != 0;
    if (++sweeps <= kTrimGracesMax || has_progressed) deadline.leave_ms(kTrimWaitMinMs);
    wait.note_unfinished();
    if (const Status health = driver_.health(); !health.is_ok()) return health;
    const Result<bool> is_over = round(wait, longest);
    if (const Status health = driver_.health(); !health.is_ok()) return health;
    if (!is_over.is_ok() || is_over.value()) return is_over.status();
  }
}

Status Reclaimer::trim_segments() noexcept {
  return give_back_in_rounds(
      [this](BoundedWait& wait, const Deadline&) ASHLAR_REQUIRES(reclaiming) -> Result<bool> {
        if (wait.choose()) return false;
        Status refused;
        release_.release_all(&refused);
        ASHLAR_REQUIRE(!shared_.is_capturing(), Code::kBusy, kCaptureUnderWay);
        supply_.trim_driver_pool();
        release_.release_addresses(&refused);
        if (!refused.is_ok()) return refused;
        ASHLAR_REQUIRE(!wait.ran_out(), Code::kNotReady,
                       "some segments stay: work that uses them is not done");
        return true;
      });
}

template <class Missing>
Status Reclaimer::give_back_until_none(Missing&& missing) noexcept {
  return give_back_in_rounds(
      [this, &missing](BoundedWait& wait, const Deadline& longest)
          ASHLAR_REQUIRES(reclaiming) -> Result<bool> {
            Status refused;
            Result<Bytes> more = missing();
            // Again: other threads may take what comes back.
            for (bool goes_on = true; goes_on && more.is_ok() && more.value() != Bytes{};) {
              const Bytes back = release_.release_enough(more.value(), &refused);
              goes_on = back != Bytes{} && longest.left_ms() != 0 && !shared_.is_capturing();
              more = missing();
            }
            if (more.is_ok() && more.value() != Bytes{} && !shared_.is_capturing()) {
              supply_.trim_driver_pool();  // of what is freed and done by now
              more = missing();
            }
            if (!more.is_ok()) return more.status();
            if (more.value() == Bytes{}) return true;
            ASHLAR_REQUIRE(!shared_.is_capturing(), Code::kBusy, kCaptureUnderWay);
            if (wait.choose()) return false;
            if (!refused.is_ok()) return refused;
            ASHLAR_REQUIRE(!wait.ran_out(), Code::kNotReady,
                           "the work that uses idle memory is not done: less "
                           "was given back than is needed");
            return {Code::kOutOfMemory, "too much memory is in use"};
          });
}

void Reclaimer::shrink_to_limit() noexcept {
  const auto over = [this] { return Result<Bytes>(cache_.ledger().over_limit()); };
  // What is in use stays.
  if (over().value() != Bytes{}) static_cast<void>(give_back_until_none(over));
}

Status Reclaimer::make_room(Bytes free) noexcept {
  const auto missing = [this, free]() -> Result<Bytes> {
    const Result<device::MemoryInfo> memory = driver_.memory_info();
    if (!memory.is_ok()) return memory.status();
    return free - std::min(free, memory.value().free);
  };
  const Result<Bytes> now = missing();
  if (!now.is_ok() || now.value() == Bytes{}) return now.status();
  return give_back_until_none(missing);
}

void Reclaimer::collect() noexcept {
  const double threshold = shared_.config.collection_threshold;
  if (threshold == 0) return;
  const Bytes over = cache_.ledger().over_share(threshold);
  if (over == Bytes{} || shared_.is_capturing() || !lock_.try_lock()) return;
  if (!shared_.is_capturing() && epochs_.refresh_all(cache_.heaps(), lock_))
    release_.release_oldest(over);
  lock_.unlock();
}

void Reclaimer::give_back_finished(StreamHeap* fresh, unsigned others_max) noexcept {
  const NvtxRange range(SlowPath::kGiveBack);
  const ReclaimGuard reclaim(lock_);
  if (shared_.is_capturing() || !driver_.health().is_ok()) return;
  give_back_.begin_walk(fresh, others_max);
  give_back_noted(fresh);
  give_back_.end_walk();
}

void Reclaimer::give_back_noted(StreamHeap* fresh) noexcept {
  if (shared_.config.backend == AllocatorBackend::kCudaMallocAsync) {
    for (StreamHeap& heap : give_back_) {
      if (!epochs_.ask_for_uses(heap, lock_)) return;
    }
    release_.release_behind_work(give_back_);
    // Other threads were let in: one may have announced a capture (C9).
    if (shared_.is_capturing() || !has_idle_memory(give_back_)) return;
    fresh = nullptr;
  }
  epochs_.sweep(give_back_, lock_);
  epochs_.ask_of_unmarked(give_back_);
  for (unsigned asks = 0; fresh != nullptr && asks < kFreshAsksMax; ++asks) {
    bool has_come_back = false;
    {
      const Guard guard(fresh->lock);
      const bool waits = !fresh->marks.is_empty() || fresh->uses.queues().count() != 0;
      if (!waits || shared_.is_capturing()) break;
      const std::uint64_t released = fresh->clock.newest_release();
      static_cast<void>(cache_.uses().poll(*fresh, kUsesPerAsk));
      has_come_back = fresh->clock.newest_release() != released;
    }
    if (has_come_back) epochs_.mark(*fresh);
    epochs_.query(*fresh);
  }
  if (!shared_.is_capturing() && driver_.health().is_ok()) release_.release_finished(give_back_);
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
  if (!driver_.health().is_ok()) return;
  release_.release_all();
  supply_.trim_driver_pool();
  Status refused;
  release_.release_addresses(&refused);
}

const char* Reclaimer::validate() const noexcept {
  const ReclaimGuard reclaim(lock_);
  for (StreamHeap& heap : cache_.heaps()) {
    if (const char* broken = heap.marks.validate()) return broken;
    if (shared_.config.caches) continue;
    const Guard guard(heap.lock);
    if (GiveBackList::may_give_back(heap) && !heap.links.is_noted.load())
      return "noted(1): a heap with something to give back is not noted";
  }
  return nullptr;
}

void Reclaimer::reset_counts() noexcept {
  waits_.store(0, std::memory_order_relaxed);
  reuse_.reset_steals();
}

}  // namespace ashlar::inline v0::cache
