// A snapshot that agrees with the history (row DEV-18), though the heaps are copied one after the other and
// other threads go on.
//
// Purpose: a viewer undoes the events in the snapshot, newest first, so both must be of one moment. No lock
// is held over that moment: the log makes up for it, as a database's does for a copy made while it runs.
// How: (a) note where the log ends, (b) copy the heaps, (c) note where the log ends again, with the event
// kSnapshot, (d) apply the events between the two to the copy, in order.
// Why that is right: a change is noted in the hold of the lock that it is made under, so what the copy
// shows was noted before (c); of which heap a segment is, the copy reads what the log wrote with the event. Of each byte, either no event lies between (a) and (c): then it has not
// changed, and the copy is right; or some do, and the last one says what it is at (c), whatever the copy
// shows. Memory in transfer is shown as noted (InTransfer::kAsNoted).
// Where another thread ends the history or begins another one meanwhile, it is begun again.
// Thread safety: any thread.
#pragma once

#include <span>

#include <ashlar/cache/device_cache.h>
#include <ashlar/cache/history.h>

namespace ashlar::inline v0::cache {

/// Replaces `*out`. Without a history it is a snapshot alone. kBusy, and `*out` is of no use, if events were
/// overwritten before they could be applied, again and again: HistoryOptions::events_max is too small for
/// what the other threads do. Throws std::bad_alloc.
/// Cost: a snapshot, and the copy of the events; where events had to be applied, a search tree of all blocks.
Status write_history_snapshot(DeviceCache& cache, HistorySnapshot* out);

/// Step (d): applies `events` to the snapshot.
void apply_events(std::span<const HistoryEvent> events, Snapshot* snapshot);

}  // namespace ashlar::inline v0::cache
