// OffsetAllocator: the benchmarks' "floor". Offsets in one range of fixed size, a bitmap over size
// bins, a mutex; no device, no streams, no cache, no address lookup.
//
// Purpose: the time that any allocator of this kind needs at least, to compare Ashlar's with. The
// design is that of sebbbi/OffsetAllocator and of TLSF: a two-level bitmap over bins, 8 for each
// power of two; the first block of the first bin whose blocks are all large enough; neighbours
// merged on free. Written from scratch for this comparison.
// Thread safety: every member from any thread (one mutex).
//
// Invariants:
//   (1) the nodes linked by `before` and `after` tile the range in order, and no two neighbours are
//       both free;
//   (2) bit b of the bitmap is set if and only if bin b's list is not empty;
//   (3) a free node is in the last bin whose size is at most the node's.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

namespace ashlar::bench {

class OffsetAllocator {
 public:
  static constexpr std::uint32_t kNone = 0xffffffffu;
  struct Allocation {
    std::uint32_t offset = 0;
    std::uint32_t node = kNone;  ///< identifies the allocation to free(); kNone: no room was found
  };

  /// Offsets 0 .. units - 1. REQUIRES: units > 0.
  explicit OffsetAllocator(std::uint32_t units);
  /// REQUIRES: units > 0. Cost: O(1), plus growing the node table.
  Allocation allocate(std::uint32_t units);
  /// REQUIRES: an allocation of this object, not yet freed. Cost: O(1).
  void free(Allocation allocation);

  /// Units that are not allocated.
  std::uint32_t free_units();
  /// Walks all nodes. Returns nullptr, or the invariant that is broken.
  const char* validate();

  /// The bin of a free node of that size.
  static std::uint32_t bin_below(std::uint32_t units);
  /// The first bin whose nodes all have at least that size.
  static std::uint32_t bin_above(std::uint32_t units);

 private:
  static constexpr std::uint32_t kBins = 256;
  struct Node {
    std::uint32_t offset = 0;
    std::uint32_t units = 0;
    std::uint32_t before = kNone, after = kNone;   ///< neighbours in the range
    std::uint32_t previous = kNone, next = kNone;  ///< the bin's list
    bool is_used = false;
  };

  std::uint32_t find_bin(std::uint32_t from) const;
  std::uint32_t new_node(std::uint32_t offset, std::uint32_t units);
  void drop_node(std::uint32_t node);
  void insert(std::uint32_t node);
  void remove(std::uint32_t node);

  std::mutex mutex_;
  std::array<std::uint32_t, kBins> heads_;
  std::uint32_t groups_with_bins_ = 0;  // bit g: bins_[g] != 0
  std::array<std::uint8_t, kBins / 8> bins_{};
  std::vector<Node> nodes_;
  std::uint32_t unused_ = kNone;  // linked by `next`
  std::uint32_t free_units_;
  std::uint32_t units_;
};

}  // namespace ashlar::bench
