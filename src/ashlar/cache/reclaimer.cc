#include <ashlar/cache/reclaimer.h>

#include <utility>

#include <ashlar/cache/device_cache.h>
#include <ashlar/cache/rounding.h>

namespace ashlar::inline v0::cache {

namespace {
/// Most heaps whose epoch is asked by a miss before it grows: keeps C17's bound.
constexpr unsigned kSweepsPerMiss = 2;
/// Most dead streams whose last event is asked when a new one's heap is made.
constexpr unsigned kDeadAskedMax = 16;
}  // namespace

Reclaimer::Reclaimer(DeviceCache& cache, SharedState& shared, Driver& driver, UseTracker& uses,
                     SegmentSupply& supply) noexcept
    : cache_(cache),
      shared_(shared),
      driver_(driver),
      supply_(supply),
      epochs_(driver, uses),
      reuse_(driver, shared.config, uses, epochs_, supply) {}

Address Reclaimer::try_steal(StreamHeap& heap, const Request& request) noexcept {
  if (!lock_.try_lock()) return Address{};
  Address address;
  if (!shared_.is_capturing())
    address = reuse_.steal(cache_.heaps(), heap, request, kSweepsPerMiss);
  lock_.unlock();
  return address;
}

Result<Address> Reclaimer::reclaim(StreamHeap& heap, const Request& request,
                                   bool* wait_ran_out) noexcept {
  if (shared_.is_capturing()) return kShortOfMemory;
  const ReclaimGuard reclaim(lock_);
  if (shared_.is_capturing()) return kShortOfMemory;  // announced while this waited for the lock
  BoundedWait wait(cache_, driver_, epochs_, shared_.config.wait_ms, waits_);
  for (bool again = true; again; *wait_ran_out = wait.ran_out()) {
    if (const Status health = driver_.health(); !health.is_ok()) return health;
    epochs_.sweep(cache_.heaps());
    wait.note_unfinished();
    const Result<Address> found = search_all(heap, request);
    if (found.code() != Code::kOutOfMemory) return found;
    // Nothing to wait for on a device that this search found gone: the next one says so.
    again = !driver_.health().is_ok() || wait.wait_for_oldest();
  }
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
  if (address.is_null() && config.reuse != Reuse::kOwn && !refusals.any())
    address = reuse_.steal(cache_.heaps(), heap, request, 0);
  if (!address.is_null()) return address;
  // What the host's memory fails no memory of the device's can help.
  if (refusals.any()) return kShortOfHostMemory;
  // Whoever reclaimed before us may have given back more than it took: ask the driver before giving
  // back ourselves.
  Result<Address> grown = supply_.grow(heap, request);
  const Bytes segment = segment_size(config, request.size).value_or(Bytes::max());
  if (grown.code() != Code::kOutOfMemory) return grown;
  // Just enough, the oversize first (row DEV-13); then, if the driver still refuses, all.
  Bytes back;
  if (config.max_split_size != Bytes::max())
    back = supply_.release_idle(cache_.heaps(), heap, segment, config.max_split_size);
  if (back < segment) back += supply_.release_idle(cache_.heaps(), heap, segment - back, Bytes{});
  if (back != Bytes{}) grown = supply_.grow(heap, request);
  if (grown.code() != Code::kOutOfMemory || supply_.release_all(cache_.heaps()) == Bytes{})
    return grown;
  return supply_.grow(heap, request);
}

Status Reclaimer::trim() noexcept {
  if (const Status health = driver_.health(); !health.is_ok()) return health;
  ASHLAR_REQUIRE(!shared_.is_capturing(), Code::kBusy, "a capture is underway");
  const ReclaimGuard reclaim(lock_);
  // A capture may have been announced while this waited for the lock.
  ASHLAR_REQUIRE(!shared_.is_capturing(), Code::kBusy, "a capture is underway");
  BoundedWait wait(cache_, driver_, epochs_, shared_.config.wait_ms, waits_);
  do {
    epochs_.sweep(cache_.heaps());
    wait.note_unfinished();
  } while (driver_.health().is_ok() && wait.wait_for_oldest());
  supply_.release_all(cache_.heaps());
  if (const Status health = driver_.health(); !health.is_ok()) return health;
  ASHLAR_REQUIRE(!wait.ran_out(), Code::kNotReady,
                 "some segments stay: work that uses them is not done");
  return Status::ok();
}

StreamHeap* Reclaimer::make_heap(const Stream& stream, bool may_ask) noexcept {
  // A dead stream's heap is reused only if no slow path is under way that may hold one. Without
  // reuse as many heaps would pile up as there ever were streams.
  if (!lock_.try_lock()) return cache_.heaps().get_or_make(stream);
  StreamHeap* heap = cache_.heaps().get_or_make(stream, find_forgotten(may_ask));
  lock_.unlock();
  return heap;
}

StreamHeap* Reclaimer::find_forgotten(bool may_ask) noexcept {
  unsigned asks_left = may_ask && !shared_.is_capturing() ? kDeadAskedMax : 0;
  for (StreamHeap& heap : cache_.heaps()) {
    if (heap.life.is_alive()) continue;
    if (asks_left > 0 && !heap.marks.is_empty()) {
      --asks_left;
      epochs_.query(heap);
    }
    const Guard guard(heap.lock);
    if (heap.is_forgotten()) return &heap;
  }
  return nullptr;
}

Status Reclaimer::retire(const Stream& stream) noexcept {
  const ReclaimGuard reclaim(lock_);
  StreamHeap* heap = cache_.heaps().find_settled(stream.id);
  ASHLAR_REQUIRE(heap != nullptr, Code::kNotFound,
                 "the allocator has never seen that stream, or forgotten it");
  ASHLAR_REQUIRE(heap->life.is_alive(), Code::kInvalidHandle, "the stream is dead already");
  epochs_.mark_last(*heap);
  return Status::ok();
}

void Reclaimer::ask_last_event(StreamHeap& heap) noexcept {
  // Whoever reclaims here now asks the marks itself; and to wait for the lock could be to wait for
  // each other.
  if (!lock_.try_lock()) return;
  if (!shared_.is_capturing()) epochs_.query(heap);
  lock_.unlock();
}

void Reclaimer::give_everything_back(bool is_settled) noexcept {
  const ReclaimGuard reclaim(lock_);
  // If this device is gone, its heaps may still hold events of another, which is not.
  for (StreamHeap& heap : cache_.heaps()) {
    // What could not be waited for is only asked; the rest stays with the device.
    if (!is_settled) epochs_.query(heap);
    heap.destroy_events();
    const Guard guard(heap.lock);
    finish_uses_at_end(heap, is_settled);
  }
  if (driver_.health().is_ok()) supply_.release_all(cache_.heaps());
}

void Reclaimer::finish_uses_at_end(StreamHeap& heap, bool is_settled) noexcept {
  const auto finish = [&heap](UseNode* use) ASHLAR_REQUIRES(heap.lock) {
    // A device that could not be synchronised keeps what its streams may still touch.
    if (use->stream->cache.is_settled()) heap.finish_use(use);
  };
  for (UseNode* queue = nullptr; heap.uses.take_queues(&queue, 1) != 0;) {
    while (queue != nullptr) finish(std::exchange(queue, queue->next));
  }
  for (UseNode* list = heap.uses.take_unrecorded(); list != nullptr;) {
    finish(std::exchange(list, list->next));
  }
  if (is_settled) heap.clock.complete(kEverything);
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
