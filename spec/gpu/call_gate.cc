#include "spec/gpu/call_gate.h"

#include <algorithm>

namespace ashlar::spec {

CallGate::CallGate(const SimGpuOptions& options, Scheduler& scheduler, FaultLog& faults)
    : options_(options), scheduler_(scheduler), faults_(faults), rng_(options.seed ^ 0xace) {}

Status CallGate::check_alive(std::uint32_t device) const {
  ASHLAR_REQUIRE(!torn_down_, Code::kTornDown, "the driver is unloaded");
  ASHLAR_REQUIRE(!scheduler_.is_lost(device), Code::kDeviceLost, "the device is lost");
  return Status::ok();
}

Status CallGate::enter(std::uint32_t device, device::CallKind kind, Bytes size) {
  if (torn_down_) faults_.misuse(FaultKind::kCallAfterTeardown, "C25: ", device::call_name(kind));
  if (options_.pace > 0) {
    for (std::uint64_t n = rng_.below(std::uint64_t{options_.pace} + 1); n > 0; --n)
      scheduler_.run_any();
  }
  const bool callers_own = FaultLog::current_blame() == Blame::kCaller;
  if (!callers_own) account_.charge(kind, options_.cost.of(kind, size));
  const Status alive = check_alive(device);
  if (!alive.is_ok() || callers_own) return alive;
  for (std::size_t i = 0; i < plans_.size(); ++i) {
    Plan& plan = plans_[i];
    if (plan.kind != kind) continue;
    if (plan.left > 1) {
      --plan.left;
      continue;
    }
    const Code code = plan.code;
    ++account_.planned_failures;
    if (plan.mode == FailMode::kOnce) plans_.erase(plans_.begin() + static_cast<std::ptrdiff_t>(i));
    leave(kind, code);
    if (code == Code::kDeviceLost) scheduler_.lose(device);
    return Status{code, "a planned failure"};
  }
  return Status::ok();
}

void CallGate::leave(device::CallKind kind, Code code) {
  if (code == Code::kOk || code == Code::kNotReady || FaultLog::current_blame() == Blame::kCaller)
    return;
  ++account_.by_kind[static_cast<unsigned>(kind)].failed;
}

Status CallGate::refuse_in_host_function() {
  faults_.misuse(FaultKind::kCalledFromHostFunction,
                 "a device call inside a host function (cudaErrorNotPermitted)");
  return Status{Code::kDriverError, "not permitted inside a host function"};
}

void CallGate::fail(device::CallKind kind, std::uint64_t n, FailMode mode, Code code) {
  plans_.push_back(Plan{kind, std::max<std::uint64_t>(n, 1), mode, code});
}

CallAccount CallGate::account() const {
  CallAccount account = account_;
  account.entries_run = scheduler_.entries_run();
  return account;
}

}  // namespace ashlar::spec
