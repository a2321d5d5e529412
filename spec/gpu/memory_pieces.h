// MemoryPieces: which bytes of the machine's memory a range of addresses is.
//
// Purpose: a page may be mapped at several addresses, and two ranges of addresses over one page are the
// same bytes. Every byte has a number. Of a segment, a pinned range, and an address where no page is
// mapped, it is the address; the bytes of pages have numbers above every address, never used again.
// Thread safety: plain values.
#pragma once

#include <algorithm>
#include <cstdint>

#include "spec/gpu/short_list.h"

namespace ashlar::spec {

/// The bytes [begin, end) are at the addresses from `at` on.
struct MemoryPiece {
  std::uint64_t at = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  bool shares_bytes(const MemoryPiece& other) const {
    return begin < other.end && other.begin < end;
  }
  bool is_within(const MemoryPiece& other) const {
    return other.begin <= begin && end <= other.end;
  }
  /// Is every byte that both have at one address in both?
  bool is_same_mapping(const MemoryPiece& other) const {
    return at - begin == other.at - other.begin;
  }
};

/// By address. Ranges of segments, and of pages mapped side by side in the order of their creation, are
/// one piece.
using MemoryPieces = ShortList<MemoryPiece, 1>;

inline bool share_bytes(const MemoryPieces& pieces, const MemoryPiece& other) {
  return std::any_of(pieces.begin(), pieces.end(),
                     [&other](const MemoryPiece& piece) { return piece.shares_bytes(other); });
}

}  // namespace ashlar::spec
