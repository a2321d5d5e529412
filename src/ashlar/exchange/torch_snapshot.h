// PyTorch's memory snapshot: what torch.cuda.memory._snapshot() returns, as a pickle or as JSON.
//
// Purpose: row DEV-17. The viewer at pytorch.org/memory_viz and torch/cuda/_memory_viz.py open the
// file. Both forms come from one walk over the document, so they hold the same. The pickle has protocol
// 2 and uses only opcodes that the viewer knows, and lists are written in parts, since the viewer fails
// on longer ones.
//
// The viewer replays events backwards from the segments, and fails on a file in which they do not
// agree. So the writer undoes the events first, and refuses a record that the viewer could not show.
//
// Thread safety: any number of calls at the same time.
#pragma once

#include <vector>

#include <ashlar/base/export.h>
#include <ashlar/base/status.h>
#include <ashlar/exchange/byte_sink.h>
#include <ashlar/exchange/device_history.h>

namespace ashlar::inline v0::exchange {

/// How a snapshot is written.
enum class TorchFormat : unsigned char {
  kPickle,  ///< opens in every version of the viewer
  kJson,    ///< the same structure as JSON; tuples are lists. Newer versions of the viewer read it
};

/// A moment that the program marked, with names and values of its own.
struct ExternalAnnotation {
  DeviceId device;               ///< at which device
  std::uint64_t time_us = 0;     ///< since 1970, in microseconds
  std::vector<KeyValue> values;  ///< what the program says of it, such as its name and stage
};

/// What a snapshot holds beside the histories.
struct TorchSnapshotOptions {
  TorchFormat format = TorchFormat::kPickle;  ///< see there
  /// "allocator_settings", which the viewer shows. The writer adds "trace_alloc_overflowed", and where
  /// events are missing "note", which says how many and why.
  std::vector<KeyValue> settings;
  FrameSource frames;                           ///< call stacks, as the user's recorder knows them
  std::vector<ExternalAnnotation> annotations;  ///< those outside the window are left out
  ExportWindow window;                          ///< which events are written
};

/// Writes one snapshot of all given devices. Sizes of allocations are those that were asked for; a
/// block that was free at the window's end is "inactive", and free neighbours are one block. A segment
/// with addresses that have no memory is written as one segment for each range that has. Memory that a
/// window's end brings back has the pool, block size and requested size of its events.
///
/// kInvalidArgument, before anything is written: a device is out of range, without a record, or given
/// twice; an address or size is not below 2^53, which JavaScript cannot hold; or a snapshot and its
/// history do not agree. kWriteFailed: the sink took no more. Throws std::bad_alloc, and what the sink
/// and the frame source throw. Cost: O(n log n) in blocks and events; host memory for the live blocks,
/// each distinct text and each context once.
ASHLAR_API Status write_torch_snapshot(const std::vector<DeviceHistory>& devices,
                                       const TorchSnapshotOptions& options, const ByteSink& sink);

}  // namespace ashlar::inline v0::exchange
