#include <ashlar/cache/stream_reuse.h>

#include <ashlar/cache/device_cache.h>
#include <ashlar/cache/rounding.h>

namespace ashlar::inline v0::cache {

using block::BlockIndex;

namespace {
/// The maximum number of events of one heap that a miss on another stream polls.
constexpr unsigned kPollsPerHeap = 16;
/// The same before each heap is searched: more than a loan adds, so that what was lent comes back
/// though the heap's own stream never allocates.
constexpr unsigned kPollsPerLoan = 4;
/// A memory pool keeps a segment until its release. One that comes from outside may be so many times
/// as large as the one that the driver would be asked for.
constexpr std::uint64_t kSegmentsKeptMax = 2;
/// looks_max_ of a reclaim.
constexpr unsigned kNoLimit = ~0u;

bool has_unmarked(StreamHeap& heap) noexcept ASHLAR_REQUIRES(reclaiming)
    ASHLAR_EXCLUDES(heap.lock) {
  const Guard guard(heap.lock);
  return Epochs::has_unmarked(heap);
}
}  // namespace

Address StreamReuse::steal(HeapList& heaps, StreamHeap& to, const Request& request, Reach reach,
                           unsigned refreshes_max) noexcept {
  looks_max_ = refreshes_max == 0 ? kNoLimit : kLooksPerHold;
  const Address address = find(heaps, to, request, reach, refreshes_max);
  if (!address.is_null()) steals_.fetch_add(1, std::memory_order_relaxed);
  return address;
}

Address StreamReuse::find(HeapList& heaps, StreamHeap& to, const Request& request, Reach reach,
                          unsigned refreshes_max) noexcept {
  for (StreamHeap& from : heaps) {
    if (!is_in_reach(from, to, reach)) continue;
    poll_lender(from);
    if (const Address address = steal_from(from, to, request); !address.is_null()) return address;
  }
  if (uses_.is_capturing()) return Address{};  // C9
  if (const Address address = ask_and_steal(heaps, to, request, reach, refreshes_max);
      !address.is_null())
    return address;
  if (config_.reuse != Reuse::kOrdered || to.is_reserved()) return Address{};
  for (StreamHeap& from : heaps) {
    if (!is_in_reach(from, to, reach) || !has_fit(from, request)) continue;
    if (const Address address = steal_ordered(from, to, request); !address.is_null())
      return address;
  }
  return Address{};
}

Address StreamReuse::borrow_overflow(HeapList& heaps, StreamHeap& to,
                                     const Request& request) noexcept {
  looks_max_ = kNoLimit;
  for (StreamHeap& from : heaps) {
    if (!from.overflows()) continue;
    Request here = request;
    here.may_split = !from.membership.options.no_split;
    const Guard guard(from.lock);
    const bool is_same_stream = from.stream.id == to.stream.id;
    const BlockIndex block =
        complete_fit(from, here, is_same_stream ? kEverything : from.clock.completed());
    if (block == block::kNoBlock) continue;
    // On the same stream the block is ordered behind its earlier work: there is no borrower.
    const Address address =
        is_same_stream ? from.take_block(here, block, nullptr) : lend(from, to, here, block);
    if (address.is_null()) continue;
    steals_.fetch_add(1, std::memory_order_relaxed);
    return address;
  }
  return Address{};
}

void StreamReuse::notice_destroyed(HeapList& heaps, StreamHeap& to,
                                   const Request& request) noexcept {
  if (config_.reuse != Reuse::kOwn && !to.is_reserved()) return;
  for (StreamHeap& from : heaps) {
    const bool may_give = !from.is_reserved() || (to.is_reserved() && is_same_pool(from, to));
    if (&from == &to || !may_give || !from.life.is_alive() || !may_have_fit(from, request))
      continue;
    static_cast<void>(uses_.may_record(from));  // for its effect: a destroyed stream is lost
  }
}

Address StreamReuse::ask_and_steal(HeapList& heaps, StreamHeap& to, const Request& request,
                                   Reach reach, unsigned refreshes_max) noexcept {
  StreamHeap* const begin = heaps.next_after(asked_);
  StreamHeap* from = begin;
  bool has_asked_device = false;
  while (refreshes_max > 0) {
    if (is_in_reach(*from, to, reach) && may_have_fit(*from, request)) {
      --refreshes_max;
      asked_ = from;
      UseTracker::ask_for_unrecorded(*from, kUnrecordedMax);
      UseTracker::retry_unrecorded(*from, kPollsPerHeap);
      {
        const Guard guard(from->lock);
        static_cast<void>(uses_.poll(*from, kPollsPerHeap));
      }
      epochs_.refresh(*from);
      if (!has_asked_device && has_unmarked(*from)) {
        has_asked_device = true;
        uses_.ask_whether_done();
        epochs_.refresh(*from);
      }
      if (const Address address = steal_from(*from, to, request); !address.is_null())
        return address;
    }
    from = heaps.next_after(from);
    if (from == begin) break;
  }
  return Address{};
}

void StreamReuse::poll_lender(StreamHeap& from) noexcept {
  const Guard guard(from.lock);
  if (from.uses.is_poll_due()) static_cast<void>(uses_.poll(from, kPollsPerLoan));
}

bool StreamReuse::may_have_fit(StreamHeap& heap, const Request& request) noexcept {
  const Guard guard(heap.lock);
  return !heap.uses.is_empty() ||
         heap.pool(request.pool).best_fit(request.size, request.fit_end) != block::kNoBlock;
}

bool StreamReuse::has_fit(StreamHeap& heap, const Request& request) noexcept {
  const Guard guard(heap.lock);
  return heap.pool(request.pool).best_fit(request.size, request.fit_end) != block::kNoBlock;
}

template <class Accepts>
BlockIndex StreamReuse::best_accepted_fit(StreamHeap& from, const Request& request,
                                          Accepts&& accepts) const noexcept {
  const block::BlockPool& pool = from.pool(request.pool);
  BlockIndex block = pool.best_fit(request.size, request.fit_end);
  for (unsigned looks = 1; block != block::kNoBlock; ++looks) {
    const block::BlockView view = pool.view(block);
    if (view.size >= request.fit_end) break;
    if (accepts(view, pool.is_whole(block))) return block;
    if (looks == looks_max_) break;
    block = next_fit(from, request.pool, block, looks);
  }
  return block::kNoBlock;
}

BlockIndex StreamReuse::complete_fit(StreamHeap& from, const Request& request,
                                     std::uint64_t covers) const noexcept {
  return best_accepted_fit(
      from, request, [covers](const block::BlockView& view, bool) { return view.stamp <= covers; });
}

BlockIndex StreamReuse::whole_fit(StreamHeap& from, const Request& request,
                                  Bytes segment_max) const noexcept {
  const std::uint64_t covers = from.clock.completed();
  return best_accepted_fit(from, request,
                           [covers, segment_max](const block::BlockView& view, bool is_whole) {
                             return is_whole && view.size <= segment_max && view.stamp <= covers;
                           });
}

BlockIndex StreamReuse::fit_for_pool(StreamHeap& from, const StreamHeap& to,
                                     const Request& request) const noexcept {
  if (is_same_pool(from, to)) {
    const BlockIndex whole = whole_fit(from, request, Bytes::max());
    const bool may_lend = whole == block::kNoBlock && looks_max_ == kNoLimit;
    return may_lend ? complete_fit(from, request, from.clock.completed()) : whole;
  }
  const Bytes grown = segment_size(config_, request.size).value_or(Bytes{});
  return whole_fit(from, request, grown * kSegmentsKeptMax);
}

Address StreamReuse::steal_from(StreamHeap& from, StreamHeap& to, const Request& request) noexcept {
  // Nobody names a memory pool's heap as a user.
  StreamHeap* const borrower = to.is_reserved() ? to.cache.heaps().find_stable(to.stream.id) : &to;
  const Guard guard(from.lock);
  const BlockIndex block = to.is_reserved() ? fit_for_pool(from, to, request)
                                            : complete_fit(from, request, from.clock.completed());
  if (block == block::kNoBlock) return Address{};
  if (from.pool(request.pool).is_whole(block)) return adopt(from, to, request, block);
  return borrower == nullptr ? Address{} : lend(from, *borrower, request, block);
}

Address StreamReuse::lend(StreamHeap& from, StreamHeap& borrower, const Request& request,
                          BlockIndex block) noexcept {
  if (!from.reserve_nodes(2)) return Address{};
  UseNode* const use = from.uses.nodes().take();
  if (!borrower.refer(use)) return from.uses.nodes().give(use), Address{};
  use->is_borrower = true;
  const Address address = from.take_block(request, block, use);
  if (address.is_null()) from.uses.nodes().give(use);
  else borrower.loans.add(request.pool, from.pool(request.pool).view(block).size);
  return address;
}

Address StreamReuse::adopt(StreamHeap& from, StreamHeap& to, const Request& request,
                           BlockIndex block) noexcept {
  const block::SegmentIndex index = from.pool(request.pool).segment(block);
  DeviceSegment* segment = record_of(from.pool(request.pool).view(index));
  // The block stays in `from`, in transfer, until `to` has memory for its records. If `to` has
  // none, release() puts the block back, and release() cannot fail.
  from.pool(request.pool).lift(block);
  from.lock.unlock();
  const Address address = supply_.move(segment, from, to, request);
  from.lock.lock();
  block::BlockPool& pool = from.pool(request.pool);
  if (address.is_null()) {
    segment->entry.index = static_cast<std::uint32_t>(index);
    pool.release(block, pool.view(block).stamp);
  } else {
    pool.remove_segment(index);
  }
  return address;
}

Address StreamReuse::steal_ordered(StreamHeap& from, StreamHeap& to,
                                   const Request& request) noexcept {
  epochs_.mark(from);
  const bool is_retired = from.life.state() == StreamLife::State::kRetired;
  if (!is_retired && from.marks.is_empty()) return Address{};
  const EventHandle event =
      is_retired ? from.last_event.slot.event : from.marks.newest().slot.event;
  const std::uint64_t covers = is_retired ? kEverything : from.marks.newest().covers;
  // The wait goes in first: a block taken without it could not be given back unused.
  if (!uses_.may_record(to) || !driver_.stream_wait(to.stream.handle, event).is_ok())
    return Address{};
  const Guard guard(from.lock);
  const BlockIndex block = complete_fit(from, request, covers);
  return block == block::kNoBlock ? Address{} : lend(from, to, request, block);
}

}  // namespace ashlar::inline v0::cache
