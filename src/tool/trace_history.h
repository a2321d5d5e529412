// What the allocator records of a trace: a history, and the snapshot at its end.
//
// Purpose: files that name memory by its address (snapshots, logs) can be written of a trace, which has
// no addresses. The trace runs through the caching allocator over a device that costs nothing, in segments,
// with its history on.
// Thread safety: pure functions.
#pragma once

#include <optional>
#include <string>

#include <ashlar/cache/history.h>

#include "src/tool/trace.h"

namespace ashlar::tool {

/// Addresses end before this: JavaScript's numbers hold no more.
inline constexpr std::uint64_t kMadeAddressMax = std::uint64_t{1} << 53;

/// The history, with all of its events; marks are annotations. Its streams are the trace's stream numbers, and
/// its times count microseconds from 0, so that the same trace gives the same file. An allocation of zero
/// bytes, which gets no memory, is recorded as a block of one granule. On failure `*error` is why: the
/// addresses do not suffice, or this computer's memory.
std::optional<cache::HistorySnapshot> history_of(const Trace& trace, std::string* error);

}  // namespace ashlar::tool
