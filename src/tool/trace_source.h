// Where a trace came from: the kind of file, and what of the file did not become events.
//
// Thread safety: plain values.
#pragma once

#include <cstdint>
#include <optional>

namespace ashlar::tool {

/// What a file is, judged by its first bytes.
enum class FileKind : std::uint8_t {
  kTrace,         ///< an alloc-trace
  kPickle,        ///< a memory snapshot of PyTorch, as a pickle
  kSnapshotJson,  ///< the same as JSON
  kRmmLog,        ///< a log of RMM: CSV
  kOther,         ///< no file with allocations: what_else() says what
};

/// What to read of a file that has several traces.
struct TraceRequest {
  std::optional<std::uint32_t> device;  ///< of a snapshot; nothing: the only one with events
};

/// What was read, beside the trace.
struct TraceSource {
  FileKind kind = FileKind::kTrace;
  std::uint32_t device = 0;         ///< of a snapshot
  std::uint64_t events = 0;         ///< how many the file has
  std::uint64_t skipped = 0;        ///< of those, how many are neither allocations, frees nor marks
  std::uint64_t live_at_start = 0;  ///< allocations whose own event is not in the file
  std::uint64_t allocated_late = 0;  ///< live in the snapshot, and allocated after its last event
};

}  // namespace ashlar::tool
