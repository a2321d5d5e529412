// Makes a trace of a memory snapshot of PyTorch (torch.cuda.memory._snapshot(), _dump_snapshot()).
//
// What becomes what:
//   alloc                            an allocation, of the size that was requested
//   free_requested, or free          its end; free_completed ends it only if neither was there
//   user_defined, annotate           a mark with the text in user_metadata
//   oom, snapshot, segment_alloc, segment_free, segment_map, segment_unmap, and actions with other
//                                    names: skipped and counted
//   blocks in `segments` that are live and have no event; frees without an allocation
//                                    allocations at the beginning (addressed_events.h)
//   a live block whose last event is a free
//                                    an allocation at the end
//   frames                           the call stack of its event (snapshot_stacks.h)
// Without a history the live blocks are the whole trace. Old forms are read as far as they have one
// meaning: a bare list of segments, blocks without address or requested size, events without stream.
// Thread safety: pure functions.
#pragma once

#include <optional>
#include <string>

#include "src/tool/trace.h"
#include "src/tool/trace_source.h"
#include "src/tool/value_arena.h"

namespace ashlar::tool {

/// The most keys that an object of a snapshot may have: lookups go through all of them.
inline constexpr std::size_t kSnapshotKeysMax = 64;
/// The largest number of a device.
inline constexpr std::uint64_t kSnapshotDeviceMax = 1023;
/// The most text that marks may have together: a pickle can say one text many times in two bytes.
inline constexpr std::size_t kSnapshotMarkBytesMax = std::size_t{64} << 20;

/// The trace of one device. On failure `*error` is one line `file: place: reason`, where the place is
/// that in the document, for example `device_traces[0][17]`. Cost: linear in the document, what it shares
/// counted once: segments that share their blocks are refused where they have more blocks together than the
/// document has values.
std::optional<Trace> import_snapshot(const Document& document, const std::string& file,
                                     const TraceRequest& request, TraceSource* source,
                                     std::string* error);

}  // namespace ashlar::tool
