// Allocation traces: alloc-trace v1, plain or gzip.
//
// Format: the first line is a JSON object with "format":"alloc-trace" and "version":1. Then each line
// is one event:
//   a <id> <bytes> [<stream>]   an allocation (stream 0 if absent)
//   f <id>                      its free
//   m <text>                    a mark
// An id is used by one allocation only. An allocation without a free stays live. Optional header
// fields that are checked: "unit" is "bytes"; "events" counts the lines after the header, or only the
// allocations and frees.
//
// A byte order mark of UTF-8 before the first line is skipped, and a carriage return at a line's end.
//
// Reading is strict: everything else is an error `file:line: reason`, and no partial trace is
// returned. So is text of more than 2 GiB, unpacked.
// Thread safety: plain values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <ashlar/base/types.h>
#include <ashlar/exchange/trace_writer.h>

#include "src/tool/trace_stacks.h"

namespace ashlar::tool {

/// The largest allocation of a trace, 1 EiB; the allocator refuses larger ones.
inline constexpr Bytes kTraceAllocationMax{std::uint64_t{1} << 60};
/// The maximum length of a line, in bytes.
inline constexpr std::size_t kTraceLineMax = std::size_t{1} << 20;
/// The maximum number of events, and of streams.
inline constexpr std::size_t kTraceEventsMax = std::size_t{1} << 30;
/// The most text that the marks of a trace may have together.
inline constexpr std::size_t kTraceMarkBytesMax = std::size_t{64} << 20;
using exchange::kTraceStreamsMax;

struct TraceEvent {
  enum class Kind : std::uint8_t { kAllocate, kFree, kMark };
  Kind kind = Kind::kMark;
  /// of an allocation: its number, from 0 in file order; of a free: its allocation's; of a mark: index
  /// into Trace::marks
  std::uint32_t slot = 0;
  std::uint32_t stream = 0;  ///< of an allocation: index into Trace::streams
  Bytes size;                ///< of an allocation
  std::uint32_t stack = 0;   ///< of an allocation or a free: its call stack, of Trace::stacks
};

struct Trace {
  std::string name;  ///< the file's name without folders and endings
  std::vector<TraceEvent> events;
  std::vector<std::string> marks;
  std::vector<std::uint64_t> streams;  ///< the file's stream numbers in order of first use
  std::uint32_t allocations = 0;       ///< how many, and so how many slots
  std::uint32_t frees = 0;
  Bytes peak_live;                        ///< of the requested bytes; counted by the reader
  std::optional<Bytes> stated_peak_live;  ///< the header's "peak_live_bytes"
  TraceStacks stacks;                     ///< of a snapshot's events; an alloc-trace has none
};

/// Makes a trace event by event. Cost: O(1) each.
class TraceBuilder {
 public:
  explicit TraceBuilder(std::string name) { trace_.name = std::move(name); }
  /// Adds an allocation and returns its slot; nothing if that would exceed a limit above, or if the
  /// live bytes would not fit in 64 bits. `stack` is of the trace's stacks.
  std::optional<std::uint32_t> allocate(Bytes size, std::uint64_t stream = 0,
                                        std::uint32_t stack = 0);
  /// Adds a free. False if the slot is not live.
  bool free(std::uint32_t slot, std::uint32_t stack = 0);
  void mark(std::string_view text);
  Trace& trace() { return trace_; }

 private:
  Trace trace_;
  std::vector<Bytes> size_of_;                                 // by slot
  std::vector<bool> is_live_;                                  // by slot
  std::unordered_map<std::uint64_t, std::uint32_t> index_of_;  // by the file's stream number
  Bytes live_;
};

/// Reads a trace from memory; `name` stands for the file in messages. On failure `*error` is one line,
/// `name:line: reason`. Cost: linear. Files: trace_file.h.
std::optional<Trace> parse_trace(std::string_view data, const std::string& name,
                                 std::string* error);

/// What a trace is called that comes from this file: without folders and endings.
std::string trace_name(const std::string& path);

/// The trace as text. The header has the format, version, name, unit, events and peak.
std::string format_trace(const Trace& trace);
/// Writes format_trace, gzipped when the path ends in .gz (the same bytes every time); the file
/// appears whole or not at all. On failure `*error` is one line.
bool write_trace(const Trace& trace, const std::string& path, std::string* error);

}  // namespace ashlar::tool
