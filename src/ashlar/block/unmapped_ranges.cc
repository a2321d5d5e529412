#include <ashlar/block/unmapped_ranges.h>

#include <bit>
#include <new>

namespace ashlar::inline v0::block {
namespace {
constexpr auto kUnmappedState = raw(BlockState::kUnmapped);
}  // namespace

FreeIndex* UnmappedRanges::make_index() noexcept {
  if (pool_.unmapped_ == nullptr) {
    const auto granule_bits = static_cast<unsigned>(std::countr_zero(pool_.granule_.count()));
    std::unique_ptr<FreeIndex> made(new (std::nothrow) FreeIndex(granule_bits));
    // For more records than there are: BlockPool::ready_records() makes room when those grow.
    if (made == nullptr || !made->reserve(pool_.records_.capacity_next())) return nullptr;
    pool_.unmapped_ = std::move(made);
  }
  return pool_.unmapped_.get();
}

SegmentIndex UnmappedRanges::add_segment(Address base, Bytes size, Position position,
                                         std::uint64_t user) noexcept {
  if (!pool_.reserve_record()) return kNoSegment;
  FreeIndex* const index = make_index();
  if (index == nullptr || !index->reserve_window(raw(position), size.count())) return kNoSegment;
  const bool is_first = pool_.counts_.segments == 0;
  const SegmentIndex added =
      pool_.add_segment(base, size, position, 0, user, BlockState::kInTransfer);
  if (added == kNoSegment) return kNoSegment;
  if (is_first) index->forget_window();
  index->extend_window(raw(position), size.count());
  unmap(pool_.view(added).first);
  return added;
}

void UnmappedRanges::lift(BlockIndex block) noexcept {
  pool_.check_state(block, BlockState::kUnmapped);
  const std::uint64_t size = pool_.records_.size(raw(block));
  pool_.unmapped_->remove(pool_.records_, raw(block));
  pool_.counts_.remove_block(BlockState::kUnmapped, size);
  pool_.counts_.add_block(BlockState::kInTransfer, size);
  pool_.records_.state(raw(block)) = raw(BlockState::kInTransfer);
}

BlockIndex UnmappedRanges::lift_part(BlockIndex block, Address begin, Bytes size) noexcept {
  lift(block);
  return part_of_lifted(pool_, block, begin, size, [this](BlockIndex rest) { unmap(rest); });
}

void UnmappedRanges::absorb_next(std::uint32_t index) noexcept {
  BlockRecords& records = pool_.records_;
  const std::uint64_t size = records.size(index) + records.size(records[index].next);
  records.absorb_next(index);
  records.set_size(index, size);
  pool_.counts_.blocks[kUnmappedState] -= 1;
}

BlockIndex UnmappedRanges::unmap(BlockIndex block) noexcept {
  pool_.check_state(block, BlockState::kInTransfer);
  BlockRecords& records = pool_.records_;
  FreeIndex& index = *pool_.unmapped_;
  std::uint32_t merged = raw(block);
  const std::uint64_t size = records.size(merged);
  pool_.counts_.remove_block(BlockState::kInTransfer, size);
  pool_.counts_.add_block(BlockState::kUnmapped, size);
  records.state(merged) = kUnmappedState;
  const std::uint32_t next = records[merged].next;
  const std::uint32_t prev = records[merged].prev;
  // Without a neighbour this reads the null sentinel, which is not unmapped.
  if (records.state(next) == kUnmappedState) {
    index.remove(records, next);
    absorb_next(merged);
  }
  if (records.state(prev) == kUnmappedState) {
    index.remove(records, prev);
    absorb_next(prev);
    merged = prev;
  }
  records.set_stamp(merged, 0);
  index.insert(records, merged);
  return BlockIndex{merged};
}

BlockIndex UnmappedRanges::smallest(Bytes size) const noexcept {
  ASHLAR_ASSERT(size.count() > 0 && size % pool_.granule_ == 0,
                "block(5): a search for a size that is not a positive multiple of the granule");
  if (pool_.unmapped_ == nullptr) return kNoBlock;
  return BlockIndex{pool_.unmapped_->lower_bound(pool_.records_, size.count())};
}

BlockIndex UnmappedRanges::next(Bytes size, Position position) const noexcept {
  ASHLAR_ASSERT(size.count() > 0 && size % pool_.granule_ == 0,
                "block(5): a search for a size that is not a positive multiple of the granule");
  if (pool_.unmapped_ == nullptr) return kNoBlock;
  return BlockIndex{pool_.unmapped_->first_behind(pool_.records_, size.count(), raw(position))};
}

BlockIndex UnmappedRanges::before(BlockIndex block) const noexcept {
  check_in_use(pool_.records_, block);
  return BlockIndex{pool_.records_[raw(block)].prev};
}

}  // namespace ashlar::inline v0::block
