// CallGate: what happens before and after every Device call of a simulated machine.
//
// Purpose: charges the call to the account, lets the adversary finish entries, answers for a lost
// device or an unloaded driver (D8), and makes planned calls fail.
// Thread safety: none (the machine's lock).
#pragma once

#include <cstdint>
#include <vector>

#include "spec/gpu/cost_model.h"
#include "spec/gpu/fault.h"
#include "spec/gpu/scheduler.h"
#include "spec/gpu/sim_types.h"
#include "spec/ops/random.h"

namespace ashlar::spec {

class CallGate {
 public:
  /// All arguments must outlive this.
  CallGate(const SimGpuOptions& options, Scheduler& scheduler, FaultLog& faults);

  /// Before a call: ok if the call may go on; else what it answers.
  Status enter(std::uint32_t device, device::CallKind kind, Bytes size);
  /// After it: counts failures.
  void leave(device::CallKind kind, Code code);
  /// kTornDown or kDeviceLost when that is so (D8).
  Status check_alive(std::uint32_t device) const;
  /// Reports a device call made inside a host function, and gives that call's answer.
  Status refuse_in_host_function();

  void fail(device::CallKind kind, std::uint64_t n, FailMode mode, Code code);
  void heal() { plans_.clear(); }
  bool has_plans() const { return !plans_.empty(); }
  void tear_down() { torn_down_ = true; }
  bool is_torn_down() const { return torn_down_; }

  /// A blocking call has to wait.
  void count_wait() { ++account_.waits; }
  CallAccount account() const;
  void mark_step() { account_.mark_step(); }
  void reset_account() { account_ = CallAccount{}; }

 private:
  struct Plan {
    device::CallKind kind;
    std::uint64_t left;  // calls until it fails, that call included
    FailMode mode;
    Code code;
  };

  const SimGpuOptions& options_;
  Scheduler& scheduler_;
  FaultLog& faults_;
  CallAccount account_;
  Random rng_;
  std::vector<Plan> plans_;
  bool torn_down_ = false;
};

}  // namespace ashlar::spec
