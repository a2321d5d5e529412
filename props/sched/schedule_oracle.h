// The schedule oracle: a graph run over several backends gives what it gives on one.
//
// Backends with memories of their own run as late as they may (late_backend.h). The graph runs several times
// with other inputs; after each run the tensors that are kept are compared, bit for bit, with a plain run
// that has a buffer for each tensor. The schedule is judged too: S1 and S2 by definition.
// Thread safety: none.
#pragma once

#include <string>

#include <ashlar/sched/graph_scheduler.h>

#include "props/graph/graph_maker.h"

namespace ashlar::props {

struct ScheduleCase {
  std::uint64_t seed = 1;
  std::uint32_t backends = 2;
  std::uint32_t copy_places = 1;
  std::uint32_t runs = 4;
  bool is_pipelined = false;  ///< nothing is waited for before the last run is enqueued
  bool has_shared_memory = false;
  bool has_odd_traits = false;  ///< some backends lack events, waits, copies or kernels
};

/// The first difference; empty if all is well, or if no backend supports a node.
std::string compare_schedules(const MadeGraph& made, const ScheduleCase& one);

/// What S1 and S2 say of a schedule, by definition; empty if it keeps them.
std::string judge_schedule(const graph::Graph& graph, const sched::Schedule& schedule,
                           std::span<sched::Backend* const> backends,
                           const sched::ScheduleRequest& request);

}  // namespace ashlar::props
