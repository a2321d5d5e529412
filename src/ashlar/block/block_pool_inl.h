// The block pool's hot functions, inline: a free and an allocation are a dozen memory accesses, and
// calls cost as much. Part of block_pool.h; include that.
#pragma once

namespace ashlar::inline v0::block {
// Records and counters.

inline void BlockPool::check_in_use([[maybe_unused]] BlockIndex block) const noexcept {
  ASHLAR_ASSERT(records_.state(raw(block)) != kUnused, "block(7): no such block");
}

inline void BlockPool::check_state([[maybe_unused]] BlockIndex block,
                                   [[maybe_unused]] BlockState state) const noexcept {
  ASHLAR_ASSERT(records_.state(raw(block)) == raw(state),
                "block: the block is in another state than this operation needs");
}

inline void BlockPool::count_out(BlockState state, std::uint64_t size) noexcept {
  counts_.blocks[raw(state)] -= 1;
  counts_.bytes[raw(state)] -= Bytes{size};
}

inline void BlockPool::count_in(BlockState state, std::uint64_t size) noexcept {
  counts_.blocks[raw(state)] += 1;
  counts_.bytes[raw(state)] += Bytes{size};
}

/// Makes sure of one more record, and of its place in the free index. False if the host has no
/// memory.
inline bool BlockPool::reserve_record() noexcept {
  if (records_.has_unused()) [[likely]]
    return true;
  return index_.reserve(records_.capacity_next()) && records_.reserve_one();
}

/// Compared, not joined: a compiler reads words that are joined as one, and that waits, just after
/// one of them was written (measured: 6 ns a pair). Only nobody stands on both sides of a block.
inline bool BlockPool::is_whole(const BlockRecord& record) { return record.prev == record.next; }

/// A free block that is a whole segment becomes idle, or stops being so.
inline void BlockPool::count_idle(std::uint32_t index, std::uint64_t size, bool now_idle) noexcept {
  if (!is_whole(records_[index])) return;
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
                "block(5): best_fit of a size that is no block's");
  const std::uint32_t found = index_.lower_bound(records_, size.count());
  if (found == kNone || records_.size(found) >= size_end.count()) return kNoBlock;
  return BlockIndex{found};
}

inline BlockIndex BlockPool::take(BlockIndex block, Bytes size, bool split, Bytes requested,
                                  std::uint64_t user) noexcept {
  ASHLAR_ASSERT(size.count() > 0 && size % granule_ == 0,
                "block(5): take of a size that is no block's");
  ASHLAR_ASSERT(size <= this->size(block), "C1: take of more than the block has");
  ASHLAR_ASSERT(requested <= size, "block(8) C1: take for more than the size");
  // Everything that can fail comes before the first change.
  const std::uint32_t index = raw(block);
  const std::uint64_t had = records_.size(index);
  const std::uint64_t address = records_.address(index);
  const bool splits = split && size.count() < had;
  if (!map_.reserve_one(records_) || (splits && !reserve_record())) return kNoBlock;

  check_state(block, BlockState::kFree);
  count_idle(index, had, false);
  index_.remove(records_, index);
  std::uint64_t taken = had;
  if (splits) {
    const std::uint32_t rest = records_.take(raw(BlockState::kFree));
    records_.set_address(rest, address + size.count());
    records_.set_size(rest, had - size.count());
    records_.set_stamp(rest, records_.stamp(index));
    const std::uint32_t next = records_[index].next;
    records_[rest].prev = index;
    records_[rest].next = next;
    records_[next].prev = rest;
    records_[index].next = rest;
    taken = size.count();
    records_.set_size(index, taken);
    counts_.bytes[raw(BlockState::kFree)] -= size;
    index_.insert(records_, rest);
  } else {
    count_out(BlockState::kFree, taken);
  }
  records_.state(index) = raw(BlockState::kLive);
  records_.set_request(index, taken, requested.count(), user);
  count_in(BlockState::kLive, taken);
  counts_.requested_bytes += requested;
  map_.insert(records_, index, address);
  return block;
}

/// Drops the next block of the segment, which is in no index: its bytes are this one's from now on.
inline void BlockPool::drop_next(std::uint32_t index) noexcept {
  const std::uint32_t gone = records_[index].next;
  const std::uint32_t next = records_[gone].next;
  records_[index].next = next;
  records_[next].prev = index;
  records_.put(gone);
}

inline BlockIndex BlockPool::release(BlockIndex block, std::uint64_t stamp) noexcept {
  std::uint32_t merged = raw(block);
  const std::uint32_t next = records_[merged].next;
  const std::uint32_t prev = records_[merged].prev;
  std::uint8_t& state = records_.state(merged);
  ASHLAR_ASSERT(state != kUnused && state != raw(BlockState::kFree),
                "C16: release of a free block");
  // Where there is no neighbour, nobody is not free.
  const bool next_free = records_.state(next) == raw(BlockState::kFree);
  const bool prev_free = records_.state(prev) == raw(BlockState::kFree);
  std::uint64_t size = records_.size(merged);
  if (is_owned(state)) {
    counts_.requested_bytes -= Bytes{records_.requested(merged, size)};
    map_.erase(records_, merged, records_.address(merged));
  } else if (is_whole(records_[merged])) {
    order_.insert(segments_, records_.link(merged).to);
  }
  count_out(BlockState{state}, size);
  count_in(BlockState::kFree, size);
  state = raw(BlockState::kFree);

  if (next_free) {
    index_.remove(records_, next);
    size += records_.size(next);
    stamp = std::max(stamp, records_.stamp(next));
    drop_next(merged);
    counts_.blocks[raw(BlockState::kFree)] -= 1;
  }
  if (prev_free) {
    index_.remove(records_, prev);
    size += records_.size(prev);
    stamp = std::max(stamp, records_.stamp(prev));
    drop_next(prev);
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
                   user(block)};
}

inline BlockIndex BlockPool::next(BlockIndex block) const noexcept {
  check_in_use(block);
  return BlockIndex{records_[raw(block)].next};
}
inline BlockState BlockPool::state(BlockIndex block) const noexcept {
  check_in_use(block);
  return BlockState{records_.state(raw(block))};
}
inline Bytes BlockPool::size(BlockIndex block) const noexcept {
  check_in_use(block);
  return Bytes{records_.size(raw(block))};
}
inline Address BlockPool::address(BlockIndex block) const noexcept {
  check_in_use(block);
  return Address{records_.address(raw(block))};
}
inline std::uint64_t BlockPool::user(BlockIndex block) const noexcept {
  return is_owned(raw(state(block))) ? records_.word(raw(block)) : 0;
}
inline bool BlockPool::is_whole(BlockIndex block) const noexcept {
  check_in_use(block);
  return is_whole(records_[raw(block)]);
}
inline const PoolCounts& BlockPool::counts() const noexcept { return counts_; }
inline Bytes BlockPool::granule() const noexcept { return granule_; }

}  // namespace ashlar::inline v0::block
