// Divides memory that is larger than a device's largest buffer over several buffers (chunks).
//
// Thread safety: pure function.
//
// First fit, in three orders: by the step in which the life begins, by size, and by the area of size and
// life; the first of those that need the fewest bytes wins. An item that needs more than the limit gets a
// chunk of that size, and others may use what it leaves. What pads an item is in nobody's way at a chunk's end, so
// the limit is for the bytes that are needed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ashlar/base/types.h>

namespace ashlar::inline v0::graph {

/// Memory for the steps [begin, end).
struct ChunkItem {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  Bytes size;    ///< in bytes, a multiple of the alignment
  Bytes needed;  ///< of those, without what pads it
};

/// Where an item is.
struct ChunkPlace {
  std::uint32_t chunk = 0;
  Bytes offset;  ///< from the chunk's first byte
};

/// A place for each item: two items of one chunk whose lives share a step do not overlap, and the needed bytes of
/// an item end at or below the limit, or at what the chunk's first item needs if that is more. Cost: O(n^2). Throws
/// std::bad_alloc.
std::vector<ChunkPlace> fit_chunks(std::span<const ChunkItem> items, Bytes limit);

}  // namespace ashlar::inline v0::graph
