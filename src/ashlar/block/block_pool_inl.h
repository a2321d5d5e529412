// The block pool's hot functions, inline: an allocation or a free is a dozen memory accesses, and
// function calls would cost as much. Part of block_pool.h; include that.
#pragma once

namespace ashlar::inline v0::block {
// Records and counters.

inline void check_in_use([[maybe_unused]] const BlockRecords& records,
                         [[maybe_unused]] BlockIndex block) noexcept {
  ASHLAR_ASSERT(records.state(raw(block)) != kUnused, "block(7): no such block");
}

inline void BlockPool::check_state([[maybe_unused]] BlockIndex block,
                                   [[maybe_unused]] BlockState state) const noexcept {
  ASHLAR_ASSERT(records_.state(raw(block)) == raw(state),
                "block: the operation needs the block in another state");
}

/// Reserves one more record, and its room in the free index. False if the host has no memory.
inline bool BlockPool::reserve_record() noexcept {
  if (records_.has_unused()) [[likely]]
    return true;
  return ready_records();
}

/// If the free block spans its segment: counts the segment as idle, or no longer.
inline void BlockPool::count_idle(std::uint32_t index, std::uint64_t size, bool now_idle) noexcept {
  if (!records_[index].is_whole_segment()) return;
  if (now_idle) {
    counts_.idle_segments += 1;
    counts_.idle_bytes += Bytes{size};
  } else {
    counts_.idle_segments -= 1;
    counts_.idle_bytes -= Bytes{size};
  }
}

// The operations.

inline BlockIndex BlockPool::best_fit(Bytes size, Bytes size_end) const noexcept {
  ASHLAR_ASSERT(size.count() > 0 && size % granule_ == 0,
                "block(5): best_fit of a size that is not a positive multiple of the granule");
  const std::uint32_t found = index_.lower_bound(records_, size.count());
  if (found == kNone || records_.size(found) >= size_end.count()) return kNoBlock;
  return BlockIndex{found};
}

/// The block of `size` bytes at `address`, which no index has and no counter counts, becomes live.
/// REQUIRES: map_.reserve_one() returned true.
inline void BlockPool::own(std::uint32_t index, std::uint64_t address, std::uint64_t size,
                           Bytes requested, std::uint64_t user) noexcept {
  records_.state(index) = raw(BlockState::kLive);
  records_.set_request(index, size, requested.count(), user);
  counts_.add_block(BlockState::kLive, size);
  counts_.requested_bytes += requested;
  map_.insert(records_, index, address);
}

inline BlockIndex BlockPool::take(BlockIndex block, Bytes size, bool split, Bytes requested,
                                  std::uint64_t user) noexcept {
  ASHLAR_ASSERT(size.count() > 0 && size % granule_ == 0,
                "block(5): take of a size that is not a positive multiple of the granule");
  ASHLAR_ASSERT(size <= this->size(block), "C1: take of more than the block has");
  ASHLAR_ASSERT(requested <= size, "block(8) C1: take for a request larger than the size");
  // Everything that can fail comes before the first change.
  const std::uint32_t index = raw(block);
  const std::uint64_t size_before = records_.size(index);
  const std::uint64_t address = records_.address(index);
  const bool splits = split && size.count() < size_before;
  if (!map_.reserve_one(records_) || (splits && !reserve_record())) return kNoBlock;

  check_state(block, BlockState::kFree);
  count_idle(index, size_before, false);
  index_.remove(records_, index);
  std::uint64_t size_taken = size_before;
  if (splits) {
    const std::uint32_t rest = records_.split(index, address, size_before, size.count());
    size_taken = size.count();
    counts_.bytes[raw(BlockState::kFree)] -= size;
    index_.insert(records_, rest);
  } else {
    counts_.remove_block(BlockState::kFree, size_taken);
  }
  own(index, address, size_taken, requested, user);
  return block;
}

inline BlockIndex BlockPool::release(BlockIndex block, std::uint64_t stamp) noexcept {
  std::uint32_t merged = raw(block);
  const std::uint32_t next = records_[merged].next;
  const std::uint32_t prev = records_[merged].prev;
  std::uint8_t& state = records_.state(merged);
  ASHLAR_ASSERT(state != kUnused && state != raw(BlockState::kFree),
                "C16: release of a free block");
  ASHLAR_ASSERT(state != raw(BlockState::kUnmapped), "C1: release of a block without memory");
  // Without a neighbour this reads the null sentinel, which is not free.
  const bool next_free = records_.state(next) == raw(BlockState::kFree);
  const bool prev_free = records_.state(prev) == raw(BlockState::kFree);
  std::uint64_t size = records_.size(merged);
  if (is_owned(state)) {
    counts_.requested_bytes -= Bytes{records_.requested(merged, size)};
    map_.erase(records_, merged, records_.address(merged));
  }
  counts_.remove_block(BlockState{state}, size);
  counts_.add_block(BlockState::kFree, size);
  state = raw(BlockState::kFree);

  if (next_free) {
    index_.remove(records_, next);
    size += records_.size(next);
    stamp = std::max(stamp, records_.stamp(next));
    records_.absorb_next(merged);
    counts_.blocks[raw(BlockState::kFree)] -= 1;
  }
  if (prev_free) {
    index_.remove(records_, prev);
    size += records_.size(prev);
    stamp = std::max(stamp, records_.stamp(prev));
    records_.absorb_next(prev);
    counts_.blocks[raw(BlockState::kFree)] -= 1;
    merged = prev;
  }
  records_.set_size(merged, size);
  records_.set_stamp(merged, stamp);
  index_.insert(records_, merged);
  count_idle(merged, size, true);
  return BlockIndex{merged};
}

// Queries.

inline BlockIndex BlockPool::find(Address address) const noexcept {
  return BlockIndex{map_.find(records_, address.value())};
}

inline BlockView BlockPool::view(BlockIndex block) const noexcept {
  const BlockState state = this->state(block);
  const bool owned = is_owned(raw(state));
  const Bytes size = this->size(block);
  return BlockView{address(block),
                   size,
                   Bytes{owned ? records_.requested(raw(block), size.count()) : 0},
                   state,
                   owned ? 0 : records_.stamp(raw(block)),
                   user(block),
                   Position{records_.position(raw(block))}};
}

inline BlockIndex BlockPool::next(BlockIndex block) const noexcept {
  check_in_use(records_, block);
  return BlockIndex{records_[raw(block)].next};
}
inline BlockState BlockPool::state(BlockIndex block) const noexcept {
  check_in_use(records_, block);
  return BlockState{records_.state(raw(block))};
}
inline Bytes BlockPool::size(BlockIndex block) const noexcept {
  check_in_use(records_, block);
  return Bytes{records_.size(raw(block))};
}
inline Address BlockPool::address(BlockIndex block) const noexcept {
  check_in_use(records_, block);
  return Address{records_.address(raw(block))};
}
inline SegmentIndex BlockPool::segment(BlockIndex block) const noexcept {
  check_in_use(records_, block);
  return SegmentIndex{records_.segment(raw(block))};
}
inline std::uint64_t BlockPool::user(BlockIndex block) const noexcept {
  return is_owned(raw(state(block))) ? records_.user(raw(block)) : 0;
}
inline bool BlockPool::is_whole(BlockIndex block) const noexcept {
  check_in_use(records_, block);
  return records_[raw(block)].is_whole_segment();
}
inline const PoolCounts& BlockPool::counts() const noexcept { return counts_; }
inline Bytes BlockPool::granule() const noexcept { return granule_; }

}  // namespace ashlar::inline v0::block
