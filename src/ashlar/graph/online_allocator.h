// The online allocator: best fit over one buffer, tensor after tensor.
//
// Purpose: for callers that do not know their graph beforehand, and to measure what a sequence of
// allocations needs. A graph that is known needs less memory from a GraphAllocator.
// Thread safety: none.
//
// Invariants:
//   (1) TEN-1  a request gets the smallest free range that holds it, the lowest address of equal
//       ones; the free range at the buffer's end only if no other holds it. Freed ranges merge.
//   (2) There is no limit on the number of free ranges (bug H47), and none is kept in an array that
//       is shifted (bug H46): they are the blocks of a block pool.
//   (3) TEN-2  measuring gives the same offsets as a buffer that is large enough.
#pragma once

#include <memory>

#include <ashlar/base/export.h>
#include <ashlar/base/status.h>
#include <ashlar/base/types.h>

namespace ashlar::inline v0::graph {

/// Allocates ranges of one buffer, or measures how large a buffer would have to be.
class ASHLAR_API OnlineAllocator {
 public:
  /// Allocates from [base, base + size), up to the last address. `alignment` is that of every range. What lies before the
  /// first aligned byte and behind the last is not used. REQUIRES: `alignment` is a power of two, 16 bytes to
  /// 64 KiB. Throws std::bad_alloc.
  OnlineAllocator(Address base, Bytes size, Bytes alignment);
  /// Measures: allocates from an imaginary buffer of 2^62 bytes at address 2^16. Nothing may be
  /// written there. Throws std::bad_alloc.
  static OnlineAllocator measuring(Bytes alignment);
  /// Moves the allocator; the other may only be assigned to or destroyed afterwards.
  OnlineAllocator(OnlineAllocator&&) noexcept;
  /// The same; what this one had is gone.
  OnlineAllocator& operator=(OnlineAllocator&&) noexcept;
  ~OnlineAllocator();

  /// A range of at least `size` bytes; for zero bytes the null address. kOutOfMemory: no free range
  /// is large enough. kHostOutOfMemory: no host memory for a record. kSizeOverflow: rounding would
  /// wrap. Cost: O(1) to the size class, then a bounded number of steps. Never throws.
  Result<Address> allocate(Bytes size) noexcept;
  /// Frees a range. Freeing null is a no-op. kUnknownPointer: no live range begins at `address`;
  /// nothing changes. Cost: O(1) and the index. Never allocates.
  Status free(Address address) noexcept;
  /// Frees every range. The peak stays. Throws std::bad_alloc; then nothing has changed.
  void reset();

  /// The highest end of a range so far, in bytes from the base.
  Bytes peak() const noexcept;
  /// The number of live ranges.
  std::uint64_t live() const noexcept;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace ashlar::inline v0::graph
