// Statistics in words: as a table for people, and as JSON for programs.
//
// Thread safety: pure functions.
#pragma once

#include <iosfwd>
#include <string>

#include <ashlar/base/export.h>
#include <ashlar/cache/stats.h>

namespace ashlar::inline v0::cache {

/// The figure's name, that of its member: "reserved_bytes"; "unknown" for any other number. Static
/// storage. Never throws.
ASHLAR_API const char* figure_name(StatFigure figure) noexcept;

/// A table with a line for each figure and pool, then the plain counters, then the device calls that
/// were made. Lines end with a newline and have at most 80 columns unless a number has over 14 digits.
/// Throws std::bad_alloc. Cost: some 50 lines.
ASHLAR_API std::string to_text(const DeviceStats& stats);

/// One JSON object without a newline, with every number: by figure and pool
/// {"reserved_bytes":{"all":{"current":..,"peak":..,"increased":..,"decreased":..},"small":..,"large":..},
/// the plain counters by the names of their members, and "device_calls" by call_name(). Throws
/// std::bad_alloc.
ASHLAR_API std::string to_json(const DeviceStats& stats);

/// to_text(). Throws what the stream throws, and std::bad_alloc.
ASHLAR_API std::ostream& operator<<(std::ostream& out, const DeviceStats& stats);

}  // namespace ashlar::inline v0::cache
