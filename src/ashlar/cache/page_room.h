// Where a growth maps pages: a run of free and unmapped blocks that fits the request and lacks little
// memory.
//
// Thread safety: by the heap's lock.
//
// The rule. Of the unmapped blocks of a pool, together with the free block below and, if the unmapped
// one is used whole, the free block above, that one which needs the fewest pages; of equals the one at
// the lowest position. So holes are refilled before fresh addresses are used, and a step that repeats
// gets the addresses that it had before (C20). Where a pool has more than kUnmappedLooksMax unmapped blocks
// that are too small by themselves, only the smallest that is enough is looked at besides. A room is none
// where work may still use the page that is mapped there (PageSlot::left_stamp), or, while a capture is
// announced, where one is (C9): other addresses are.
// Invariant:
//   (1) the last page of a paged segment is never mapped: so such a segment is never one free block, and
//       nothing that handles whole idle segments meets one.
#pragma once

#include <ashlar/block/unmapped_ranges.h>
#include <ashlar/cache/stream_heap.h>

namespace ashlar::inline v0::cache {

/// How many unmapped blocks a growth looks at, and so the most under one hold of the lock (C31).
inline constexpr unsigned kUnmappedLooksMax = kLooksPerHold;

struct PageRoom {
  block::BlockIndex below = block::kNoBlock;  ///< free, or kNoBlock if there is none
  block::BlockIndex unmapped = block::kNoBlock;
  block::BlockIndex above = block::kNoBlock;  ///< free, or kNoBlock if it is not needed
  Address begin;                              ///< of the unmapped block
  Bytes missing;                              ///< to be mapped from there on, in whole pages

  bool is_found() const noexcept { return unmapped != block::kNoBlock; }
};

/// The room for the request in the heap's pool. Nothing changes. `keeps_mappings`: where a page may still be
/// mapped is no room. REQUIRES: no free block is large enough.
PageRoom find_room(StreamHeap& heap, const Request& request, Bytes page,
                   bool keeps_mappings) noexcept ASHLAR_REQUIRES(heap.lock);

/// Takes the room out of the pool: its blocks are in transfer, and the unmapped one is as long as what is
/// missing. False, and nothing has changed, if the host has no memory for a record.
bool lift_room(block::BlockPool& pool, const PageRoom& room) noexcept;

/// Pages are mapped there: the room is one free block, perhaps merged with neighbours. Returns it.
block::BlockIndex enter_room(block::BlockPool& pool, const PageRoom& room) noexcept;
/// No pages could be mapped: the inverse of lift_room().
void give_up_room(block::BlockPool& pool, const PageRoom& room) noexcept;

}  // namespace ashlar::inline v0::cache
