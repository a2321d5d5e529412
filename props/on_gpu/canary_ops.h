// Runs a sequence of ops (spec/ops, subject cache) on a GPU, with a canary for every kernel.
//
// Purpose: the generators and the stored sequences of the simulated GPU's suites, on real memory and a real driver. A sequence that
// fails is a `.ops` file, which runs again on a GPU, on the simulated one, and in lockstep with the model.
// Thread safety: one thread, in whose context the session is.
//
// Ops that only a simulated machine can do (failures, ends of devices, other devices), that a driver cannot be asked without harm
// (misuse, streams destroyed without a word, which are retired here), and those of no matter to memory are skipped; README.md lists
// them. A device's capacity is its memory limit here.
#pragma once

#include <string>

#include "props/on_gpu/canary_world.h"
#include "spec/ops/op.h"

namespace ashlar::props {

struct CanaryRun {
  std::string failure;  ///< empty: none
  CanaryCounts counts;
};

/// REQUIRES: file.subject is kCache.
CanaryRun run_canaries(GpuSession& session, const spec::OpFile& file, Planted planted);

}  // namespace ashlar::props
