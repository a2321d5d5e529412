#include <ashlar/cache/segment_supply.h>

#include <algorithm>
#include <array>
#include <optional>
#include <thread>

#include <ashlar/base/checked.h>
#include <ashlar/cache/host_refusals.h>
#include <ashlar/cache/rounding.h>

namespace ashlar::inline v0::cache {
namespace {

/// Counts a growth that may be under way.
class GrowthScope {
 public:
  explicit GrowthScope(std::atomic<unsigned>& count) noexcept : count_(count) {
    count_.fetch_add(1);
  }
  ~GrowthScope() { count_.fetch_sub(1); }
  GrowthScope(const GrowthScope&) = delete;
  GrowthScope& operator=(const GrowthScope&) = delete;

 private:
  std::atomic<unsigned>& count_;
};

/// The maximum number of segments that one walk over a heap's segments lifts by their size.
constexpr std::size_t kLargestMax = 32;

/// The most segments that a walk looks at before it lets go of the heap's lock, where one that is
/// lifted counts for several (C31). The segments stay where the walk is: without the role
/// `reclaiming` nobody removes one, and new ones come in front of all others.
constexpr unsigned kSegmentsPerHold = 64;
constexpr unsigned kLiftCounts = 4;

/// How often the smallest segment is looked for, if it is taken as soon as it is found.
constexpr unsigned kTriesMax = 4;

/// The order of segments by size; of equally large ones the older is the smaller.
struct SizeRank {
  Bytes size;
  std::uint64_t ordinal = 0;
  bool is_smaller_than(const SizeRank& other) const noexcept {
    return size < other.size || (size == other.size && ordinal < other.ordinal);
  }
};

/// Is the segment one free block whose last use is known complete (D4)?
bool may_go_back(const StreamHeap& heap, const block::BlockPool& pool,
                 block::SegmentIndex at) noexcept ASHLAR_REQUIRES(heap.lock) {
  return pool.is_idle(at) && heap.clock.is_complete(pool.view(pool.view(at).first).stamp);
}

/// The heap's smallest segment of at least `size` bytes that may go back, or nullptr. Lets go of the
/// lock between slices and takes it again: the segment may not be idle any more.
DeviceSegment* smallest_idle(StreamHeap& heap, Bytes size) noexcept
    ASHLAR_REQUIRES(reclaiming, heap.lock) {
  DeviceSegment* best = nullptr;
  unsigned looks = 0;
  for (const PoolId id : kPoolIds) {
    const block::BlockPool& pool = heap.pool(id);
    const std::optional<Bytes> from = checked_round_up(size, pool.granule());
    if (!from) return nullptr;
    for (auto block = pool.best_fit(*from, Bytes::max()); block != block::kNoBlock;
         block = next_fit(heap, id, block, ++looks)) {
      if (best != nullptr && pool.size(block) > best->size) break;
      if (!pool.is_whole(block) || !heap.clock.is_complete(pool.view(block).stamp)) continue;
      DeviceSegment* segment = record_of(pool.view(pool.segment(block)));
      const SizeRank rank{segment->size, segment->ordinal};
      if (best == nullptr || rank.is_smaller_than({best->size, best->ordinal})) best = segment;
    }
  }
  return best;
}

/// Keeps the largest of the segments seen, the largest first; returns how many there are.
std::size_t insert_by_size(std::array<DeviceSegment*, kLargestMax>* kept, std::size_t count,
                           DeviceSegment* segment) noexcept {
  const auto comes_before = [](const DeviceSegment* a, const DeviceSegment* b) {
    return a->size > b->size || (a->size == b->size && a->ordinal < b->ordinal);
  };
  DeviceSegment** const first = kept->data();
  DeviceSegment** const last = first + count;
  DeviceSegment** const place = std::upper_bound(first, last, segment, comes_before);
  if (place == first + kLargestMax) return count;
  const bool is_full = count == kLargestMax;
  std::move_backward(place, is_full ? last - 1 : last, is_full ? last : last + 1);
  *place = segment;
  return is_full ? count : count + 1;
}

/// May the segment that a walk found still go back?
bool may_go_back(const StreamHeap& heap, const DeviceSegment* segment) noexcept
    ASHLAR_REQUIRES(reclaiming, heap.lock) {
  return may_go_back(heap, heap.pool(segment->pool),
                     static_cast<block::SegmentIndex>(segment->index));
}

/// A walk over all segments of a heap.
struct SegmentWalk {
  std::size_t pool = 0;
  block::SegmentIndex at = block::kNoSegment;
  unsigned looks = 0;  ///< since it took the heap's lock
};

/// The next segment that may go back, or nullptr at the end. Lets go of the lock between slices and
/// takes it again.
DeviceSegment* next_idle(StreamHeap& heap, SegmentWalk* walk) noexcept
    ASHLAR_REQUIRES(reclaiming, heap.lock) {
  while (walk->pool < kPools) {
    const block::BlockPool& pool = heap.pool(kPoolIds[walk->pool]);
    if (walk->looks >= kSegmentsPerHold) {
      heap.lock.let_others_in();
      walk->looks = 0;
    }
    walk->looks += 1;
    count_steps(1);
    walk->at = walk->at == block::kNoSegment ? pool.first_segment() : pool.next(walk->at);
    if (walk->at == block::kNoSegment) {
      walk->pool += 1;
    } else if (may_go_back(heap, pool, walk->at)) {
      return record_of(pool.view(walk->at));
    }
  }
  return nullptr;
}

/// Nobody finds the segment from now on; it is counted as in transfer (C18).
void lift(StreamHeap& heap, const DeviceSegment* segment) noexcept ASHLAR_REQUIRES(heap.lock) {
  block::BlockPool& pool = heap.pool(segment->pool);
  pool.lift(pool.view(static_cast<block::SegmentIndex>(segment->index)).first);
}

}  // namespace

Result<Address> SegmentSupply::grow(StreamHeap& heap, const Request& request) noexcept {
  const Bytes size = segment_size(shared_.config, request.size).value_or(Bytes::max());
  if (const Status charged = ledger_.charge(size); !charged.is_ok()) {
    const Status health = driver_.health();
    return health.is_ok() ? charged : health;
  }
  const auto undo = [&](Status status) -> Result<Address> {
    ledger_.refund(size);
    return status;
  };
  // growing_ is raised before is_capturing() is read; begin_capture() raises `captures` before it
  // waits for growing_ == 0. So one sees the other (C9).
  const GrowthScope growing(growing_);
  const RelaxedCapture relaxed(driver_, shared_.is_capturing());
  if (!relaxed.status().is_ok()) return undo(relaxed.status());
  const Result<Address> base = driver_.segment_alloc(size);
  if (!base.is_ok()) return undo(base.status());
  // Nobody can find the segment yet: where it cannot be entered, it goes back.
  const auto give_back = [&](Status status) {
    static_cast<void>(driver_.segment_free(base.value()));
    return undo(status);
  };
  const Status reserved = shared_.pages.reserve(base.value(), size, {&heap, request.pool});
  if (!reserved.is_ok()) return give_back(reserved);
  DeviceSegment* segment = ledger_.new_record();
  if (segment == nullptr) return give_back(kShortOfHostMemory);
  segment->base = base.value();
  segment->size = size;
  segment->pool = request.pool;
  segment->heap.store(&heap, std::memory_order_release);
  shared_.pages.insert(*segment);
  if (const Address address = enter(heap, request, segment); !address.is_null()) {
    ledger_.commit(size, request.pool);
    return address;
  }
  shared_.pages.erase(*segment);
  ledger_.recycle(segment);
  return give_back(kShortOfHostMemory);
}

void SegmentSupply::wait_for_growths() const noexcept {
  while (growing_.load() != 0) std::this_thread::yield();
}

Address SegmentSupply::enter(StreamHeap& heap, const Request& request,
                             DeviceSegment* segment) noexcept {
  const Guard guard(heap.lock);
  block::BlockPool& pool = heap.pool(request.pool);
  const block::SegmentIndex index = pool.add_segment(
      segment->base, segment->size, 0, StreamHeap::as_word(segment), BlockState::kFree);
  if (index == block::kNoSegment) {
    HostRefusals::note();
    return Address{};
  }
  segment->index = static_cast<std::uint32_t>(index);
  // The new block itself, not a search: with max_split_size set a search would refuse it for being
  // large.
  const block::BlockIndex block = pool.view(index).first;
  const Address address = heap.take_block(request, block, nullptr);
  if (address.is_null()) {
    pool.lift(block);
    pool.remove_segment(index);
  }
  return address;
}

const char* SegmentSupply::validate(const StreamHeap& heap) const noexcept {
  if (growing_.load() != 0) return "supply: a growth has not ended";
  for (const PoolId id : kPoolIds) {
    const block::BlockPool& pool = heap.pool(id);
    for (auto at = pool.first_segment(); at != block::kNoSegment; at = pool.next(at)) {
      const block::SegmentView view = pool.view(at);
      const DeviceSegment* record = record_of(view);
      if (record->heap.load() != &heap || record->base != view.base || record->size != view.size ||
          record->pool != id || record->index != static_cast<std::uint32_t>(at))
        return "supply(1): a segment's record is not its pool's";
      for (const Address a : {view.base, view.base + (view.size - Bytes{1})}) {
        if (!shared_.pages.find(a).leads_to(record->owner()))
          return "supply(1): the page map does not lead to a segment";
      }
    }
  }
  return nullptr;
}

Address SegmentSupply::move(DeviceSegment* segment, StreamHeap& from, StreamHeap& to,
                            const Request& request) noexcept {
  if (!shared_.pages.reserve(segment->base, segment->size, {&to, request.pool}).is_ok()) {
    HostRefusals::note();
    return Address{};
  }
  segment->heap.store(&to, std::memory_order_release);
  shared_.pages.insert(*segment);
  const Address address = enter(to, request, segment);
  if (address.is_null()) {
    segment->heap.store(&from, std::memory_order_release);
    shared_.pages.insert(*segment);
  }
  return address;
}

DeviceSegment* SegmentSupply::lift_smallest(StreamHeap& heap, Bytes size) noexcept {
  const Guard guard(heap.lock);
  for (unsigned tries = 0; tries < kTriesMax; ++tries) {
    DeviceSegment* segment = smallest_idle(heap, size);
    if (segment == nullptr) break;
    if (!may_go_back(heap, segment)) continue;
    lift(heap, segment);
    segment->next = nullptr;
    return segment;
  }
  return nullptr;
}

DeviceSegment* SegmentSupply::lift_smallest_of_others(HeapList& heaps, const StreamHeap& asking,
                                                      Bytes size) noexcept {
  StreamHeap* best = nullptr;
  SizeRank best_rank;
  for (StreamHeap& heap : heaps) {
    if (&heap == &asking) continue;
    const Guard guard(heap.lock);
    const DeviceSegment* segment = smallest_idle(heap, size);
    if (segment == nullptr) continue;
    const SizeRank rank{segment->size, segment->ordinal};
    if (best != nullptr && !rank.is_smaller_than(best_rank)) continue;
    best = &heap;
    best_rank = rank;
  }
  // Taken meanwhile by its own stream: then the next one of that heap, or none.
  return best == nullptr ? nullptr : lift_smallest(*best, size);
}

DeviceSegment* SegmentSupply::lift_largest(StreamHeap& heap, Bytes need, Bytes at_least) noexcept {
  const Guard guard(heap.lock);
  std::array<DeviceSegment*, kLargestMax> found{};
  std::size_t count = 0;
  SegmentWalk walk;
  while (DeviceSegment* segment = next_idle(heap, &walk)) {
    if (segment->size >= at_least) count = insert_by_size(&found, count, segment);
  }
  heap.lock.let_others_in();
  DeviceSegment* first = nullptr;
  DeviceSegment** last = &first;
  Bytes sum;
  for (std::size_t i = 0; i < count && sum < need; ++i) {
    if (!may_go_back(heap, found[i])) continue;  // taken meanwhile
    lift(heap, found[i]);
    sum += found[i]->size;
    *last = found[i];
    last = &found[i]->next;
  }
  *last = nullptr;
  return first;
}

DeviceSegment* SegmentSupply::lift_all(StreamHeap& heap) noexcept {
  const Guard guard(heap.lock);
  DeviceSegment* lifted = nullptr;
  SegmentWalk walk;
  while (DeviceSegment* segment = next_idle(heap, &walk)) {
    lift(heap, segment);
    walk.looks += kLiftCounts;
    segment->next = lifted;
    lifted = segment;
  }
  return lifted;
}

Bytes SegmentSupply::give_back_all(DeviceSegment* list, Status* refused) noexcept {
  Bytes back;
  while (list != nullptr) {
    DeviceSegment* segment = list;
    list = list->next;
    const Bytes size = segment->size;
    const Status given = give_back(segment);
    if (given.is_ok()) {
      back += size;
    } else if (refused != nullptr && refused->is_ok()) {
      *refused = given;
    }
  }
  return back;
}

Bytes SegmentSupply::release_largest(StreamHeap& heap, Bytes need, Bytes at_least) noexcept {
  Bytes back;
  while (back < need) {
    const Bytes now = give_back_all(lift_largest(heap, need - back, at_least));
    if (now == Bytes{}) break;  // none is left that the driver takes
    back += now;
  }
  return back;
}

Bytes SegmentSupply::release_idle(HeapList& heaps, StreamHeap& asking, Bytes need,
                                  Bytes at_least) noexcept {
  const Bytes enough = std::max(need, at_least);
  Bytes back = give_back_all(lift_smallest(asking, enough));
  if (back == Bytes{}) back = give_back_all(lift_smallest_of_others(heaps, asking, enough));
  if (back == Bytes{}) back = release_largest(asking, need, at_least);
  for (StreamHeap& heap : heaps) {
    if (back >= need) break;
    if (&heap != &asking) back += release_largest(heap, need - back, at_least);
  }
  return back;
}

Bytes SegmentSupply::release_all(HeapList& heaps, Status* refused) noexcept {
  Bytes back;
  for (StreamHeap& heap : heaps) back += give_back_all(lift_all(heap), refused);
  return back;
}

Status SegmentSupply::give_back(DeviceSegment* segment) noexcept {
  StreamHeap& heap = *segment->heap.load(std::memory_order_relaxed);
  const Bytes size = segment->size;
  const PoolId id = segment->pool;
  // Out of the map first: once the driver has it back, the range may be another segment again at
  // once.
  shared_.pages.erase(*segment);
  const Status freed = driver_.segment_free(segment->base);
  if (!freed.is_ok()) shared_.pages.insert(*segment);
  {
    const Guard guard(heap.lock);
    block::BlockPool& pool = heap.pool(id);
    const auto index = static_cast<block::SegmentIndex>(segment->index);
    if (freed.is_ok()) {
      pool.remove_segment(index);
    } else {
      const block::BlockIndex block = pool.view(index).first;
      pool.release(block, pool.view(block).stamp);
    }
  }
  if (!freed.is_ok()) return freed;
  ledger_.uncharge(size, id);
  ledger_.recycle(segment);
  return freed;
}

}  // namespace ashlar::inline v0::cache
