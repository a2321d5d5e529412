// The rule runner: executes a rule case (an `.ops` file with subject gpu) on a RuleMachine.
//
// Purpose: one case for one rule of CUDA, with one verdict for each machine: the machine agrees, it
// differs, or it cannot run the case.
//
// A case is strict: an op that is not followed by `expect` must succeed, and every fault of the
// machine must be named by an `expect-fault` directly after the op that caused it (or after that
// op's `expect`). Ops whose names are not bound are skipped (Op invariant 2). Header ops (device,
// seed, queue-depth, hardware-queues) come first and describe the machine.
//
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "spec/gpu/rule_machine.h"
#include "spec/ops/op.h"

namespace ashlar::spec {

enum class RuleVerdict : std::uint8_t { kAgrees, kDiffers, kNotRun };

struct RuleReport {
  RuleVerdict verdict = RuleVerdict::kAgrees;
  /// line of the op at which the machine differed or could not go on; 0 if the file has no lines
  std::uint32_t line = 0;
  std::string why;
};

/// Makes the machine that a case asks for; nullptr when it cannot be had (too few devices, ...).
using RuleMachineMaker = std::function<std::unique_ptr<RuleMachine>(const SimGpuOptions& asked)>;

/// The machine that the case's header ops ask for.
SimGpuOptions asked_options(const OpFile& file);
/// Runs the case on a machine that has what it asks for. Never throws. REQUIRES: file.subject is kGpu.
RuleReport run_rule(const OpFile& file, RuleMachine& machine);
/// The same on a machine of its own, which ends with it.
RuleReport run_rule(const OpFile& file, const RuleMachineMaker& make);

}  // namespace ashlar::spec
