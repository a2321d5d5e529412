#include <ashlar/cache/epochs.h>

#include <algorithm>
#include <thread>
#include <utility>

namespace ashlar::inline v0::cache {

namespace {
/// After so many heaps, uses without an event, or events, a sweep lets threads in that wait for the
/// reclaim lock. Of uses without an event most need no call: one answer serves all of a stream. A
/// driver may take long for each event.
constexpr unsigned kHeapsPerHold = 16;
constexpr unsigned kUsesPerHold = 256;
constexpr unsigned kEventsPerHold = 16;
}  // namespace

void Epochs::complete(StreamHeap& heap, std::uint64_t covers) noexcept {
  const Guard guard(heap.lock);
  heap.clock.complete(covers);
}

void Epochs::mark(StreamHeap& heap) noexcept {
  if (!heap.life.is_alive()) return;
  const EpochMarks::Unmarked unmarked = heap.marks.unmarked();
  if (unmarked.covers != 0 && uses_.synchronizer().is_covered(unmarked.sequence)) {
    heap.marks.set_unmarked({});
    complete(heap, unmarked.covers);
  }
  // The newest mark of a full row gives way. If it is done, that must be noticed before: a call that
  // may not wait would otherwise fail beside memory whose work an earlier call has marked (C12).
  if (heap.marks.is_full()) query(heap);
  std::uint64_t covers = 0;
  {
    const Guard guard(heap.lock);
    const bool is_covered =
        !heap.marks.is_empty() && heap.marks.newest().covers >= heap.clock.newest_release();
    if (heap.clock.is_all_complete() || is_covered) return;
    covers = heap.clock.advance();  // before the record: what is stamped from now on is not covered
  }
  const std::uint64_t sequence = uses_.next_sequence();
  if (uses_.record_on(heap, heap.marks.next_slot()).is_ok()) {
    heap.marks.push(uses_.events(), covers, sequence);
  } else if (heap.marks.unmarked().covers == 0) {
    // An earlier note stands until it is covered: moved ahead by every try, it never would be.
    heap.marks.set_unmarked({covers, sequence});
  }
}

void Epochs::query(StreamHeap& heap) noexcept {
  // A lost stream's earlier marks still tell of its earlier work.
  if (!heap.life.is_alive() && uses_.ask_last_event(heap)) heap.marks.clear(uses_.events());
  unsigned done = 0;
  while (done < heap.marks.count() && driver_.event_query(heap.marks[done].slot.event).is_ok()) {
    ++done;
  }
  if (done > 0) complete(heap, heap.marks.drop_oldest(uses_.events(), done));
}

void Epochs::retire(StreamHeap& heap) noexcept {
  heap.last_event.sequence = uses_.next_sequence();
  const bool is_recorded = uses_.record_on(heap, heap.last_event.slot, true).is_ok();
  if (is_recorded) {
    static_cast<void>(heap.life.retire());
  } else {
    heap.life.lose(uses_.next_sequence());
  }
  // The caller destroys the handle next: nobody may still be recording on it.
  while (heap.life.is_recording()) std::this_thread::yield();
  heap.marks.clear(uses_.events());
}

bool Epochs::has_unmarked(StreamHeap& heap) noexcept {
  const bool is_lost = heap.life.state() == StreamLife::State::kLost;
  const bool is_unmarked = heap.marks.unmarked().covers != 0 || is_lost;
  return is_unmarked && !heap.clock.is_all_complete();
}

template <class Heaps>
bool Epochs::refresh_all(Heaps& heaps, ReclaimLock& lock) noexcept {
  unsigned count = 0;
  for (StreamHeap& heap : heaps) {
    if (++count % kHeapsPerHold == 0 && !let_others_in(lock)) return false;
    refresh(heap);
  }
  return true;
}

bool Epochs::ask_for_uses(StreamHeap& heap, ReclaimLock& lock) noexcept {
  std::uint64_t unrecorded = 0;
  UseTracker::PollState state;
  {
    const Guard guard(heap.lock);
    unrecorded = heap.uses.unrecorded_count();
    state.finishes_max = heap.uses.nodes().taken_count();
  }
  while (unrecorded > 0) {
    const std::uint64_t part = std::min<std::uint64_t>(unrecorded, kUsesPerHold);
    UseTracker::retry_unrecorded(heap, part);
    unrecorded -= part;
    if (!let_others_in(lock)) return false;
  }
  for (bool goes_on = true; goes_on;) {
    {
      const Guard guard(heap.lock);
      goes_on = uses_.poll_part(heap, kEventsPerHold, state);
    }
    if (goes_on && !let_others_in(lock)) return false;
  }
  return true;
}

template <class Heaps>
void Epochs::sweep(Heaps& heaps, ReclaimLock& lock) noexcept {
  if (!refresh_all(heaps, lock)) return;
  unsigned count = 0;
  for (StreamHeap& heap : heaps) {
    if (++count % kHeapsPerHold == 0 && !let_others_in(lock)) return;
    if (!ask_for_uses(heap, lock)) return;
    // A pending block that has just come back carries the newest stamp: ask once more, now that its
    // stream may be done too.
    refresh(heap);
  }
}

void Epochs::ask_of_unmarked(const GiveBackList& heaps) noexcept {
  const auto is_unmarked = [](StreamHeap& heap) ASHLAR_REQUIRES(reclaiming) {
    const Guard guard(heap.lock);
    return has_unmarked(heap);
  };
  bool has_asked = false;
  for (StreamHeap& heap : heaps) {
    if (uses_.is_capturing() || !is_unmarked(heap)) continue;
    if (!std::exchange(has_asked, true)) uses_.ask_whether_done();
    refresh(heap);
  }
}

template bool Epochs::refresh_all(HeapList&, ReclaimLock&) noexcept;
template void Epochs::sweep(HeapList&, ReclaimLock&) noexcept;
template void Epochs::sweep(GiveBackList&, ReclaimLock&) noexcept;

}  // namespace ashlar::inline v0::cache
