// What the specification asks of a block pool, in plain types: the pool under test stands behind
// this interface.
//
// Blocks are named by their addresses, so that an answer can be compared without knowing how the
// pool names them.
// Thread safety: plain values; a subject is driven by one thread.
#pragma once

#include <cstdint>
#include <vector>

#include <ashlar/base/status.h>
#include <ashlar/base/types.h>

namespace ashlar::spec {

enum class PoolState : std::uint8_t { kFree, kLive, kPending, kInTransfer, kUnmapped };
inline constexpr unsigned kPoolStates = 5;

struct PoolBlock {
  Address address;
  Bytes size;
  Bytes requested;      ///< zero unless live or pending
  Address segment;      ///< its segment's base
  std::uint64_t stamp;  ///< zero unless free or in transfer
  std::uint64_t user;   ///< zero unless live or pending
  PoolState state;

  Address end() const { return address + size; }
  friend bool operator==(const PoolBlock&, const PoolBlock&) = default;
};

struct PoolSegment {
  Address base;
  Bytes size;
  std::uint64_t ordinal;  ///< orders segments, whatever their addresses (C10)
  friend bool operator==(const PoolSegment&, const PoolSegment&) = default;
};

/// Everything a pool holds, sorted by address.
struct PoolMap {
  std::vector<PoolSegment> segments;
  std::vector<PoolBlock> blocks;
  friend bool operator==(const PoolMap&, const PoolMap&) = default;
};

/// Every counter of a pool.
struct PoolBooks {
  std::uint64_t segments = 0;
  std::uint64_t blocks[kPoolStates] = {};
  Bytes segment_bytes;
  Bytes bytes[kPoolStates];
  Bytes requested_bytes;
  std::uint64_t idle_segments = 0;
  Bytes idle_bytes;
  Bytes largest_free;
  friend bool operator==(const PoolBooks&, const PoolBooks&) = default;
};

/// An allocation: at least `size` bytes from a free block of a size in [size, size_end).
struct PoolRequest {
  Bytes size;
  Bytes size_end = Bytes::max();
  bool split = true;
  Bytes requested;
  std::uint64_t user = 0;
};

class PoolSubject {
 public:
  virtual ~PoolSubject() = default;

  /// A new segment, one free block with that stamp. REQUIRES: `ordinal` is over every one before.
  virtual Status grow(Address base, Bytes size, std::uint64_t ordinal, std::uint64_t stamp) = 0;
  /// Drops the segment at `base`. kBusy unless it is one free block.
  virtual Status shrink(Address base) = 0;
  /// kOutOfMemory when no free block fits.
  virtual Result<Address> allocate(const PoolRequest& request) = 0;
  /// kUnknownPointer unless a live or pending block starts there; kDoubleFree when it is pending.
  virtual Status release(Address address, std::uint64_t stamp) = 0;
  virtual Status defer(Address address) = 0;
  /// kUnknownPointer unless a live or pending block starts there; kBusy when it is live.
  virtual Status complete(Address address, std::uint64_t stamp) = 0;
  /// The free block at `address` becomes in transfer. kNotFound unless there is one.
  virtual Status lift(Address address) = 0;
  /// The block in transfer at `address` becomes free. kNotFound unless there is one.
  virtual Status lower(Address address, std::uint64_t stamp) = 0;
  /// The block in transfer at `address` is cut after `size` bytes. kNotFound unless there is one,
  /// kInvalidArgument unless both parts have bytes.
  virtual Status divide(Address address, Bytes size) = 0;
  /// The block in transfer at `address` becomes live. kNotFound unless there is one,
  /// kInvalidArgument if it has fewer bytes than requested.
  virtual Status take_lifted(Address address, Bytes requested, std::uint64_t user) = 0;

  /// A new segment, one unmapped block. REQUIRES: as grow().
  virtual Status reserve(Address base, Bytes size, std::uint64_t ordinal) = 0;
  /// The block in transfer at `address`, of a segment that was reserved, becomes unmapped. kNotFound
  /// unless there is one.
  virtual Status unmap(Address address) = 0;
  /// The unmapped block at `address` becomes in transfer. kNotFound unless there is one.
  virtual Status lift_unmapped(Address address) = 0;

  /// Can a caller who has this address free it?
  virtual bool owns(Address address) const = 0;
  virtual void map(PoolMap* map) const = 0;
  virtual PoolBooks books() const = 0;
  /// Every free block in the order the free index gives: size, then the segment's ordinal, then
  /// address.
  virtual void free_order(std::vector<Address>* order) const = 0;
  /// Every unmapped block, likewise.
  virtual void unmapped_order(std::vector<Address>* order) const = 0;
  /// The structure's own walk: nullptr or what broke.
  virtual const char* validate() const = 0;
};

}  // namespace ashlar::spec
