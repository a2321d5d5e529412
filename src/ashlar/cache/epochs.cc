#include <ashlar/cache/epochs.h>

#include <thread>

namespace ashlar::inline v0::cache {

namespace {
/// Enough for everything that can be pending.
constexpr unsigned kPollAll = 0xffffffffu;
}  // namespace

void Epochs::mark(StreamHeap& heap) noexcept {
  std::uint64_t covers = 0;
  {
    const Guard guard(heap.lock);
    const bool is_covered =
        !heap.marks.is_empty() && heap.marks.newest().covers >= heap.clock.newest_release();
    if (heap.clock.is_all_complete() || is_covered) return;
    covers = heap.clock.advance();  // before the record: what is stamped from now on is not covered
  }
  heap.marks.set_failed(!uses_.record_on(heap, heap.marks.next_slot()).is_ok());
  if (heap.marks.has_failed()) return;
  heap.marks.push(uses_.events(), covers, uses_.next_sequence());
}

void Epochs::query(StreamHeap& heap) noexcept {
  unsigned done = 0;
  while (done < heap.marks.count() && driver_.event_query(heap.marks[done].slot.event).is_ok()) {
    ++done;
  }
  complete(heap, done);
}

void Epochs::complete(StreamHeap& heap, unsigned n) noexcept {
  if (n == 0) return;
  const std::uint64_t covers = heap.marks.drop_oldest(uses_.events(), n);
  const Guard guard(heap.lock);
  heap.clock.complete(covers);
}

bool Epochs::mark_last(StreamHeap& heap) noexcept {
  const bool is_recorded = uses_.record_on(heap, heap.marks.next_slot()).is_ok();
  heap.life.retire(is_recorded);
  // The caller destroys the handle next: nobody may still be recording on it.
  while (heap.life.is_recording()) std::this_thread::yield();
  if (is_recorded) heap.marks.replace_all(uses_.events(), kEverything, uses_.next_sequence());
  return is_recorded;
}

void Epochs::sweep(HeapList& heaps) noexcept {
  for (StreamHeap& heap : heaps) refresh(heap);
  for (StreamHeap& heap : heaps) {
    UseTracker::retry_unrecorded(heap);
    {
      const Guard guard(heap.lock);
      static_cast<void>(uses_.poll(heap, kPollAll));
    }
    // A pending block that has just come back carries the newest stamp: ask once more, now that its
    // stream may be done too.
    refresh(heap);
  }
}

}  // namespace ashlar::inline v0::cache
