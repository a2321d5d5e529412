// Planned replay: a trace is recorded, planned, and served from a segment for each of its streams.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ashlar/cache/caching_allocator.h>
#include <ashlar/replay/replay.h>

#include "src/tool/trace.h"
#include "src/tool/world.h"

namespace ashlar::tool {

/// The recordings of a trace's streams, and their plans: both by stream.
struct PlannedTrace {
  std::vector<std::uint64_t> streams;  ///< the trace's numbers
  std::vector<replay::Recording> recordings;
  std::vector<plan::Plan> plans;
  double seconds = 0;   ///< that planning took
  std::string trouble;  ///< why there is none, or empty

  Bytes peak() const;  ///< of all segments
  Bytes lower_bound() const;
  std::uint64_t managed() const;
  /// The stream of a trace which, with that index there, has that number here; streams.size() if
  /// none has.
  std::size_t stream_of(const Trace& trace, std::uint32_t stream) const;
};

/// Runs the trace through recorders on a device that costs nothing, and plans: with a limit in
/// steps, so that the plan is the same everywhere.
PlannedTrace plan_trace(const Trace& trace);
/// What validation says of another run of it: one line for the first stream where they differ, or
/// empty.
std::string first_difference(const PlannedTrace& planned, const Trace& run);

/// What replays came to.
struct PlannedFigures {
  replay::ReplayCounts counts;
  std::uint64_t steps = 0;       ///< compared with the model
  std::string first_divergence;  ///< empty: none
};

/// What an account pass allocates through.
class Front {
 public:
  virtual ~Front() = default;
  /// `index` is the stream's in the trace.
  virtual Result<Address> allocate(std::uint32_t index, Bytes size, const Stream& stream,
                                   cache::OutOfMemory* why) = 0;
  /// `index` is that of the allocation's stream.
  virtual Status free(std::uint32_t index, Address address) = 0;
  /// Gives segments back. Nothing is called afterwards.
  virtual PlannedFigures finish() = 0;
};

std::unique_ptr<Front> make_plain_front(cache::CachingAllocator& allocator);
/// Through a replay for each stream; with `check`, each in lockstep with the model. A stream that
/// was not recorded is the first replay's affair. All outlive the front.
std::unique_ptr<Front> make_planned_front(cache::CachingAllocator& allocator,
                                          const PlannedTrace& planned, const Trace& trace,
                                          World& world, bool check);

}  // namespace ashlar::tool
