// The block pool's functions outside the hot path: segments, state changes, queries.
#include <ashlar/block/block_pool.h>

#include <algorithm>
#include <bit>

#include <ashlar/base/checked.h>

namespace ashlar::inline v0::block {
namespace {

constexpr std::uint64_t kGranuleMin = 16;
constexpr std::uint64_t kGranuleMax = std::uint64_t{64} * 1024;

}  // namespace

BlockPool::BlockPool(Bytes granule)
    : granule_(granule), index_(static_cast<unsigned>(std::countr_zero(granule.count()))) {
  ASHLAR_ASSERT(is_power_of_two(granule.count()), "block(5): the granule is not a power of two");
  ASHLAR_ASSERT(granule.count() >= kGranuleMin && granule.count() <= kGranuleMax,
                "block(5): granule out of range");
}

BlockPool::~BlockPool() = default;

// Segments.

SegmentIndex BlockPool::add_segment(Address base, Bytes size, Position position,
                                    std::uint64_t stamp, std::uint64_t user,
                                    BlockState state) noexcept {
  ASHLAR_ASSERT(state == BlockState::kFree || state == BlockState::kInTransfer,
                "block: a new segment is free or in transfer");
  ASHLAR_ASSERT(size.count() > 0 && size % granule_ == 0,
                "block(5): a segment's size is not a positive multiple of the granule");
  ASHLAR_ASSERT(size.count() >> 63 == 0,
                "block(8): a segment too large for its requests to fit an overflow record");
  ASHLAR_ASSERT(base.value() % granule_.count() == 0,
                "block(5): a segment's address is not a multiple of the granule");
  ASHLAR_ASSERT(base.value() <= Bytes::max().count() - size.count(),
                "block(5): a segment extends past the last address");
  ASHLAR_ASSERT(raw(position) % granule_.count() == 0,
                "block(5): a segment's position is not a multiple of the granule");
  ASHLAR_ASSERT(raw(position) <= Bytes::max().count() - size.count(),
                "block(5): a segment extends past the last position");
  if (!reserve_record() || !records_.segments().reserve_one() ||
      !index_.reserve_window(raw(position), size.count())) {
    return kNoSegment;
  }
  if (counts_.segments == 0) {
    records_.center_on(base.value());
    index_.forget_window();
  }

  const std::uint32_t segment = records_.segments().take(kInUse);
  const std::uint32_t block = records_.take(raw(state));
  SegmentRecord& s = records_.segments()[segment];
  s = SegmentRecord{base.value(), size.count(), user, block, kNone, segments_first_};
  records_.segments().column<SegmentShift>(segment).bytes = raw(position) - base.value();
  if (segments_first_ != kNone) records_.segments()[segments_first_].prev = segment;
  segments_first_ = segment;
  counts_.segments += 1;
  counts_.segment_bytes += size;

  records_[block] = BlockRecord{};
  records_.set_address(block, base.value());
  records_.set_size(block, size.count());
  records_.set_stamp(block, stamp);
  records_.set_segment(block, segment);
  counts_.add_block(state, size.count());
  if (state == BlockState::kFree) count_idle(block, size.count(), true);
  index_.extend_window(raw(position), size.count());
  if (state == BlockState::kFree) index_.insert(records_, block);
  return SegmentIndex{segment};
}

bool BlockPool::ready_records() noexcept {
  if (records_.must_grow()) {
    if (!index_.reserve(records_.capacity_next())) return false;
    if (unmapped_ != nullptr && !unmapped_->reserve(records_.capacity_next())) return false;
  }
  if (!records_.reserve_one()) return false;
  if (records_.is_nearly_full() && !records_.grow_ahead()) {
    index_.grow_ahead(records_.capacity_next());
    if (unmapped_ != nullptr) unmapped_->grow_ahead(records_.capacity_next());
  }
  return true;
}

void BlockPool::remove_segment(SegmentIndex segment) noexcept {
  SegmentRecord& s = records_.segments()[raw(segment)];
  ASHLAR_ASSERT(records_.segments().state(raw(segment)) != kUnused, "block(7): no such segment");
  const std::uint32_t block = s.first;
  ASHLAR_ASSERT(records_.is_whole_segment(block, raw(BlockState::kInTransfer)),
                "block(1): a segment is removed that is not one block in transfer");
  counts_.remove_block(BlockState::kInTransfer, s.size);
  counts_.segments -= 1;
  counts_.segment_bytes -= Bytes{s.size};
  records_.give_back(block);
  if (s.prev != kNone) {
    records_.segments()[s.prev].next = s.next;
  } else {
    segments_first_ = s.next;
  }
  if (s.next != kNone) records_.segments()[s.next].prev = s.prev;
  records_.segments().give_back(raw(segment));
}

bool BlockPool::is_idle(SegmentIndex segment) const noexcept {
  return records_.is_whole_segment(raw(view(segment).first), raw(BlockState::kFree));
}

// The operations.

BlockIndex BlockPool::next_fit(BlockIndex block) const noexcept {
  ASHLAR_ASSERT(state(block) == BlockState::kFree, "block: next_fit of a block that is not free");
  return BlockIndex{index_.successor(records_, raw(block))};
}

BlockIndex BlockPool::next_fit(Bytes size, Position position) const noexcept {
  ASHLAR_ASSERT(size.count() > 0 && size % granule_ == 0,
                "block(5): next_fit behind a size that is not a positive multiple of the granule");
  return BlockIndex{index_.first_behind(records_, size.count(), raw(position))};
}

void BlockPool::defer(BlockIndex block) noexcept {
  check_state(block, BlockState::kLive);
  counts_.remove_block(BlockState::kLive, records_.size(raw(block)));
  counts_.add_block(BlockState::kPending, records_.size(raw(block)));
  records_.state(raw(block)) = raw(BlockState::kPending);
}

void BlockPool::undefer(BlockIndex block) noexcept {
  check_state(block, BlockState::kPending);
  counts_.remove_block(BlockState::kPending, records_.size(raw(block)));
  counts_.add_block(BlockState::kLive, records_.size(raw(block)));
  records_.state(raw(block)) = raw(BlockState::kLive);
}

void BlockPool::lift(BlockIndex block) noexcept {
  check_state(block, BlockState::kFree);
  count_idle(raw(block), records_.size(raw(block)), false);
  index_.remove(records_, raw(block));
  counts_.remove_block(BlockState::kFree, records_.size(raw(block)));
  counts_.add_block(BlockState::kInTransfer, records_.size(raw(block)));
  records_.state(raw(block)) = raw(BlockState::kInTransfer);
}

BlockIndex BlockPool::divide(BlockIndex block, Bytes size) noexcept {
  check_state(block, BlockState::kInTransfer);
  ASHLAR_ASSERT(size.count() > 0 && size % granule_ == 0,
                "block(5): divide at a size that is not a positive multiple of the granule");
  ASHLAR_ASSERT(size < this->size(block), "block(5): divide leaves nothing of the block");
  if (!reserve_record()) return kNoBlock;
  counts_.blocks[raw(BlockState::kInTransfer)] += 1;
  const std::uint32_t index = raw(block);
  return BlockIndex{
      records_.split(index, records_.address(index), records_.size(index), size.count())};
}

bool BlockPool::take_lifted(BlockIndex block, Bytes requested, std::uint64_t user) noexcept {
  check_state(block, BlockState::kInTransfer);
  const std::uint64_t size = records_.size(raw(block));
  ASHLAR_ASSERT(requested.count() <= size, "block(8) C1: take for a request larger than the size");
  if (!map_.reserve_one(records_)) return false;
  counts_.remove_block(BlockState::kInTransfer, size);
  own(raw(block), records_.address(raw(block)), size, requested, user);
  return true;
}

// Queries.

SegmentView BlockPool::view(SegmentIndex segment) const noexcept {
  const SegmentRecord& s = records_.segments()[raw(segment)];
  ASHLAR_ASSERT(records_.segments().state(raw(segment)) != kUnused, "block(7): no such segment");
  const std::uint64_t shift = records_.segments().column<SegmentShift>(raw(segment)).bytes;
  return SegmentView{Address{s.base}, Bytes{s.size}, Position{s.base + shift}, s.user,
                     BlockIndex{s.first}};
}

SegmentIndex BlockPool::first_segment() const noexcept { return SegmentIndex{segments_first_}; }
SegmentIndex BlockPool::next(SegmentIndex segment) const noexcept {
  ASHLAR_ASSERT(records_.segments().state(raw(segment)) != kUnused, "block(7): no such segment");
  return SegmentIndex{records_.segments()[raw(segment)].next};
}
void BlockPool::set_user(BlockIndex block, std::uint64_t user) noexcept {
  ASHLAR_ASSERT(is_owned(raw(state(block))),
                "block: only live and pending blocks have a user word");
  const std::uint64_t size = records_.size(raw(block));
  records_.set_request(raw(block), size, records_.requested(raw(block), size), user);
}

void BlockPool::set_user(SegmentIndex segment, std::uint64_t user) noexcept {
  ASHLAR_ASSERT(records_.segments().state(raw(segment)) != kUnused, "block(7): no such segment");
  records_.segments()[raw(segment)].user = user;
}

Bytes BlockPool::largest_free() const noexcept {
  const std::uint32_t found = index_.largest(records_);
  return found == kNone ? Bytes{} : Bytes{records_.size(found)};
}

BlockIndex lift_part(BlockPool& pool, BlockIndex block, Address begin, Bytes size) noexcept {
  const std::uint64_t stamp = pool.view(block).stamp;
  pool.lift(block);
  return part_of_lifted(pool, block, begin, size,
                        [&](BlockIndex rest) { pool.release(rest, stamp); });
}

BlockIndex take_part(BlockPool& pool, BlockIndex block, Address begin, Bytes size,
                     Bytes requested) noexcept {
  const std::uint64_t stamp = pool.view(block).stamp;
  const BlockIndex part = lift_part(pool, block, begin, size);
  if (part == kNoBlock || pool.take_lifted(part, requested, 0)) return part;
  pool.release(part, stamp);
  return kNoBlock;
}

}  // namespace ashlar::inline v0::block
