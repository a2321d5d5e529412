// The rules' machine over the CUDA driver: another implementation of spec::RuleMachine.
//
// Purpose: each case of props/rules asked of a real driver, and over the simulated GPU's functions without one.
// Thread safety: one thread.
//
// What it cannot do answers kUnsupported, and the case is then not run: graphs with conditionals, kernels that wait for each other,
// failures and ends of devices. Misuse is not reported as faults: of what a case says of it the answers are judged.
#pragma once

#include <memory>

#include "spec/gpu/rule_machine.h"

namespace ashlar::props {

/// Null, and why (RuleGpus::open), where there is no such machine. Its kernels run when the case lets them, or when it is over. A case may leave the
/// driver in an error that stays: each is run in a process of its own.
std::unique_ptr<spec::RuleMachine> make_driver_machine(const spec::SimGpuOptions& asked,
                                                       bool is_simulated, Status* why);

}  // namespace ashlar::props
