#include <ashlar/cache/segment_supply.h>

#include <thread>

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
  // Raised before the question: an announcement of a capture waits until no growth that asked
  // earlier is on its way (C9).
  const GrowthScope growing(growing_);
  const RelaxedCapture relaxed(driver_, shared_.is_capturing());
  if (!relaxed.status().is_ok()) return undo(relaxed.status());
  const Result<Address> base = driver_.segment_alloc(size);
  if (!base.is_ok()) return undo(base.status());
  DeviceSegment* segment = shared_.pages.reserve(base.value(), size, {&heap, request.pool})
                               ? ledger_.new_record()
                               : nullptr;
  if (segment != nullptr) {
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
  }
  static_cast<void>(driver_.segment_free(base.value()));
  return undo({Code::kOutOfMemory, "the host has no memory for a segment's records"});
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
  if (index == block::kNoSegment) return Address{};
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
  for (const PoolId id : kPoolIds) {
    const block::BlockPool& pool = heap.pool(id);
    for (auto at = pool.first_segment(); at != block::kNoSegment; at = pool.next(at)) {
      const block::SegmentView view = pool.view(at);
      const DeviceSegment* record = record_of(view);
      if (record->heap.load() != &heap || record->base != view.base || record->size != view.size)
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
  if (!shared_.pages.reserve(segment->base, segment->size, {&to, request.pool})) return Address{};
  segment->heap.store(&to, std::memory_order_release);
  shared_.pages.insert(*segment);
  const Address address = enter(to, request, segment);
  if (address.is_null()) {
    segment->heap.store(&from, std::memory_order_release);
    shared_.pages.insert(*segment);
  }
  return address;
}

DeviceSegment* SegmentSupply::lift_idle(StreamHeap& heap, Bytes need, Bytes at_least,
                                        Match match) noexcept {
  const Guard guard(heap.lock);
  const LongSectionScope walk;  // to be removed: C31 (step_count.h)
  DeviceSegment* lifted = nullptr;
  Bytes sum;
  for (const PoolId id : kPoolIds) {
    block::BlockPool& pool = heap.pool(id);
    for (block::SegmentIndex at = pool.first_segment(); at != block::kNoSegment && sum < need;
         at = pool.next(at)) {
      const block::SegmentView segment = pool.view(at);
      const bool is_too_small =
          segment.size < at_least || (match == Match::kEnoughByItself && segment.size < need);
      if (!pool.is_idle(at) || is_too_small) continue;
      if (!heap.clock.is_complete(pool.view(segment.first).stamp)) continue;
      pool.lift(segment.first);
      DeviceSegment* record = record_of(segment);
      record->next = lifted;
      lifted = record;
      sum += segment.size;
    }
  }
  return lifted;
}

Bytes SegmentSupply::release_idle(HeapList& heaps, Bytes need, Bytes at_least,
                                  Status* refused) noexcept {
  Bytes back;
  for (const Match match : {Match::kEnoughByItself, Match::kAny}) {
    if (match == Match::kEnoughByItself && need == Bytes::max()) continue;
    for (StreamHeap& heap : heaps) {
      if (back >= need) break;
      DeviceSegment* list = lift_idle(heap, need - back, at_least, match);
      while (list != nullptr) {
        DeviceSegment* segment = list;
        list = list->next;
        const Bytes size = segment->size;
        const Status given = give_back(segment);
        if (given.is_ok()) back += size;
        else if (refused != nullptr && refused->is_ok()) *refused = given;
      }
    }
    if (back > Bytes{}) break;
  }
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
