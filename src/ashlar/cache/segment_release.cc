#include <ashlar/cache/segment_release.h>

#include <algorithm>
#include <span>
#include <utility>

#include <ashlar/cache/device_cache.h>

namespace ashlar::inline v0::cache {
namespace {

/// How often the smallest segment is looked for, if it is taken as soon as it is found.
constexpr unsigned kTriesMax = 4;

bool is_idle_longer(const DeviceSegment* a, const DeviceSegment* b) noexcept {
  return a->idle.since < b->idle.since ||
         (a->idle.since == b->idle.since && a->ordinal < b->ordinal);
}

}  // namespace

FirstIdle SegmentRelease::find_oldest(std::uint64_t pass) noexcept {
  FirstIdle found;
  for (StreamHeap& heap : heaps_) {
    SegmentWalk walk;
    const Guard guard(heap.lock);
    while (DeviceSegment* segment = walk.next_idle(heap)) {
      if (segment->pool != PoolId::kLarge) continue;
      const block::BlockPool& pool = heap.pool(segment->pool);
      const auto at = static_cast<block::SegmentIndex>(segment->entry.index);
      const std::uint64_t stamp = pool.view(pool.view(at).first).stamp;
      if (std::exchange(segment->idle.stamp, stamp) != stamp) segment->idle.since = collections_;
      if (segment->idle.asked_in < pass) found.insert(segment, is_idle_longer);
    }
  }
  return found;
}

template <class Find>
void SegmentRelease::release_first(Bytes need, Pass& pass, Find&& find) noexcept {
  // Ends when none is left, or other threads take what is found. To begin again because of others
  // needs one that was given back before.
  for (bool has_asked = true; has_asked && pass.back < need && !pass.is_over;) {
    const FirstIdle found = find();
    has_asked = false;
    for (std::size_t i = 0; i < found.count && pass.back < need; ++i) {
      if (!let_others_in(pass)) {
        has_asked = true;  // the walk begins again, or the pass is over
        break;
      }
      DeviceSegment* const segment = found.segments[i];
      has_asked |= give_back(*segment->heap.load(std::memory_order_relaxed), segment, pass);
    }
  }
}

Bytes SegmentRelease::release_oldest(Bytes need) noexcept {
  ++collections_;
  Pass pass = begin();
  release_first(need, pass, [&]() ASHLAR_REQUIRES(reclaiming) { return find_oldest(pass.number); });
  return pass.back + release_pages(nullptr, need, pass);
}

Bytes SegmentRelease::release_enough_for(StreamHeap* asking, Bytes need, Bytes at_least,
                                         Status* refused) noexcept {
  Pass pass = begin();
  if (asking == nullptr) {
    const Bytes dropped = pages_.drop_stock(need, &pass.refused);
    if (dropped >= need) return dropped;
    need -= dropped;
  }
  const Bytes enough = std::max(need, at_least);
  if (asking != nullptr) release_smallest(*asking, enough, pass);
  if (pass.back == Bytes{}) {
    StreamHeap* const other = find_smallest_of_others(asking, enough, pass);
    // Taken meanwhile by its own stream: then the next one of that heap, or none.
    if (other != nullptr) release_smallest(*other, enough, pass);
  }
  if (pass.back == Bytes{} && asking != nullptr) release_largest(*asking, need, at_least, pass);
  for (StreamHeap& heap : heaps_) {
    if (&heap != asking) release_largest(heap, need, at_least, pass);
  }
  const Bytes pages = release_pages(asking, need, pass);
  if (refused != nullptr) *refused = pass.refused;
  return pass.back + pages;
}

Result<Address> SegmentRelease::grow(StreamHeap& heap, const Request& request) noexcept {
  std::uint64_t shortages = supply_.pages().address_shortages();
  Result<Address> grown = supply_.grow(heap, request);
  for (const bool empties_ranges : {false, true}) {
    // Only where the device had no range for pages: a page, or a pool's growth device, may answer kOutOfAddresses too,
    // and ranges of this device are of no help there.
    const bool lacks_range = supply_.pages().address_shortages() != shortages;
    if (grown.code() != Code::kOutOfAddresses || !lacks_range || shared_.is_capturing()) break;
    if (empties_ranges) release_all();
    const std::uint64_t before = supply_.pages().segment_removals();
    Status refused;
    release_addresses(&refused);
    if (supply_.pages().segment_removals() == before) continue;
    shortages = supply_.pages().address_shortages();
    grown = supply_.grow(heap, request);
  }
  return grown;
}

Bytes SegmentRelease::release_all(Status* refused) noexcept {
  Pass pass = begin();
  for (StreamHeap& heap : heaps_) release_all_of(heap, pass);
  const Bytes pages = release_pages(nullptr, Bytes::max(), pass);
  pages_.drop_stock(Bytes::max(), &pass.refused);
  if (refused != nullptr) *refused = pass.refused;
  return pass.back + pages;
}

Bytes SegmentRelease::release_pages(StreamHeap* asking, Bytes need, Pass& pass) noexcept {
  if (pass.is_over || pass.back >= need) return Bytes{};
  const bool moves =
      asking != nullptr && supply_.pages().serves(*asking) && shared_.config.move != Move::kNever;
  const PagesTo to = moves ? PagesTo::kStock : PagesTo::kDriver;
  return pages_.release(asking, need - pass.back, to, &pass.refused);
}

SegmentRelease::Pass SegmentRelease::begin() noexcept {
  Pass pass;
  pass.number = ++passes_;
  pass.removals = supply_.removals();
  return pass;
}

bool SegmentRelease::let_others_in(Pass& pass) noexcept {
  if (!pass.has_given || !lock_.let_others_in()) return true;
  pass.has_given = false;  // the next hold has given back none yet
  pass.is_over = shared_.is_capturing();
  const bool is_same = pass.removals == supply_.removals();
  pass.removals = supply_.removals();
  return is_same && !pass.is_over;
}

bool SegmentRelease::give_back(StreamHeap& heap, DeviceSegment* segment, Pass& pass,
                               Behind behind) noexcept {
  {
    const Guard guard(heap.lock);
    if (!may_go_back(heap, segment, behind)) return false;  // taken meanwhile
    if (segment->idle.asked_in >= pass.number) {
      // By another thread's pass meanwhile, or by this one before it began again; in vain.
      if (pass.refused.is_ok()) pass.refused = last_refusal_;
      return false;
    }
    // Nobody finds the segment from now on; it is counted as in transfer (C18).
    block::BlockPool& pool = heap.pool(segment->pool);
    pool.lift(pool.view(static_cast<block::SegmentIndex>(segment->entry.index)).first);
  }
  segment->idle.asked_in = pass.number;
  pass.has_given = true;
  const Bytes size = segment->size;
  const Status given = supply_.give_back(segment, behind);
  pass.removals = supply_.removals();
  if (given.is_ok()) {
    pass.back += size;
    return true;
  }
  last_refusal_ = given;
  if (pass.refused.is_ok()) pass.refused = given;
  return true;
}

void SegmentRelease::release_smallest(StreamHeap& heap, Bytes size, Pass& pass) noexcept {
  for (unsigned tries = 0; tries < kTriesMax && pass.back == Bytes{} && !pass.is_over; ++tries) {
    DeviceSegment* segment = nullptr;
    {
      const Guard guard(heap.lock);
      segment = smallest_idle(heap, size, pass.number);
    }
    if (segment == nullptr) return;
    if (let_others_in(pass)) static_cast<void>(give_back(heap, segment, pass));
  }
}

bool SegmentRelease::give_back_batch(StreamHeap& heap, std::span<DeviceSegment* const> batch,
                                     Pass& pass, Behind behind) noexcept {
  for (DeviceSegment* const segment : batch) {
    // Each time, as other threads may have been let in: behind work only where the handle names the heap's stream, which
    // nobody is about to destroy.
    const bool is_open =
        behind == Behind::kNone || (heap.life.is_alive() && heap.cache.uses().may_record(heap));
    if (!is_open) return false;
    // After others were let in a segment of the batch may be gone: the next batch is found anew.
    if (!let_others_in(pass)) return !pass.is_over;
    static_cast<void>(give_back(heap, segment, pass, behind));
  }
  return !batch.empty();
}

void SegmentRelease::release_finished(const GiveBackList& heaps) noexcept {
  Pass pass = begin();
  for (StreamHeap& heap : heaps) {
    for (bool goes_on = !pass.is_over; goes_on;) {
      IdleBatch batch;
      {
        const Guard guard(heap.lock);
        if (heap.clock.has_none_left()) break;
        const std::uint64_t completed = heap.clock.completed();
        batch = next_idle(heap, pass.number, Behind::kNone);
        heap.clock.note_walk(completed, !batch.is_empty_handed());
      }
      goes_on = give_back_batch(heap, batch.all(), pass, Behind::kNone);
    }
  }
}

void SegmentRelease::release_behind_work(const GiveBackList& heaps) noexcept {
  Pass pass = begin();
  for (StreamHeap& heap : heaps) {
    for (bool goes_on = !pass.is_over; goes_on;) {
      IdleBatch batch;
      {
        const Guard guard(heap.lock);
        batch = next_idle(heap, pass.number, Behind::kItsStream);
      }
      goes_on = give_back_batch(heap, batch.all(), pass, Behind::kItsStream);
    }
  }
}

StreamHeap* SegmentRelease::find_smallest_of_others(const StreamHeap* asking, Bytes size,
                                                    const Pass& pass) noexcept {
  StreamHeap* best = nullptr;
  SizeRank best_rank;
  for (StreamHeap& heap : heaps_) {
    if (&heap == asking) continue;
    const Guard guard(heap.lock);
    const DeviceSegment* segment = smallest_idle(heap, size, pass.number);
    if (segment == nullptr) continue;
    const SizeRank rank{segment->size, segment->ordinal};
    if (best != nullptr && !rank.is_smaller_than(best_rank)) continue;
    best = &heap;
    best_rank = rank;
  }
  return best;
}

void SegmentRelease::release_largest(StreamHeap& heap, Bytes need, Bytes at_least,
                                     Pass& pass) noexcept {
  release_first(need, pass, [&]() ASHLAR_REQUIRES(reclaiming) {
    return find_largest(heap, at_least, pass.number);
  });
}

void SegmentRelease::release_all_of(StreamHeap& heap, Pass& pass) noexcept {
  SegmentWalk walk;
  while (!pass.is_over) {
    DeviceSegment* segment = nullptr;
    {
      const Guard guard(heap.lock);
      walk.begin_hold();
      segment = walk.next_idle(heap);
    }
    if (segment == nullptr) return;
    if (let_others_in(pass)) {
      static_cast<void>(give_back(heap, segment, pass));
    } else {
      walk = SegmentWalk{};
    }
  }
}

}  // namespace ashlar::inline v0::cache
