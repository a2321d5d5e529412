// Allocation traces: alloc-trace v1, plain or gzip.
//
// Format: the first line is a JSON object with "format":"alloc-trace" and "version":1; then one
//   event a line: a <id> <bytes> [<stream>]   an allocation (stream 0 when absent)
//   f <id>                      its free
//   m <text>                    a marker
// An id is used by one allocation only. What is not freed stays live. Optional header fields that
// are checked: "unit" is "bytes"; "events" counts the lines after the header, or only the
// allocations and frees.
//
// Reading is strict: anything else is an error that says `file:line: reason`; no partial trace
// comes out.
// Thread safety: plain values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <ashlar/base/types.h>

namespace ashlar::tool {

/// No allocation of a trace is larger (the allocator refuses more): 1 EiB.
inline constexpr Bytes kTraceAllocationMax{std::uint64_t{1} << 60};
/// Longer lines are an error.
inline constexpr std::size_t kTraceLineMax = std::size_t{1} << 20;
/// More events or streams are an error.
inline constexpr std::size_t kTraceEventsMax = std::size_t{1} << 30;
inline constexpr std::size_t kTraceStreamsMax = std::size_t{1} << 16;

struct TraceEvent {
  enum class Kind : std::uint8_t { kAllocate, kFree, kMark };
  Kind kind = Kind::kMark;
  /// allocations are numbered 0.. in file order; a free names its allocation; a mark its text
  std::uint32_t slot = 0;
  std::uint32_t stream = 0;  ///< of an allocation: index into Trace::streams
  Bytes size;                ///< of an allocation
};

struct Trace {
  std::string name;  ///< the file's, without folders and endings
  std::vector<TraceEvent> events;
  std::vector<std::string> marks;
  std::vector<std::uint64_t> streams;  ///< the file's stream numbers in order of first use
  std::uint32_t allocations = 0;       ///< number of slots
  std::uint32_t frees = 0;
  Bytes peak_live;                        ///< of requested bytes, counted here
  std::optional<Bytes> stated_peak_live;  ///< the header's "peak_live_bytes"
};

/// Makes a trace event by event. Cost: O(1) each.
class TraceBuilder {
 public:
  explicit TraceBuilder(std::string name) { trace_.name = std::move(name); }
  /// The new allocation's slot; nothing when a limit above is passed or the live bytes no longer
  /// fit in 64 bits.
  std::optional<std::uint32_t> allocate(Bytes size, std::uint64_t stream = 0);
  /// False when the slot is not live.
  bool free(std::uint32_t slot);
  void mark(std::string_view text);
  Trace& trace() { return trace_; }

 private:
  Trace trace_;
  std::vector<Bytes> size_of_;                                 // by slot
  std::vector<bool> is_live_;                                  // by slot
  std::unordered_map<std::uint64_t, std::uint32_t> index_of_;  // by the file's stream number
  Bytes live_;
};

/// Reads a trace from a file. On failure `*error` is one line, `file:line: reason` (`file: reason`
/// when it cannot be read at all). Cost: linear; holds the file and the trace in memory.
std::optional<Trace> read_trace(const std::string& path, std::string* error);
/// The same from memory; `name` stands for the file in messages.
std::optional<Trace> parse_trace(std::string_view data, const std::string& name,
                                 std::string* error);

/// The trace as text. The header has the format, version, name, unit, events and peak.
std::string format_trace(const Trace& trace);
/// Writes format_trace, gzipped when the path ends in .gz (the same bytes every time); the file
/// appears whole or not at all. On failure `*error` is one line.
bool write_trace(const Trace& trace, const std::string& path, std::string* error);

}  // namespace ashlar::tool
