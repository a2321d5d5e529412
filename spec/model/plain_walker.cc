// See plain_walker.h.
#include "spec/model/plain_walker.h"
#include "spec/model/memory_pool_book.h"

namespace ashlar::spec {

void PlainWalker::walk(const MapWalk& walk, bool) {
  Recount& recount = walk.recount;
  for (HeapCount& heap : recount.heaps) {
    heap.before = heap.now;
    heap.now = {};
  }
  recount.sum = {};
  OwnedBlocks::iterator owned = walk.books.owned().begin();
  for (std::size_t i = 0; i < walk.now.segments.size(); ++i) {
    const cache::SnapshotSegment& segment = walk.now.segments[i];
    if (!judge_held(segment, walk.held[i], &walk.verdict)) return;
    SegmentCount count;
    judge_segment(walk.now, segment, walk.rules, &walk.books, &owned, &count, &walk.verdict);
    if (!walk.verdict.is_good()) return;
    HeapCount& heap = recount.heaps[recount.heap_of(heap_of(segment))];
    for (unsigned figure = 0; figure < kFigures; ++figure) {
      heap.now.add(figure, segment.pool, count[figure]);
      recount.sum.add(figure, segment.pool, count[figure]);
    }
  }
  pass_owned(~std::uint64_t{0}, &walk.books, &owned, &walk.verdict);
}

}  // namespace ashlar::spec
