// What an allocator would record of a trace: a history, and the snapshot at its end.
//
// Purpose: files that name memory by its address (snapshots, logs) can be written of a trace, which has
// no addresses. They are made here, by the simplest rule that reuses memory: each stream has segments of
// its own, in steps of 2 MiB; an allocation takes the smallest free range of its stream that fits, cut to
// 512 bytes; a free merges with its free neighbours. No segment goes back. Nothing is measured by this:
// `ashlar replay` runs the allocator itself.
// Thread safety: pure functions.
#pragma once

#include <optional>
#include <string>

#include <ashlar/cache/history.h>

#include "src/tool/trace.h"

namespace ashlar::tool {

/// Where the made addresses begin, and before which they end: JavaScript's numbers hold no more.
inline constexpr std::uint64_t kMadeAddressMin = std::uint64_t{1} << 40;
inline constexpr std::uint64_t kMadeAddressMax = std::uint64_t{1} << 53;

/// A history with an event for each of the trace's, and in which each free is requested and completed at
/// once; marks are annotations. Its streams are the trace's stream numbers, and its times count
/// microseconds. On failure `*error` is why: the addresses do not suffice. Cost: O(n log n).
std::optional<cache::HistorySnapshot> history_of(const Trace& trace, std::string* error);

}  // namespace ashlar::tool
