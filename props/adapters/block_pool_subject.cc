#include "props/adapters/block_pool_subject.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include <ashlar/block/unmapped_ranges.h>

namespace ashlar::props {

using block::BlockIndex;
using block::kNoBlock;
using block::SegmentIndex;

Status BlockPoolSubject::grow(Address base, Bytes size, std::uint64_t ordinal,
                              std::uint64_t stamp) {
  const block::Position position{grown_.count()};
  if (pool_.add_segment(base, size, position, stamp, ordinal) == block::kNoSegment) {
    return {Code::kOutOfMemory, "no memory for the records"};
  }
  grown_ += size;
  return Status::ok();
}

Status BlockPoolSubject::shrink(Address base) {
  const SegmentIndex segment = segment_at(base);
  if (segment == block::kNoSegment || !pool_.is_idle(segment))
    return {Code::kBusy, "not one free block"};
  pool_.lift(pool_.view(segment).first);
  pool_.remove_segment(segment);
  return Status::ok();
}

Status BlockPoolSubject::reserve(Address base, Bytes size, std::uint64_t ordinal) {
  const block::Position position{grown_.count()};
  if (block::UnmappedRanges(pool_).add_segment(base, size, position, ordinal) ==
      block::kNoSegment) {
    return {Code::kOutOfMemory, "no memory for the records"};
  }
  grown_ += size;
  return Status::ok();
}

Status BlockPoolSubject::unmap(Address address) {
  const BlockIndex block = block_at(address, BlockState::kInTransfer);
  if (block == kNoBlock) return {Code::kNotFound, "no block in transfer is there"};
  block::UnmappedRanges(pool_).unmap(block);
  return Status::ok();
}

Status BlockPoolSubject::lift_unmapped(Address address) {
  const BlockIndex block = block_at(address, BlockState::kUnmapped);
  if (block == kNoBlock) return {Code::kNotFound, "no unmapped block is there"};
  block::UnmappedRanges(pool_).lift(block);
  return Status::ok();
}

Result<Address> BlockPoolSubject::allocate(const spec::PoolRequest& request) {
  const BlockIndex fit = pool_.best_fit(request.size, request.size_end);
  if (fit == kNoBlock) return {Code::kOutOfMemory, "no free block fits"};
  const BlockIndex taken =
      pool_.take(fit, request.size, request.split, request.requested, request.user);
  if (taken == kNoBlock) return {Code::kOutOfMemory, "no memory for the records"};
  return pool_.address(taken);
}

Status BlockPoolSubject::release(Address address, std::uint64_t stamp) {
  const BlockIndex block = pool_.find(address);
  if (block == kNoBlock) return {Code::kUnknownPointer, "no live or pending block starts there"};
  if (pool_.state(block) == BlockState::kPending)
    return {Code::kDoubleFree, "the block's free is pending"};
  pool_.release(block, stamp);
  return Status::ok();
}

Status BlockPoolSubject::defer(Address address) {
  const BlockIndex block = pool_.find(address);
  if (block == kNoBlock) return {Code::kUnknownPointer, "no live or pending block starts there"};
  if (pool_.state(block) == BlockState::kPending)
    return {Code::kDoubleFree, "the block's free is pending"};
  pool_.defer(block);
  // Defers, undoes that, and defers again: an undone deferral must leave no trace.
  pool_.undefer(block);
  pool_.defer(block);
  return Status::ok();
}

Status BlockPoolSubject::complete(Address address, std::uint64_t stamp) {
  const BlockIndex block = pool_.find(address);
  if (block == kNoBlock) return {Code::kUnknownPointer, "no live or pending block starts there"};
  if (pool_.state(block) == BlockState::kLive) return {Code::kBusy, "the block is live"};
  pool_.release(block, stamp);
  return Status::ok();
}

Status BlockPoolSubject::lift(Address address) {
  const BlockIndex block = block_at(address, BlockState::kFree);
  if (block == kNoBlock) return {Code::kNotFound, "no free block is there"};
  pool_.lift(block);
  return Status::ok();
}

Status BlockPoolSubject::lower(Address address, std::uint64_t stamp) {
  const BlockIndex block = block_at(address, BlockState::kInTransfer);
  if (block == kNoBlock) return {Code::kNotFound, "no block in transfer is there"};
  pool_.release(block, stamp);
  return Status::ok();
}

Status BlockPoolSubject::divide(Address address, Bytes size) {
  const BlockIndex block = block_at(address, BlockState::kInTransfer);
  if (block == kNoBlock) return {Code::kNotFound, "no block in transfer is there"};
  if (size == Bytes{} || size >= pool_.size(block))
    return {Code::kInvalidArgument, "a part without bytes"};
  if (pool_.divide(block, size) == kNoBlock)
    return {Code::kHostOutOfMemory, "no memory for a record"};
  return Status::ok();
}

Status BlockPoolSubject::take_lifted(Address address, Bytes requested, std::uint64_t user) {
  const BlockIndex block = block_at(address, BlockState::kInTransfer);
  if (block == kNoBlock) return {Code::kNotFound, "no block in transfer is there"};
  if (requested > pool_.size(block))
    return {Code::kInvalidArgument, "more is requested than it has"};
  if (!pool_.take_lifted(block, requested, user))
    return {Code::kHostOutOfMemory, "no memory for an entry of the address map"};
  return Status::ok();
}

bool BlockPoolSubject::owns(Address address) const { return pool_.find(address) != kNoBlock; }

void BlockPoolSubject::map(spec::PoolMap* map) const {
  segments_.clear();
  for (SegmentIndex s = pool_.first_segment(); s != block::kNoSegment; s = pool_.next(s)) {
    segments_.emplace_back(pool_.view(s).base, s);
  }
  std::sort(segments_.begin(), segments_.end());
  map->segments.clear();
  const auto& expected = pool_.counts().blocks;
  map->blocks.resize(std::accumulate(std::begin(expected), std::end(expected), std::uint64_t{0}));
  std::size_t count = 0;
  for (const auto& [base, segment] : segments_) {
    const block::SegmentView view = pool_.view(segment);
    map->segments.push_back({view.base, view.size, view.user});
    for (BlockIndex b = view.first; b != kNoBlock; b = pool_.next(b)) {
      const block::BlockView v = pool_.view(b);
      const bool owned = v.state == BlockState::kLive || v.state == BlockState::kPending;
      const SegmentIndex in = pool_.segment(b);
      const Address home = in == segment ? base : pool_.view(in).base;
      if (count == map->blocks.size()) map->blocks.resize(count + 1);
      map->blocks[count++] = {v.address,
                              v.size,
                              v.requested,
                              home,
                              owned ? 0 : v.stamp,
                              v.user,
                              static_cast<spec::PoolState>(v.state)};
    }
  }
  map->blocks.resize(count);
}

spec::PoolBooks BlockPoolSubject::books() const {
  const block::PoolCounts& counts = pool_.counts();
  spec::PoolBooks books;
  books.segments = counts.segments;
  for (unsigned i = 0; i < spec::kPoolStates; ++i) {
    books.blocks[i] = counts.blocks[i];
    books.bytes[i] = counts.bytes[i];
  }
  books.segment_bytes = counts.segment_bytes;
  books.requested_bytes = counts.requested_bytes;
  books.idle_segments = counts.idle_segments;
  books.idle_bytes = counts.idle_bytes;
  books.largest_free = pool_.largest_free();
  return books;
}

void BlockPoolSubject::free_order(std::vector<Address>* order) const {
  order->clear();
  for (BlockIndex b = pool_.best_fit(pool_.granule(), Bytes::max()); b != kNoBlock;
       b = pool_.next_fit(b)) {
    order->push_back(pool_.address(b));
    if (order->size() > pool_.counts().blocks[0]) return;  // a ring: the checker says so
  }
}

void BlockPoolSubject::unmapped_order(std::vector<Address>* order) const {
  order->clear();
  const block::UnmappedRanges unmapped(pool_);
  for (BlockIndex b = unmapped.smallest(pool_.granule()); b != kNoBlock;) {
    const block::BlockView view = pool_.view(b);
    order->push_back(view.address);
    if (order->size() > pool_.counts().blocks[spec::kPoolStates - 1]) return;  // a ring
    b = unmapped.next(view.size, view.position);
  }
}

BlockIndex BlockPoolSubject::block_at(Address address, BlockState state) const {
  for (SegmentIndex s = pool_.first_segment(); s != block::kNoSegment; s = pool_.next(s)) {
    const block::SegmentView view = pool_.view(s);
    if (address < view.base || address >= view.base + view.size) continue;
    for (BlockIndex b = view.first; b != kNoBlock; b = pool_.next(b)) {
      if (pool_.address(b) == address && pool_.state(b) == state) return b;
    }
  }
  return kNoBlock;
}

SegmentIndex BlockPoolSubject::segment_at(Address base) const {
  for (SegmentIndex s = pool_.first_segment(); s != block::kNoSegment; s = pool_.next(s)) {
    if (pool_.view(s).base == base) return s;
  }
  return block::kNoSegment;
}

}  // namespace ashlar::props
