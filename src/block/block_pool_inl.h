// The block pool's hot functions, inline: a free and an allocation are a dozen memory accesses, and calls cost as much.
// Part of block_pool.h; include that.
#pragma once

namespace ashlar {
inline namespace v0 {
namespace block {
// Records and counters. -----------------------------------------------------------------------------------------------

inline const BlockRecord& BlockPool::at(BlockIndex block) const noexcept {
  ASHLAR_ASSERT(records_.state(raw(block)) != kUnused, "block(7): no such block");
  return records_[raw(block)];
}

inline BlockRecord& BlockPool::checked(BlockIndex block, [[maybe_unused]] State state) noexcept {
  ASHLAR_ASSERT(records_.state(raw(block)) == raw(state), "block: the block is in another state than this operation needs");
  return records_[raw(block)];
}

inline void BlockPool::count_out(State state, std::uint64_t size) noexcept {
  counts_.blocks[raw(state)] -= 1;
  counts_.bytes[raw(state)] -= Bytes{size};
}

inline void BlockPool::count_in(State state, std::uint64_t size) noexcept {
  counts_.blocks[raw(state)] += 1;
  counts_.bytes[raw(state)] += Bytes{size};
}

/// Makes sure of one more record, and of its place in the free index. False if the host has no memory.
inline bool BlockPool::reserve_record() noexcept {
  if (records_.has_unused()) [[likely]] return true;
  return index_.reserve(records_.capacity_next()) && records_.reserve_one();
}

/// Compared, not joined: a compiler reads words that are joined as one, and that waits, just after one of them was written
/// (measured: 6 ns a pair). Only nobody stands on both sides of a block.
inline bool BlockPool::is_whole(const BlockRecord& record) { return record.prev == record.next; }

/// A free block that is a whole segment becomes idle, or stops being so.
inline void BlockPool::count_idle(const BlockRecord& record, bool now_idle) noexcept {
  if (!is_whole(record)) return;
  if (now_idle) {
    counts_.idle_segments += 1;
    counts_.idle_bytes += Bytes{record.size};
  } else {
    counts_.idle_segments -= 1;
    counts_.idle_bytes -= Bytes{record.size};
  }
}

/// Writes what a live or pending block keeps of its caller's.
inline void BlockPool::note_caller(std::uint32_t index, std::uint64_t requested, std::uint64_t user) noexcept {
  records_[index].caller = BlockRecord::Caller(requested, user != 0);
  if (user != 0) records_.side<CallersWord>(index).value = user;
}

// The operations. -----------------------------------------------------------------------------------------------------

inline BlockIndex BlockPool::best_fit(Bytes size, Bytes size_end) const noexcept {
  ASHLAR_ASSERT(size.count() > 0 && size % granule_ == 0, "block(5): best_fit of a size that is no block's");
  const std::uint32_t found = index_.lower_bound(records_, size.count());
  if (found == kNone || records_[found].size >= size_end.count()) return kNoBlock;
  return BlockIndex{found};
}

inline BlockIndex BlockPool::take(BlockIndex block, Bytes size, bool split, Bytes requested,
                                  std::uint64_t user) noexcept {
  ASHLAR_ASSERT(size.count() > 0 && size % granule_ == 0, "block(5): take of a size that is no block's");
  ASHLAR_ASSERT(size <= this->size(block), "C1: take of more than the block has");
  ASHLAR_ASSERT(requested <= size, "block(8) C1: take for more than the size");
  // Everything that can fail comes before the first change (and before references: the slab may move).
  const bool splits = split && size < this->size(block);
  if (!map_.reserve_one(records_) || (splits && !reserve_record())) return kNoBlock;

  BlockRecord& record = checked(block, State::kFree);
  count_idle(record, false);
  index_.remove(records_, raw(block));
  if (splits) {
    const std::uint32_t rest = records_.take(raw(State::kFree));
    BlockRecord& r = records_[rest];
    r.address = record.address + size.count();
    r.size = record.size - size.count();
    r.stamp = record.stamp;
    r.prev = raw(block);
    r.next = record.next;
    records_.side<SegmentOf>(rest) = records_.side<SegmentOf>(raw(block));
    records_[r.next].prev = rest;
    record.next = rest;
    record.size = size.count();
    counts_.bytes[raw(State::kFree)] -= size;
    index_.insert(records_, rest);
  } else {
    count_out(State::kFree, record.size);
  }
  records_.state(raw(block)) = raw(State::kLive);
  note_caller(raw(block), requested.count(), user);
  count_in(State::kLive, record.size);
  counts_.requested_bytes += requested;
  map_.insert(records_, raw(block));
  return block;
}

/// Takes the next block, which is free, into this one.
inline void BlockPool::absorb_next(BlockRecord& record) noexcept {
  const std::uint32_t gone = record.next;
  const BlockRecord& next = records_[gone];
  const std::uint32_t self = next.prev;
  record.size += next.size;
  record.stamp = std::max(record.stamp, next.stamp);
  record.next = next.next;
  records_[next.next].prev = self;
  records_.put(gone);
}

inline BlockIndex BlockPool::release(BlockIndex block, std::uint64_t stamp) noexcept {
  std::uint32_t merged = raw(block);
  BlockRecord& record = records_[merged];
  std::uint8_t& state = records_.state(merged);
  ASHLAR_ASSERT(state != kUnused && state != raw(State::kFree), "C16: release of a free block");
  // Where there is no neighbour, nobody is not free.
  const bool next_free = records_.state(record.next) == raw(State::kFree);
  const bool prev_free = records_.state(record.prev) == raw(State::kFree);
  if (is_owned(state)) {
    map_.erase(records_, merged);
    counts_.requested_bytes -= Bytes{record.caller.requested()};
  }
  count_out(State{state}, record.size);
  count_in(State::kFree, record.size);
  state = raw(State::kFree);
  record.stamp = stamp;

  if (next_free) {
    index_.remove(records_, record.next);
    absorb_next(record);
    counts_.blocks[raw(State::kFree)] -= 1;
  }
  if (prev_free) {
    merged = record.prev;
    index_.remove(records_, merged);
    absorb_next(records_[merged]);
    counts_.blocks[raw(State::kFree)] -= 1;
  }
  index_.insert(records_, merged);
  count_idle(records_[merged], true);
  return BlockIndex{merged};
}

// Queries. ------------------------------------------------------------------------------------------------------------

inline BlockIndex BlockPool::find(Address address) const noexcept {
  return BlockIndex{map_.find(records_, address.value())};
}

inline BlockView BlockPool::view(BlockIndex block) const noexcept {
  const BlockRecord& record = at(block);
  const State state = this->state(block);
  const bool owned = is_owned(raw(state));
  return BlockView{Address{record.address}, Bytes{record.size}, Bytes{owned ? record.caller.requested() : 0}, state,
                   owned ? 0 : record.stamp, user(block), segment(block)};
}

inline BlockIndex BlockPool::next(BlockIndex block) const noexcept { return BlockIndex{at(block).next}; }
inline State BlockPool::state(BlockIndex block) const noexcept {
  const std::uint8_t state = records_.state(raw(block));
  ASHLAR_ASSERT(state != kUnused, "block(7): no such block");
  return State{state};
}
inline Bytes BlockPool::size(BlockIndex block) const noexcept { return Bytes{at(block).size}; }
inline Address BlockPool::address(BlockIndex block) const noexcept { return Address{at(block).address}; }
inline std::uint64_t BlockPool::user(BlockIndex block) const noexcept {
  if (!is_owned(raw(state(block))) || !records_[raw(block)].caller.has_word()) return 0;
  return records_.side<CallersWord>(raw(block)).value;
}
inline SegmentIndex BlockPool::segment(BlockIndex block) const noexcept {
  ASHLAR_ASSERT(records_.state(raw(block)) != kUnused, "block(7): no such block");
  return SegmentIndex{records_.side<SegmentOf>(raw(block)).index};
}
inline bool BlockPool::is_whole(BlockIndex block) const noexcept { return is_whole(at(block)); }
inline const PoolCounts& BlockPool::counts() const noexcept { return counts_; }
inline Bytes BlockPool::granule() const noexcept { return granule_; }

}  // namespace block
}  // namespace v0
}  // namespace ashlar
