#include <ashlar/cache/bounded_wait.h>

#include <algorithm>
#include <thread>

#include <ashlar/cache/device_cache.h>

namespace ashlar::inline v0::cache {

namespace {
/// A finite wait is spent in this many slices.
constexpr std::uint32_t kWaitSlices = 16;
/// An unbounded one in slices of this length: the longest that what another stream has finished
/// goes unseen.
constexpr std::uint32_t kForeverSliceMs = 50;
}  // namespace

BoundedWait::BoundedWait(DeviceCache& cache, Driver& driver, Epochs& epochs,
                         std::uint32_t budget_ms, std::atomic<std::uint64_t>& waits) noexcept
    : cache_(cache),
      driver_(driver),
      epochs_(epochs),
      waits_(waits),
      permitted_ms_(budget_ms),
      budget_ms_(budget_ms),
      waits_left_(waits_max()) {}

std::uint64_t BoundedWait::waits_max() const noexcept {
  // What is pending now, and once more what becomes known only when that is done. Other threads'
  // later work is not waited for, so that they cannot keep a reclaim going for ever (C17).
  std::uint64_t count = 1;
  for (StreamHeap& heap : cache_.heaps()) {
    const Guard guard(heap.lock);
    constexpr auto kPending = static_cast<unsigned>(BlockState::kPending);
    count += 1 + heap.marks.count() + heap.uses.queued_count();
    for (const PoolId id : kPoolIds) count += heap.pool(id).counts().blocks[kPending];
  }
  return 2 * count + kWaitSlices;
}

void BoundedWait::note_unfinished() noexcept {
  was_pending_ = was_in_hand_ = false;
  for (StreamHeap& heap : cache_.heaps()) {
    const Guard guard(heap.lock);
    was_in_hand_ |= heap.uses.is_in_hand();
    was_pending_ |= heap.uses.is_in_hand() || !heap.uses.is_empty();
  }
}

BoundedWait::Oldest BoundedWait::find_oldest() const noexcept {
  Oldest oldest;
  std::uint64_t sequence = kEverything;
  for (StreamHeap& heap : cache_.heaps()) {
    const Guard guard(heap.lock);
    oldest.is_in_hand |= heap.uses.is_in_hand();
    const UseNode* use = heap.uses.oldest();
    if (use != nullptr && use->sequence < sequence) {
      oldest.heap = &heap;
      oldest.is_mark = false;
      sequence = use->sequence;
    }
    if (!heap.marks.is_empty() && heap.marks.oldest().sequence < sequence) {
      oldest.heap = &heap;
      oldest.is_mark = true;
      sequence = heap.marks.oldest().sequence;
    }
  }
  if (oldest.heap == nullptr) {
    oldest.heap = retired_elsewhere();
    oldest.is_mark = true;
  }
  return oldest;
}

StreamHeap* BoundedWait::retired_elsewhere() const noexcept {
  for (StreamHeap& heap : cache_.heaps()) {
    const Guard guard(heap.lock);
    for (const UseNode* use = heap.uses.unrecorded(); use != nullptr; use = use->next) {
      const bool is_elsewhere = &use->stream->cache != &cache_;
      if (is_elsewhere && use->stream->life.state() == StreamLife::State::kRetired)
        return use->stream;
    }
  }
  return nullptr;
}

bool BoundedWait::wait_for_oldest() noexcept {
  const Oldest oldest = find_oldest();
  if (oldest.heap == nullptr && oldest.is_in_hand) {
    std::this_thread::yield();  // another thread is about to file or finish what it holds
    return true;
  }
  const bool needs_synchronize = oldest.heap == nullptr && has_unrecorded_work();
  if (oldest.heap == nullptr && !needs_synchronize) {
    // Nothing is left to wait for; but what another thread finished after the search began has not
    // been looked at.
    if (!was_pending_ || waits_left_ == 0) return false;
    --waits_left_;
    return true;
  }
  if (budget_ms_ == 0 || waits_left_ == 0) {
    // The permitted wait is over (or none is permitted): one failed search after that is the last.
    // The search missed what was in another thread's hand, complete or not: then one more.
    const bool look_again = (was_in_hand_ || oldest.is_in_hand) && !has_looked_again_;
    has_looked_again_ = true;
    ran_out_ = !look_again;
    return look_again;
  }
  --waits_left_;
  if (needs_synchronize) {
    // Not bounded by the budget: no event says when to stop. Tried once; if that fails the wait is
    // over.
    if (!synchronize()) budget_ms_ = 0;
    return true;
  }
  wait_a_slice(oldest);
  return true;
}

void BoundedWait::wait_a_slice(const Oldest& oldest) noexcept {
  const bool is_unbounded = budget_ms_ == device::kWaitForever;
  const std::uint32_t slice = is_unbounded
                                  ? kForeverSliceMs
                                  : std::min(budget_ms_, std::max(1u, permitted_ms_ / kWaitSlices));
  const Outcome outcome =
      oldest.is_mark ? wait_for_mark(*oldest.heap, slice) : wait_for_use(*oldest.heap, slice);
  if (outcome == Outcome::kProgress) return;
  if (!is_unbounded) {
    budget_ms_ -= slice;
  } else if (outcome == Outcome::kRefused) {
    budget_ms_ = 0;
  } else {
    ++waits_left_;  // a slice of an unbounded wait is not one of the waits that are counted
  }
}

namespace {
template <class Outcome>
Outcome outcome_of(const Status& status) noexcept {
  if (status.is_ok()) return Outcome::kProgress;
  return status.code() == Code::kNotReady ? Outcome::kNotDone : Outcome::kRefused;
}
}  // namespace

BoundedWait::Outcome BoundedWait::wait_for_use(StreamHeap& heap,
                                               std::uint32_t timeout_ms) noexcept {
  UseNode* head = nullptr;
  {
    const Guard guard(heap.lock);
    head = heap.uses.take_oldest_queue();
    if (head == nullptr) return Outcome::kProgress;  // another thread's poll has it: look again
    heap.uses.begin_in_hand();
  }
  DeviceCache& theirs = head->stream->cache;
  count_wait();
  const Status status = theirs.driver().event_synchronize(head->slot.event, timeout_ms);
  const bool is_done = status.is_ok() || cache_.uses().is_over(*head->stream);
  if (is_done) theirs.uses().events().give(head->slot);
  const Guard guard(heap.lock);
  heap.uses.end_in_hand();
  UseNode* rest = is_done ? PendingUses::advance_queue(head) : head;
  if (rest != nullptr) heap.uses.put_queue(rest);
  if (is_done) heap.finish_use(head);
  return is_done ? Outcome::kProgress : outcome_of<Outcome>(status);
}

BoundedWait::Outcome BoundedWait::wait_for_mark(StreamHeap& heap,
                                                std::uint32_t timeout_ms) noexcept {
  if (&heap.cache != &cache_) return wait_for_foreign_mark(heap, timeout_ms);
  if (heap.marks.is_empty()) return Outcome::kProgress;  // somebody has found it done just now
  count_wait();
  const Status status = driver_.event_synchronize(heap.marks.oldest().slot.event, timeout_ms);
  if (status.is_ok()) epochs_.complete(heap, 1);
  return outcome_of<Outcome>(status);
}

BoundedWait::Outcome BoundedWait::wait_for_foreign_mark(StreamHeap& heap,
                                                        std::uint32_t timeout_ms) noexcept {
  Reclaimer& theirs = heap.cache.reclaimer();
  if (!theirs.lock().try_lock()) {
    std::this_thread::yield();  // whoever reclaims there asks its marks itself
    return Outcome::kProgress;
  }
  Outcome outcome = Outcome::kProgress;
  if (!heap.marks.is_empty()) {
    count_wait();
    const Status status =
        heap.cache.driver().event_synchronize(heap.marks.oldest().slot.event, timeout_ms);
    if (status.is_ok()) theirs.epochs().complete(heap, 1);
    outcome = outcome_of<Outcome>(status);
  }
  theirs.lock().unlock();
  return outcome;
}

bool BoundedWait::has_unrecorded_work() const noexcept {
  for (StreamHeap& heap : cache_.heaps()) {
    const Guard guard(heap.lock);
    const bool is_unmarked =
        !heap.clock.is_all_complete() && heap.marks.is_empty() && heap.marks.has_failed();
    if (heap.uses.has_unrecorded() || is_unmarked) return true;
  }
  return false;
}

bool BoundedWait::synchronize() noexcept {
  begin_synchronize();
  count_wait();
  const bool is_done = driver_.synchronize().is_ok();
  bool progress = is_done;
  for (StreamHeap& heap : cache_.heaps()) progress &= end_synchronize(heap, is_done);
  return progress;
}

void BoundedWait::begin_synchronize() noexcept {
  // What was freed before the synchronisation is complete after it; what is freed meanwhile has a
  // later stamp.
  for (StreamHeap& heap : cache_.heaps()) {
    const Guard guard(heap.lock);
    // Decided before the synchronisation: a stream that dies during it may have been given more
    // work meanwhile.
    heap.awaited.covers = heap.life.is_alive() ? heap.clock.advance() : kEverything;
    heap.awaited.uses = heap.uses.take_unrecorded();
    if (heap.awaited.uses != nullptr) heap.uses.begin_in_hand();
  }
}

bool BoundedWait::end_synchronize(StreamHeap& heap, bool is_done) noexcept {
  bool progress = true;
  UseNode* list = heap.awaited.uses;
  const bool had_uses = list != nullptr;
  while (list != nullptr) {
    UseNode* node = list;
    list = list->next;
    // A use on another device's stream is that device's to synchronise; rare, so one at a time.
    DeviceCache& theirs = node->stream->cache;
    const bool is_complete = &theirs == &cache_ ? is_done
                                                : theirs.driver().synchronize().is_ok() ||
                                                      cache_.uses().is_over(*node->stream);
    progress &= is_complete;
    const Guard guard(heap.lock);
    if (is_complete) {
      heap.finish_use(node);
    } else {
      heap.uses.add_unrecorded(node);
    }
  }
  const Guard guard(heap.lock);
  if (had_uses) heap.uses.end_in_hand();
  // A heap made meanwhile awaits nothing: its `covers` is 0.
  if (is_done) heap.clock.complete(heap.awaited.covers);
  heap.awaited = {};
  return progress;
}

}  // namespace ashlar::inline v0::cache
