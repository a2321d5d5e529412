// The last rung: a bounded wait for the oldest thing that anybody waits for.
//
// C12: an allocation fails only when nothing is left that a permitted wait would free. H8: the wait
// is cut into slices and everything is polled in between, so one stuck stream does not hide what
// others have finished.
#include <algorithm>
#include <thread>

#include <ashlar/cache/device_cache.h>

namespace ashlar::inline v0::cache {

namespace {
/// A finite wait is spent in this many slices.
constexpr std::uint32_t kWaitSlices = 16;
/// One for ever in slices of this length: the longest that what another stream has finished goes
/// unseen.
constexpr std::uint32_t kForeverSliceMs = 50;
}  // namespace

DeviceCache::Waited DeviceCache::outcome_of_wait(const Status& status) noexcept {
  if (status.is_ok()) return Waited::kProgress;
  return status.code() == Code::kNotReady ? Waited::kNotDone : Waited::kRefused;
}

DeviceCache::Waited DeviceCache::wait_for_use(StreamHeap& heap, std::uint32_t timeout_ms) noexcept {
  UseNode* head = nullptr;
  {
    const Guard guard(heap.lock);
    head = heap.take_oldest_queue();
    if (head == nullptr) return Waited::kProgress;  // another thread's poll has it: look again
    ++heap.in_hand;
  }
  DeviceCache& cache = head->stream->cache;
  waits_.fetch_add(1, std::memory_order_relaxed);
  const Status status = cache.driver_.event_synchronize(head->slot.event, timeout_ms);
  const bool done = status.is_ok() || is_over(*head->stream);
  if (done) cache.events_.give(head->slot);
  const Guard guard(heap.lock);
  --heap.in_hand;
  UseNode* rest = done ? StreamHeap::advance_queue(head) : head;
  if (rest != nullptr) heap.put_queue(rest);
  if (done) heap.finish_use(head);
  return done ? Waited::kProgress : outcome_of_wait(status);
}

DeviceCache::Waited DeviceCache::wait_for_mark(StreamHeap& heap,
                                               std::uint32_t timeout_ms) noexcept {
  DeviceCache& cache = heap.cache;
  std::unique_lock theirs(cache.reclaim_, std::defer_lock);
  if (&cache != this && !theirs.try_lock()) {
    std::this_thread::yield();  // whoever reclaims there asks its marks itself
    return Waited::kProgress;
  }
  if (heap.mark_count == 0) return Waited::kProgress;  // and has found it done just now
  waits_.fetch_add(1, std::memory_order_relaxed);
  const Status status = cache.driver_.event_synchronize(heap.marks[0].slot.event, timeout_ms);
  if (status.is_ok()) cache.complete_marks(heap, 1);
  return outcome_of_wait(status);
}

StreamHeap* DeviceCache::retired_elsewhere() const noexcept {
  for (StreamHeap* heap = first_heap_.load(); heap != nullptr; heap = heap->next_heap.load()) {
    const Guard guard(heap->lock);
    for (const UseNode* use = heap->unrecorded(); use != nullptr; use = use->next) {
      if (&use->stream->cache != this && use->stream->life.load() == StreamHeap::Life::kRetired)
        return use->stream;
    }
  }
  return nullptr;
}

void DeviceCache::note_unfinished(Patience& patience) const noexcept {
  patience.was_pending = patience.was_in_hand = false;
  for (StreamHeap* heap = first_heap_.load(); heap != nullptr; heap = heap->next_heap.load()) {
    const Guard guard(heap->lock);
    patience.was_in_hand |= heap->in_hand > 0;
    patience.was_pending |= heap->in_hand > 0 || heap->has_pending() || heap->has_unrecorded();
  }
}

DeviceCache::Oldest DeviceCache::find_oldest() const noexcept {
  Oldest oldest;
  std::uint64_t sequence = kEverything;
  for (StreamHeap* heap = first_heap_.load(); heap != nullptr; heap = heap->next_heap.load()) {
    const Guard guard(heap->lock);
    oldest.in_hand |= heap->in_hand > 0;
    const UseNode* use = heap->oldest_pending();
    if (use != nullptr && use->sequence < sequence) {
      oldest.heap = heap;
      oldest.is_mark = false;
      sequence = use->sequence;
    }
    if (heap->mark_count > 0 && heap->marks[0].sequence < sequence) {
      oldest.heap = heap;
      oldest.is_mark = true;
      sequence = heap->marks[0].sequence;
    }
  }
  if (oldest.heap == nullptr) {
    oldest.heap = retired_elsewhere();
    oldest.is_mark = true;
  }
  return oldest;
}

bool DeviceCache::wait_for_oldest(Patience& patience) noexcept {
  const Oldest oldest = find_oldest();
  if (oldest.heap == nullptr && oldest.in_hand) {
    std::this_thread::yield();  // another thread is about to file or finish what it holds
    return true;
  }
  const bool untold = oldest.heap == nullptr && has_untold();
  if (oldest.heap == nullptr && !untold) {
    // Nothing is left to wait for; but what another thread finished after the search began has not
    // been looked at.
    if (!patience.was_pending || patience.waits_left == 0) return false;
    --patience.waits_left;
    return true;
  }
  if (patience.budget_ms == 0 || patience.waits_left == 0) {
    // The permitted wait is over (or none is permitted): one failed search after that is the last.
    // What was in another thread's hand at the search was missed by it, complete or not: then one
    // more.
    const bool look_again = (patience.was_in_hand || oldest.in_hand) && !patience.has_looked_again;
    patience.has_looked_again = true;
    patience.ran_out = !look_again;
    return look_again;
  }
  --patience.waits_left;
  if (untold) {
    // Not bounded by the budget: no event says when to stop. Tried once; if that fails the wait is
    // over.
    if (!synchronize_untold()) patience.budget_ms = 0;
    return true;
  }
  wait_a_slice(oldest, patience);
  return true;
}

void DeviceCache::wait_a_slice(const Oldest& oldest, Patience& patience) noexcept {
  const bool for_ever = patience.budget_ms == device::kWaitForever;
  const std::uint32_t slice =
      for_ever ? kForeverSliceMs
               : std::min(patience.budget_ms, std::max(1u, config_.wait_ms / kWaitSlices));
  const Waited waited =
      oldest.is_mark ? wait_for_mark(*oldest.heap, slice) : wait_for_use(*oldest.heap, slice);
  if (waited == Waited::kProgress) return;
  if (!for_ever) patience.budget_ms -= slice;
  else if (waited == Waited::kRefused) patience.budget_ms = 0;
  else ++patience.waits_left;  // a slice without end to it is not one of the waits that are counted
}

std::uint64_t DeviceCache::waits_max() noexcept {
  // What is pending now, and once more what becomes known only when that is done; other threads'
  // later work is not waited for, so that they cannot keep a reclaim going for ever (C17).
  std::uint64_t things = 1;
  for (StreamHeap* heap = first_heap_.load(); heap != nullptr; heap = heap->next_heap.load()) {
    const Guard guard(heap->lock);
    constexpr auto kPending = static_cast<unsigned>(BlockState::kPending);
    things += 1 + heap->mark_count;
    for (const UseNode* head = heap->queues(); head != nullptr; head = head->next_queue) {
      for (const UseNode* node = head; node != nullptr; node = node->next) ++things;
    }
    for (const bool is_small : {false, true})
      things += heap->pool(is_small).counts().blocks[kPending];
  }
  return 2 * things + kWaitSlices;
}

bool DeviceCache::has_untold() noexcept {
  for (StreamHeap* heap = first_heap_.load(); heap != nullptr; heap = heap->next_heap.load()) {
    const Guard guard(heap->lock);
    const bool incomplete =
        heap->newest_release > heap->completed && heap->mark_count == 0 && heap->mark_failed;
    if (heap->has_unrecorded() || incomplete) return true;
  }
  return false;
}

bool DeviceCache::synchronize_untold() noexcept {
  // What was freed before the synchronisation is complete after it; what is freed meanwhile has a
  // later stamp.
  for (StreamHeap* heap = first_heap_.load(); heap != nullptr; heap = heap->next_heap.load()) {
    const Guard guard(heap->lock);
    // Decided before the synchronisation: a stream that dies during it may have been given more
    // work meanwhile.
    heap->told_before = heap->life.load() == StreamHeap::Life::kAlive ? heap->epoch++ : kEverything;
    heap->untold = heap->take_unrecorded();
    heap->in_hand += heap->untold != nullptr;
  }
  waits_.fetch_add(1, std::memory_order_relaxed);
  const bool done = driver_.synchronize().is_ok();
  bool progress = done;
  for (StreamHeap* heap = first_heap_.load(); heap != nullptr; heap = heap->next_heap.load()) {
    UseNode* list = heap->untold;
    heap->untold = nullptr;
    const bool had = list != nullptr;
    while (list != nullptr) {
      UseNode* node = list;
      list = list->next;
      // A use on another device's stream is that device's to synchronise; rare, so one at a time.
      DeviceCache& cache = node->stream->cache;
      const bool told =
          &cache == this ? done : cache.driver_.synchronize().is_ok() || is_over(*node->stream);
      progress &= told;
      const Guard guard(heap->lock);
      if (told) heap->finish_use(node);
      else heap->add_unrecorded(node);
    }
    const Guard guard(heap->lock);
    heap->in_hand -= had;
    // A heap made meanwhile has been told nothing.
    if (done) heap->completed = std::max(heap->completed, heap->told_before);
    heap->told_before = 0;
  }
  return progress;
}

Status DeviceCache::trim() noexcept {
  if (const Status health = driver_.health(); !health.is_ok()) return health;
  ASHLAR_REQUIRE(!is_capturing(), Code::kBusy, "a capture is underway");
  const std::lock_guard reclaiming(reclaim_);
  ASHLAR_REQUIRE(!is_capturing(), Code::kBusy,
                 "a capture is underway");  // announced while this waited for the lock
  Patience patience{config_.wait_ms, waits_max()};
  do {
    sweep_all();
    note_unfinished(patience);
  } while (driver_.health().is_ok() && wait_for_oldest(patience));
  release_idle(Bytes::max(), Bytes{});
  if (const Status health = driver_.health(); !health.is_ok()) return health;
  ASHLAR_REQUIRE(!patience.ran_out, Code::kNotReady,
                 "some segments stay: work that uses them is not done");
  return Status::ok();
}

}  // namespace ashlar::inline v0::cache
