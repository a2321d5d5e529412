// Positions: where the bytes of segments lie in the order of equally large free blocks.
//
// Purpose: two processes whose drivers give them other addresses must place every allocation alike
// (C10; pytorch#190977: symmetric memory needs the same offsets on every rank). So the order of
// equal blocks must not be that of their addresses.
//
// Imagine one long line of bytes for each device. A segment lies on it behind every segment that is
// older, and no two overlap: the position of a segment is where it begins, in bytes. The position of
// a block is that of its segment plus the block's offset in it. So the order of positions is that of
// (segment ordinal, offset), one number can be compared and cut into classes and keys as an address
// could (fit_classes.h), and blocks next to each other have positions next to each other. Addresses
// still say what touches what, and find blocks and owners (address_map.h, page_map.h).
//
// Who gives out segments gives them their positions (segment_ledger.h), and a segment that changes
// heaps keeps its own. For a block pool alone any positions will do that are multiples of its granule
// and do not overlap: a running sum of sizes, or the addresses themselves.
// Thread safety: plain values.
#pragma once

#include <cstdint>

namespace ashlar::inline v0::block {

/// In bytes from the beginning of the line.
enum class Position : std::uint64_t {};

constexpr std::uint64_t raw(Position position) { return static_cast<std::uint64_t>(position); }

}  // namespace ashlar::inline v0::block
