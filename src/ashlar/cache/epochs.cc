#include <ashlar/cache/epochs.h>

#include <thread>

namespace ashlar::inline v0::cache {

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
    uses_.lose(heap);
  }
  // The caller destroys the handle next: nobody may still be recording on it.
  while (heap.life.is_recording()) std::this_thread::yield();
  heap.marks.clear(uses_.events());
}

void Epochs::sweep(HeapList& heaps) noexcept {
  for (StreamHeap& heap : heaps) refresh(heap);
  for (StreamHeap& heap : heaps) {
    UseTracker::retry_unrecorded(heap, kEverything);
    {
      const Guard guard(heap.lock);
      static_cast<void>(uses_.poll_all(heap));
    }
    // A pending block that has just come back carries the newest stamp: ask once more, now that its
    // stream may be done too.
    refresh(heap);
  }
}

}  // namespace ashlar::inline v0::cache
