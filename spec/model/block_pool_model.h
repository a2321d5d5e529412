// The block pool's model: a sequence of blocks in address order; every operation replaces a few by
// a few (a splice).
//
// So plain that it is right by reading: linear scans, no index, no links. It is a function: for
// every operation it says the outcome, the address, and the whole state after it, so a pool is
// compared with it and never judged.
// Policy: best fit, that is, the smallest free block that fits, then the one in the segment of the
// lowest ordinal, then the lowest address; the front is handed out. Blocks of different segments never merge, even where the segments touch.
// Thread safety: none.
#pragma once

#include <array>
#include <cstddef>

#include "spec/model/pool_subject.h"

namespace ashlar::spec {

class BlockPoolModel {
 public:
  // The operations, as PoolSubject states them. Ordinals need not rise, only differ.
  Status grow(Address base, Bytes size, std::uint64_t ordinal, std::uint64_t stamp);
  Status shrink(Address base);
  Result<Address> allocate(const PoolRequest& request);
  Status release(Address address, std::uint64_t stamp);
  Status defer(Address address);
  Status complete(Address address, std::uint64_t stamp);
  Status lift(Address address);
  Status lower(Address address, std::uint64_t stamp);
  Status divide(Address address, Bytes size);
  Status take_lifted(Address address, Bytes requested, std::uint64_t user);
  Status reserve(Address base, Bytes size, std::uint64_t ordinal);
  Status unmap(Address address);
  Status lift_unmapped(Address address);

  bool owns(Address address) const;
  const PoolMap& map() const { return map_; }
  /// The n-th block of that state in address order, n taken modulo their number; nullptr when there
  /// is none.
  const PoolBlock* nth(PoolState state, std::uint64_t n) const;
  /// The n-th block in transfer of a segment that was reserved, likewise.
  const PoolBlock* nth_to_unmap(std::uint64_t n) const;
  /// The n-th segment that is one free block, likewise.
  const PoolBlock* nth_idle(std::uint64_t n) const;

 private:
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

  /// The block that starts at `address`, or kNowhere.
  std::size_t at(Address address) const;
  /// The one that best fit chooses, or kNowhere.
  std::size_t best_fit(const PoolRequest& request) const;
  /// The ordinal of the block's segment.
  std::uint64_t ordinal_of(const PoolBlock& block) const;
  bool is_idle(const PoolBlock& block) const;
  bool joins(std::size_t left, std::size_t right) const;
  /// Replaces the `count` blocks from `first` on by the `into_count` blocks of `into`.
  void splice(std::size_t first, std::size_t count, const PoolBlock* into, std::size_t into_count);
  /// The block becomes free with that stamp and joins its free neighbours.
  void free_at(std::size_t index, std::uint64_t stamp);
  /// The block joins its neighbours of the same state, free or unmapped.
  void join_at(std::size_t index);
  /// A new segment, one block in that state.
  void add(const PoolSegment& segment, PoolState state, std::uint64_t stamp);
  /// Was the segment reserved, so that parts of it may be unmapped?
  bool is_reserved(Address segment) const;

  PoolMap map_;
  std::vector<Address> reserved_;  ///< bases of the segments that were reserved
};

}  // namespace ashlar::spec
