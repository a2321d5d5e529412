#include <ashlar/cache/segment_supply.h>

#include <algorithm>
#include <array>
#include <optional>
#include <thread>

#include <ashlar/base/checked.h>
#include <ashlar/cache/device_cache.h>
#include <ashlar/cache/headroom.h>
#include <ashlar/cache/history_notes.h>
#include <ashlar/cache/host_refusals.h>
#include <ashlar/cache/mapping_observers.h>
#include <ashlar/cache/nvtx_ranges.h>
#include <ashlar/cache/rounding.h>

namespace ashlar::inline v0::cache {
namespace {

/// Counts a growth that may be under way.
class GrowthScope {
 public:
  explicit GrowthScope(UnderWay<std::atomic<unsigned>>& growths) noexcept
      : growths_(growths), phase_(growths.begin()) {}
  ~GrowthScope() { growths_.end(phase_); }
  GrowthScope(const GrowthScope&) = delete;
  GrowthScope& operator=(const GrowthScope&) = delete;

 private:
  UnderWay<std::atomic<unsigned>>& growths_;
  const unsigned phase_;
};

}  // namespace

Result<Address> SegmentSupply::grow(StreamHeap& heap, const Request& request) noexcept {
  const Bytes size = growth_size(heap, request);
  const NvtxRange range(SlowPath::kGrow, size);
  if (!pages_.serves(heap)) return grow_segment(heap, request, size);
  if (const Bytes first = first_growth(heap, request); first != Bytes{}) {
    const Result<Address> grown = grow_segment(heap, request, first);
    if (grown.code() != Code::kOutOfMemory) return grown;
  }
  const Result<Address> grown = grow_pages(heap, request);
  const bool is_over_budget = grown.code() == Code::kOutOfMemory && pages_.is_over_budget(size);
  return is_over_budget ? grow_segment(heap, request, size) : grown;
}

Result<Address> SegmentSupply::grow_pages(StreamHeap& heap, const Request& request) noexcept {
  // As in grow_segment().
  const GrowthScope growing(growths_);
  const RelaxedCapture relaxed(driver_, shared_.is_capturing());
  if (!relaxed.status().is_ok()) return relaxed.status();
  return pages_.grow(heap, request);
}

Bytes SegmentSupply::first_growth(const StreamHeap& heap, const Request& request) noexcept {
  const Bytes first = shared_.config.first_growth;
  if (first == Bytes{} || request.pool != PoolId::kLarge || heap.is_reserved() ||
      was_short_.load(std::memory_order_relaxed) || !ledger_.settle_limit().is_ok())
    return Bytes{};
  const Result<device::MemoryInfo> memory = driver_.memory_info();
  const Bytes size = std::max(first, growth_size(heap, request));
  return memory.is_ok() && ledger_.is_early(size, memory.value().total) ? size : Bytes{};
}

Result<Address> SegmentSupply::grow_segment(StreamHeap& heap, const Request& request,
                                            Bytes size) noexcept {
  if (const Status charged = ledger_.charge(size); !charged.is_ok()) {
    const Status health = driver_.health();
    return health.is_ok() ? charged : health;
  }
  const auto undo = [&](Status status) -> Result<Address> {
    ledger_.refund(size);
    return status;
  };
  // The growth is counted before is_capturing() is read; begin_capture() raises `captures` before it
  // waits for the growths counted. So one sees the other (C9).
  const GrowthScope growing(growths_);
  const RelaxedCapture relaxed(driver_, shared_.is_capturing());
  if (!relaxed.status().is_ok()) return undo(relaxed.status());
  // Constant while the allocation holds the heap.
  device::Device* const source = heap.membership.options.growth;
  const bool is_of_stream = takes_of_stream(heap);
  const Result<Address> base = is_of_stream ? take_of_stream(size, heap) : take(size, source);
  if (!base.is_ok()) return undo(base.status());
  // Nobody can find the segment yet: where it cannot be entered, it goes back.
  const auto give_back = [&](Status status) {
    if (is_of_stream) {
      // The pool may have given what its stream's earlier work still uses.
      static_cast<void>(driver_.stream_free(base.value(), heap.stream.handle));
      note_kept_by_driver(heap);
    } else {
      static_cast<void>(driver_.segment_free(base.value(), source));
    }
    return undo(status);
  };
  const Status reserved = shared_.pages.reserve(base.value(), size, {&heap, request.pool});
  if (!reserved.is_ok()) return give_back(reserved);
  DeviceSegment* segment = ledger_.new_record(size);
  if (segment == nullptr) return give_back(kShortOfHostMemory);
  segment->base = base.value();
  segment->origin = {source, is_of_stream};
  segment->pool = request.pool;
  segment->heap.store(&heap, std::memory_order_release);
  segment->generation = shared_.mappings.next_generation();
  shared_.pages.insert(*segment);
  MappingEvent event = event_of(*segment);
  tell_mapping(shared_, event);
  if (const Address address = enter(heap, request, segment, nullptr); !address.is_null()) {
    ledger_.commit(size, request.pool);
    return address;
  }
  event.change = MappingChange::kUnmapping;
  tell_mapping(shared_, event);
  shared_.pages.erase(*segment);
  ledger_.recycle(segment);
  return give_back(kShortOfHostMemory);
}

MappingEvent SegmentSupply::event_of(const DeviceSegment& segment) const noexcept {
  return {driver_.traits().id, MappingChange::kMapped, segment.base, segment.size,
          segment.generation};
}

Bytes SegmentSupply::growth_size(const StreamHeap& heap, const Request& request) const noexcept {
  return (pages_.serves(heap) ? checked_round_up(request.size, pages_.page())
                              : segment_size(shared_.config, request.size))
      .value_or(Bytes::max());
}

template <class Ask>
Result<Address> SegmentSupply::take_within(Bytes size, Ask&& ask) noexcept {
  const Result<Address> got = headroom_.within<Result<Address>>(size, ask);
  if (got.code() != Code::kOutOfMemory ||
      shared_.config.backend != AllocatorBackend::kCudaMallocAsync)
    return got;
  // What was freed is the driver's pool's, and serves nothing else until the device has it back. While a capture is announced
  // too: the thread is in the relaxed mode, as in every growth, and what nobody uses is no graph's.
  static_cast<void>(driver_.stream_trim(Bytes{}));
  return headroom_.within<Result<Address>>(size, ask);
}

Result<Address> SegmentSupply::take(Bytes size, device::Device* source) noexcept {
  return take_within(size, [&] { return driver_.segment_alloc(size, source); });
}

bool SegmentSupply::takes_of_stream(StreamHeap& heap) const noexcept {
  if (shared_.config.backend != AllocatorBackend::kCudaMallocAsync || heap.is_reserved())
    return false;
  // Not while it captures, nor where the handle names another thread's stream.
  return heap.cache.uses().may_record(heap);
}

Result<Address> SegmentSupply::take_of_stream(Bytes size, const StreamHeap& heap) noexcept {
  return take_within(size, [&] { return driver_.stream_alloc(size, heap.stream.handle); });
}

Bytes SegmentSupply::below_headroom() noexcept {
  const Bytes headroom = shared_.config.headroom;
  if (headroom == Bytes{}) return Bytes{};
  const Result<device::MemoryInfo> memory = driver_.memory_info();
  return memory.is_ok() ? headroom - std::min(headroom, memory.value().free) : Bytes{};
}

void SegmentSupply::wait_for_growths() noexcept {
  growths_.begin_phase();
  while (growths_.has_earlier()) std::this_thread::yield();
}

Address SegmentSupply::enter(StreamHeap& heap, const Request& request, DeviceSegment* segment,
                             const StreamHeap* former) noexcept {
  const bool may_have_graphs = former != nullptr && former->is_reserved();
  const Guard guard(heap.lock);
  block::BlockPool& pool = heap.pool(request.pool);
  // A stamp of 0 is of memory that nobody has used: it stays complete when a release of the memory pool
  // reopens the clock (C8).
  const std::uint64_t stamp = may_have_graphs ? heap.clock.stamp_release() : 0;
  const block::SegmentIndex index = pool.add_segment(
      segment->base, segment->size, segment->position, stamp, StreamHeap::as_word(segment));
  if (index == block::kNoSegment) {
    HostRefusals::note();
    return Address{};
  }
  segment->entry.index = static_cast<std::uint32_t>(index);
  pass_segment(heap, *segment, former, &heap);
  // The new block itself, not a search: with max_split_size set a search would refuse it for being
  // large.
  const block::BlockIndex block = pool.view(index).first;
  const Address address = heap.take_block(request, block, nullptr);
  if (address.is_null()) {
    pass_segment(heap, *segment, &heap, former);
    pool.lift(block);
    pool.remove_segment(index);
  }
  return address;
}

const char* SegmentSupply::validate(const StreamHeap& heap) const noexcept {
  if (growths_.any()) return "supply: a growth has not ended";
  if (const char* broken = pages_.validate(heap)) return broken;
  for (const PoolId id : kPoolIds) {
    const block::BlockPool& pool = heap.pool(id);
    for (auto at = pool.first_segment(); at != block::kNoSegment; at = pool.next(at)) {
      const block::SegmentView view = pool.view(at);
      const DeviceSegment* record = record_of(view);
      if (record->heap.load() != &heap || record->base != view.base || record->size != view.size ||
          record->position != view.position || record->pool != id ||
          record->entry.index != static_cast<std::uint32_t>(at))
        return "supply(1): a segment's record is not its pool's";
      const Address last =
          shared_.pages.is_by_base() ? view.base : view.base + (view.size - Bytes{1});
      for (const Address a : {view.base, last}) {
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
  segment->idle.stamp = DeviceSegment::kNoStamp;  // stamps of two heaps do not compare
  shared_.pages.insert(*segment);
  const Address address = enter(to, request, segment, &from);
  if (address.is_null()) {
    segment->heap.store(&from, std::memory_order_release);
    shared_.pages.insert(*segment);
  } else {
    ++removals_;
  }
  return address;
}

Status SegmentSupply::free_memory(const DeviceSegment& segment, Behind behind) noexcept {
  UnmappingScope unmapping(shared_, event_of(segment));
  // Out of the map first: once the driver has it back, the range may be another segment again at
  // once.
  shared_.pages.erase(segment);
  const StreamHeap& heap = *segment.heap.load(std::memory_order_relaxed);
  const Status freed = behind == Behind::kItsStream
                           ? driver_.stream_free(segment.base, heap.stream.handle)
                           : driver_.segment_free(segment.base, segment.origin.source);
  if (freed.is_ok()) unmapping.set_gone();
  else shared_.pages.insert(segment);
  return freed;
}

void SegmentSupply::note_kept_by_driver(StreamHeap& heap) noexcept {
  const Guard guard(heap.lock);
  heap.clock.stamp_release();
}

Status SegmentSupply::give_back(DeviceSegment* segment, Behind behind) noexcept {
  StreamHeap& heap = *segment->heap.load(std::memory_order_relaxed);
  const Bytes size = segment->size;
  const PoolId id = segment->pool;
  {
    const Guard guard(heap.lock);
    pass_segment(heap, *segment, &heap, nullptr);
  }
  const Status freed = free_memory(*segment, behind);
  {
    const Guard guard(heap.lock);
    block::BlockPool& pool = heap.pool(id);
    const auto index = static_cast<block::SegmentIndex>(segment->entry.index);
    if (freed.is_ok()) {
      pool.remove_segment(index);
    } else {
      pass_segment(heap, *segment, nullptr, &heap);
      const block::BlockIndex block = pool.view(index).first;
      pool.release(block, pool.view(block).stamp);
    }
  }
  if (!freed.is_ok()) return freed;
  if (behind == Behind::kItsStream) note_kept_by_driver(heap);
  ++removals_;
  ledger_.uncharge(size, id);
  ledger_.recycle(segment);
  return freed;
}

}  // namespace ashlar::inline v0::cache
