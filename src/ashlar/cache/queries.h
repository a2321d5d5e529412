// What a device's cache says about itself: statistics, snapshot, the account of an out-of-memory
// (rows DEV-14, 16, 17, 19; clause C15).
//
// Thread safety: any thread; each heap is read under its own lock, and long walks let go of it
// between slices (C31), so the whole is consistent only when no other call runs. None is for the hot path.
#pragma once

#include <ashlar/cache/device_cache.h>
#include <ashlar/cache/snapshot_copy.h>

namespace ashlar::inline v0::cache {

void write_stats(DeviceCache& cache, DeviceStats* out) noexcept;
void reset_peak_stats(DeviceCache& cache) noexcept;
void reset_accumulated_stats(DeviceCache& cache) noexcept;
/// Replaces `*out`, reusing its memory. kBusy, and `*out` is of no use, if blocks are freed faster
/// than they are copied (snapshot_copy.h). Throws std::bad_alloc if the host has too little memory.
Status write_snapshot(DeviceCache& cache, Snapshot* out,
                      InTransfer in_transfer = InTransfer::kAsItIs);
/// The largest block that the stream could be given now without growing.
Bytes largest_reachable(DeviceCache& cache, const Stream& stream) noexcept;
/// Adds what the heaps and the ledger of the device hold, as it is for that request of `asking`.
/// Cost: one walk over the heaps; of a heap whose work is not all complete, over its free blocks.
void write_account(const StreamHeap& asking, const Request& request, OutOfMemory* account) noexcept;

}  // namespace ashlar::inline v0::cache
