// A planned trace run: the trace is recorded and planned, and then served by a replay of the plan for
// each of its streams.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ashlar/cache/caching_allocator.h>
#include <ashlar/replay/replay.h>

#include "src/tool/plan_limits.h"
#include "src/tool/trace.h"
#include "src/tool/world.h"

namespace ashlar::tool {

/// The recordings of a trace's streams, and their plans: both by stream.
struct PlannedTrace {
  std::vector<std::uint64_t> streams;  ///< by stream: its number in the trace's file
  std::vector<replay::Recording> recordings;
  std::vector<plan::Plan> plans;
  double seconds = 0;   ///< how long planning took
  std::string trouble;  ///< why there is no plan, or empty

  Bytes peak() const;             ///< the sum over all plans
  Bytes lower_bound() const;      ///< the sum over all plans
  std::uint64_t managed() const;  ///< how many allocations the plans place
  /// The recorded stream with the same number as stream `stream` of `trace`, which may be another
  /// trace than the planned one; streams.size() if there is none.
  std::size_t stream_of(const Trace& trace, std::uint32_t stream) const;
};

/// Runs the trace through recorders on a device that costs nothing, and plans the recordings, each
/// stream's within the work, and all within the time, of the limits. By default the limit is in steps, so
/// that the plans are the same everywhere.
PlannedTrace plan_trace(const Trace& trace, const PlanLimits& limits);
/// The same with a plan that is given: one of problem_of(trace, replay::kReplayAlignment), whose spaces
/// are the streams.
PlannedTrace with_plan(const Trace& trace, const plan::Plan& plan);
/// Validates another run of the trace: one line on the first stream that differs, or empty.
std::string first_difference(const PlannedTrace& planned, const Trace& run);

/// What the replays of a planned run counted.
struct PlannedFigures {
  replay::ReplayCounts counts;
  std::uint64_t steps = 0;       ///< how many steps were compared with the model
  std::string first_divergence;  ///< empty: none
};

/// What an account pass allocates through.
class Front {
 public:
  virtual ~Front() = default;
  /// `index` is the stream's index in the trace.
  virtual Result<Address> allocate(std::uint32_t index, Bytes size, const Stream& stream,
                                   cache::OutOfMemory* why) = 0;
  /// `index` is the index of the allocation's stream.
  virtual Status free(std::uint32_t index, Address address) = 0;
  /// Gives segments back. Nothing is called afterwards.
  virtual PlannedFigures finish() = 0;
};

std::unique_ptr<Front> make_plain_front(cache::CachingAllocator& allocator);
/// Allocates through a replay for each stream; with `check`, each in lockstep with its model. A stream
/// that was not recorded goes to the first replay. All arguments outlive the front.
std::unique_ptr<Front> make_planned_front(cache::CachingAllocator& allocator,
                                          const PlannedTrace& planned, const Trace& trace,
                                          World& world, bool check);

}  // namespace ashlar::tool
