// Writes a `.trace` of a run while it happens, or of a history afterwards.
//
// Purpose: any program, whatever its allocator, can record what `ashlar replay` reads (the format:
// src/tool/trace.h). Its header leaves out the optional "events" and "peak_live_bytes": they are known
// at the end only, and a pipe or a compressed file cannot be gone back in. Readers count both.
//
// Rule of the caller: on_allocate() is called after the memory was obtained, and on_free() before it is
// given back, so that no address is in use twice in the file. To a stream-ordered allocator a free is
// the request, whenever the memory can be used again.
//
//     auto writer = exchange::TraceWriter::open("run.trace", "run").value();
//     writer->on_allocate(address, size, stream.id.value());
//     writer->on_free(address);
//     if (!writer->finish().is_ok()) ...
//
// Thread safety: any thread; one lock of its own, held while the sink is called.
//
// Invariant: the sink gets a trace that the reader takes, or a prefix of one.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include <ashlar/base/export.h>
#include <ashlar/base/status.h>
#include <ashlar/base/types.h>
#include <ashlar/cache/history.h>
#include <ashlar/exchange/byte_sink.h>

namespace ashlar::inline v0::exchange {

class OutputBuffer;

/// How many streams a trace may have.
inline constexpr std::size_t kTraceStreamsMax = std::size_t{1} << 16;
/// How much of a mark, or of a name, is written, in bytes.
inline constexpr std::size_t kTraceTextMax = std::size_t{64} << 10;

/// What a trace writer was told.
struct TraceWriterCounts {
  std::uint64_t allocations = 0;  ///< written
  std::uint64_t frees = 0;        ///< written
  std::uint64_t marks = 0;        ///< written
  /// frees of addresses that no written allocation has: live before the writer began, or foreign
  std::uint64_t unknown_frees = 0;
  /// allocations at an address whose free was not told; it is written just before
  std::uint64_t untold_frees = 0;
  /// not written: what readers refuse (on_allocate()), for want of host memory, or because the sink failed
  std::uint64_t lost = 0;
};

/// Writes a trace event by event.
class ASHLAR_API TraceWriter {
 public:
  /// Writes to `sink`; the header has `name`. Throws std::bad_alloc.
  TraceWriter(ByteSink sink, std::string_view name);
  /// Writes to a file. Errors and exceptions as file_sink().
  static Result<std::unique_ptr<TraceWriter>> open(const std::string& path, std::string_view name);
  /// Does what finish() does.
  ~TraceWriter();
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  /// An allocation. `stream` is any number that tells streams apart. Null is not written. Counted as lost, and
  /// its free as unknown, is an allocation of more than 1 EiB, one with which the live bytes would not fit in
  /// 64 bits, one of a further stream after kTraceStreamsMax, and one for which there is no host memory.
  /// Cost: O(1), and the sink's every 64 KiB. Never throws. Thread safety: any thread.
  void on_allocate(Address address, Bytes size, std::uint64_t stream = 0) noexcept;
  /// A free. Null is not written; an unknown address is counted. Cost: as on_allocate(); allocates
  /// nothing itself. Never throws. Thread safety: any thread.
  void on_free(Address address) noexcept;
  /// A mark, such as the beginning of a step. Control characters become spaces, at most kTraceTextMax
  /// bytes are written, and an empty text is not. Never throws. Thread safety: any thread.
  void mark(std::string_view text) noexcept;

  /// Passes everything on to the sink. kWriteFailed: it failed, now or before, or threw; the file
  /// may end within a line. kHostOutOfMemory: an allocation is missing for want of host memory. The writer can
  /// be used on. Never throws. Thread safety: any thread.
  Status finish() noexcept;
  /// So far. Never throws. Thread safety: any thread.
  TraceWriterCounts counts() const noexcept;

 private:
  /// What is kept of a live allocation.
  struct Live {
    std::uint64_t id;
    Bytes size;
  };
  /// Would a reader take the allocation?
  bool is_readable(Bytes size, std::uint64_t stream) const noexcept;
  void end_allocation(const Live& ended) noexcept;

  mutable std::mutex mutex_;  // guards the members below
  std::unique_ptr<OutputBuffer> out_;
  std::unordered_map<Address, Live> live_;  // the allocation at each address
  std::unordered_set<std::uint64_t> streams_;
  Bytes live_bytes_;
  TraceWriterCounts counts_;
  bool is_host_exhausted_ = false;
};

/// Writes a history as a trace: the allocations that were live before its oldest event, in address
/// order, then what happened. Frees stand where they were requested, annotations as marks; failures and
/// segments are left out. Streams are their ids.
///
/// kInvalidArgument, before anything is written: the snapshot and its history do not agree, or an
/// allocation is larger than 1 EiB. kWriteFailed: the sink took no more, or threw. kHostOutOfMemory: the
/// host has no memory for it. Throws std::bad_alloc. Cost: O(n log n) in blocks and events.
ASHLAR_API Status write_trace_text(const cache::HistorySnapshot& record, std::string_view name,
                                   const ByteSink& sink);

}  // namespace ashlar::inline v0::exchange
