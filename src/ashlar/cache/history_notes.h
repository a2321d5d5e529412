// What a heap's changes note in the history of its device (history_log.h).
//
// Purpose: each is called where a block or a range of memory changes, in the same hold of the heap's lock.
// Out of line and cold: while the history is off, a change pays for one test.
// Thread safety: a holder of the heap's lock.
#pragma once

#include <ashlar/cache/device_cache.h>

namespace ashlar::inline v0::cache {

/// The history of the heap's device.
inline HistoryLog& history_of(const StreamHeap& heap) noexcept {
  return heap.cache.heaps().history();
}

/// Notes that the block was allocated, or that its free was requested or completed. While it is lent, its
/// events name the borrower's stream.
[[gnu::cold]] void note_block(StreamHeap& heap, PoolId pool, block::BlockIndex block,
                              HistoryAction action) noexcept ASHLAR_REQUIRES(heap.lock);
/// Pages of the heap's pool come or go. Notes nothing while the history is off.
void note_memory(StreamHeap& heap, PoolId pool, Address address, Bytes size,
                 HistoryAction action) noexcept ASHLAR_REQUIRES(heap.lock);

/// Hands the segment from one heap to another for histories, whether one is on or not: the next snapshot shows it
/// in `to` (DeviceSegment::entry). Notes it if a history is on. nullptr: the driver. `heap` is one of the two.
void pass_segment(StreamHeap& heap, DeviceSegment& segment, const StreamHeap* from,
                  const StreamHeap* to) noexcept ASHLAR_REQUIRES(heap.lock);

/// note_block() if the history is on.
[[gnu::always_inline]] inline void note_if_on(StreamHeap& heap, PoolId pool,
                                              block::BlockIndex block,
                                              HistoryAction action) noexcept
    ASHLAR_REQUIRES(heap.lock) {
  if (history_of(heap).is_on()) [[unlikely]]
    note_block(heap, pool, block, action);
}

}  // namespace ashlar::inline v0::cache
