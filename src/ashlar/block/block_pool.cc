#include <ashlar/block/block_pool.h>

#include <algorithm>
#include <bit>

#include <ashlar/base/checked.h>

namespace ashlar::inline v0::block {
namespace {

constexpr std::uint64_t kGranuleMin = 16;
constexpr std::uint64_t kGranuleMax = 64 * 1024;

}  // namespace

BlockPool::BlockPool(Bytes granule)
    : granule_(granule), index_(static_cast<unsigned>(std::countr_zero(granule.count()))) {
  ASHLAR_ASSERT(is_power_of_two(granule.count()), "block(5): the granule is not a power of two");
  ASHLAR_ASSERT(granule.count() >= kGranuleMin && granule.count() <= kGranuleMax,
                "block(5): granule out of range");
}

BlockPool::~BlockPool() = default;

// Segments.

SegmentIndex BlockPool::add_segment(Address base, Bytes size, std::uint64_t stamp,
                                    std::uint64_t user, BlockState state) noexcept {
  ASHLAR_ASSERT(state == BlockState::kFree || state == BlockState::kInTransfer,
                "block: a segment begins free or in transfer");
  ASHLAR_ASSERT(size.count() > 0 && size % granule_ == 0, "block(5): a segment's size");
  ASHLAR_ASSERT(size.count() >> 63 == 0, "block(8): a segment whose requests do not fit a record");
  ASHLAR_ASSERT(base.value() % granule_.count() == 0, "block(5): a segment's address");
  ASHLAR_ASSERT(base.value() <= Bytes::max().count() - size.count(),
                "block(5): a segment past the last address");
  if (!reserve_record() || !segments_.reserve_one() || !order_.reserve(counts_.segments + 1))
    return kNoSegment;
  if (counts_.segments == 0) records_.come_near(base.value());

  const std::uint32_t segment = segments_.take(kInUse);
  const std::uint32_t block = records_.take(raw(state));
  SegmentRecord& s = segments_[segment];
  s = SegmentRecord{base.value(), size.count(), user, block, kNone, segments_first_};
  if (segments_first_ != kNone) segments_[segments_first_].prev = segment;
  segments_first_ = segment;
  counts_.segments += 1;
  counts_.segment_bytes += size;

  records_[block] = BlockRecord{};
  records_.set_address(block, base.value());
  records_.set_size(block, size.count());
  records_.set_stamp(block, stamp);
  count_in(state, size.count());
  if (state == BlockState::kFree) {
    count_idle(block, size.count(), true);
    order_.insert(segments_, segment);
  } else {
    records_.link(block).to = segment;
  }
  if (index_.extend_window(base.value(), size.count())) {
    reindex();
  } else if (state == BlockState::kFree) {
    index_.insert(records_, block);
  }
  return SegmentIndex{segment};
}

/// The index's keys changed: builds it anew from the segments.
void BlockPool::reindex() noexcept {
  index_.clear();
  for (std::uint32_t s = segments_first_; s != kNone; s = segments_[s].next) {
    for (std::uint32_t b = segments_[s].first; b != kNone; b = records_[b].next) {
      if (records_.state(b) == raw(BlockState::kFree)) index_.insert(records_, b);
    }
  }
}

void BlockPool::remove_segment(SegmentIndex segment) noexcept {
  SegmentRecord& s = segments_[raw(segment)];
  ASHLAR_ASSERT(segments_.state(raw(segment)) != kUnused, "block(7): no such segment");
  const std::uint32_t block = s.first;
  check_state(BlockIndex{block}, BlockState::kInTransfer);
  ASHLAR_ASSERT(is_whole(records_[block]),
                "block(1): a segment is dropped while it has several blocks");
  count_out(BlockState::kInTransfer, s.size);
  counts_.segments -= 1;
  counts_.segment_bytes -= Bytes{s.size};
  records_.put(block);
  if (s.prev != kNone) {
    segments_[s.prev].next = s.next;
  } else {
    segments_first_ = s.next;
  }
  if (s.next != kNone) segments_[s.next].prev = s.prev;
  segments_.put(raw(segment));
}

bool BlockPool::is_idle(SegmentIndex segment) const noexcept {
  const BlockIndex first = view(segment).first;
  return state(first) == BlockState::kFree && is_whole(first);
}

// The operations.

BlockIndex BlockPool::next_fit(BlockIndex block) const noexcept {
  ASHLAR_ASSERT(state(block) == BlockState::kFree, "block: next_fit of a block that is not free");
  return BlockIndex{index_.successor(records_, raw(block))};
}

void BlockPool::defer(BlockIndex block) noexcept {
  check_state(block, BlockState::kLive);
  count_out(BlockState::kLive, records_.size(raw(block)));
  count_in(BlockState::kPending, records_.size(raw(block)));
  records_.state(raw(block)) = raw(BlockState::kPending);
}

void BlockPool::undefer(BlockIndex block) noexcept {
  check_state(block, BlockState::kPending);
  count_out(BlockState::kPending, records_.size(raw(block)));
  count_in(BlockState::kLive, records_.size(raw(block)));
  records_.state(raw(block)) = raw(BlockState::kLive);
}

void BlockPool::lift(BlockIndex block) noexcept {
  check_state(block, BlockState::kFree);
  count_idle(raw(block), records_.size(raw(block)), false);
  index_.remove(records_, raw(block));
  if (is_whole(block))
    records_.link(raw(block)).to = order_.erase(segments_, address(block).value());
  count_out(BlockState::kFree, records_.size(raw(block)));
  count_in(BlockState::kInTransfer, records_.size(raw(block)));
  records_.state(raw(block)) = raw(BlockState::kInTransfer);
}

// Queries.

SegmentView BlockPool::view(SegmentIndex segment) const noexcept {
  const SegmentRecord& s = segments_[raw(segment)];
  ASHLAR_ASSERT(segments_.state(raw(segment)) != kUnused, "block(7): no such segment");
  return SegmentView{Address{s.base}, Bytes{s.size}, s.user, BlockIndex{s.first}};
}

SegmentIndex BlockPool::segment(BlockIndex block) const noexcept {
  if (is_whole(block) && state(block) == BlockState::kInTransfer)
    return SegmentIndex{records_.link(raw(block)).to};
  return SegmentIndex{order_.at(segments_, address(block).value())};
}
SegmentIndex BlockPool::first_segment() const noexcept { return SegmentIndex{segments_first_}; }
SegmentIndex BlockPool::next(SegmentIndex segment) const noexcept {
  ASHLAR_ASSERT(segments_.state(raw(segment)) != kUnused, "block(7): no such segment");
  return SegmentIndex{segments_[raw(segment)].next};
}
void BlockPool::set_user(BlockIndex block, std::uint64_t user) noexcept {
  ASHLAR_ASSERT(is_owned(raw(state(block))),
                "block: only live and pending blocks have a user's word");
  const std::uint64_t size = records_.size(raw(block));
  records_.set_request(raw(block), size, records_.requested(raw(block), size), user);
}

void BlockPool::set_user(SegmentIndex segment, std::uint64_t user) noexcept {
  ASHLAR_ASSERT(segments_.state(raw(segment)) != kUnused, "block(7): no such segment");
  segments_[raw(segment)].user = user;
}

Bytes BlockPool::largest_free() const noexcept {
  const std::uint32_t found = index_.largest(records_);
  return found == kNone ? Bytes{} : Bytes{records_.size(found)};
}

}  // namespace ashlar::inline v0::block
