// RMM's log: the CSV file that rmm::mr::logging_resource_adaptor writes and RMM's REPLAY_BENCHMARK
// reads.
//
// Thread safety: any number of calls at the same time.
#pragma once

#include <ashlar/base/export.h>
#include <ashlar/base/status.h>
#include <ashlar/cache/history.h>
#include <ashlar/exchange/byte_sink.h>

namespace ashlar::inline v0::exchange {

/// Writes a history as `Thread,Time,Action,Pointer,Size,Stream`: an `allocate` for each allocation, first
/// for those that were live before the oldest event, in address order; a `free` when it was requested;
/// an `allocate failure` for each out-of-memory. A history knows no threads, so Thread is 0. Time is that
/// of the day, in UTC. (RMM's own replay reads a stream other than 0 as 0.)
///
/// kInvalidArgument, before anything is written: the snapshot and its history do not agree.
/// kWriteFailed: the sink took no more. Throws std::bad_alloc, and what the sink throws. Cost:
/// O(n log n) in blocks and events.
ASHLAR_API Status write_rmm_log(const cache::HistorySnapshot& record, const ByteSink& sink);

}  // namespace ashlar::inline v0::exchange
