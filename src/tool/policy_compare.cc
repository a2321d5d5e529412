// The policies of `ashlar replay --policy` side by side: each runs the trace by itself, and its smallest
// device is looked for.
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "src/tool/alter.h"
#include "src/tool/capacity_search.h"
#include "src/tool/progress.h"
#include "src/tool/trace_run.h"

namespace ashlar::tool {
namespace {

/// One run on a device of that capacity. A probe ends at the first out-of-memory, and has no timeline.
using Run = std::function<PolicyOutcome(Bytes capacity, bool is_probe)>;

PolicyOutcome outcome_of(Account account, PolicyKind kind) {
  PolicyOutcome outcome;
  outcome.name = policy_name(kind);
  outcome.peak_reserved = account.peak_reserved;
  outcome.used = used_part(account.peak_requested, account.peak_reserved);
  outcome.driver_calls = account.driver_calls;
  outcome.driver_ns = account.driver_ns;
  outcome.waits = account.waits;
  outcome.ooms = account.ooms;
  outcome.timeline = decimated(account.timeline.reserved);
  return outcome;
}

PolicyOutcome run_everywhere(const Trace& trace, const TraceRunOptions& options, const Run& run) {
  PolicyOutcome unlimited = run(Bytes::max(), false);
  std::optional<Bytes> capacity;
  if (unlimited.ooms == 0) {
    capacity = smallest_capacity(trace, unlimited.peak_reserved,
                                 [&](Bytes size) { return run(size, true).ooms == 0; });
  }
  const Bytes asked = options.find_capacity ? capacity.value_or(Bytes::max()) : options.capacity;
  PolicyOutcome row = asked == Bytes::max() ? std::move(unlimited) : run(asked, false);
  row.capacity = capacity;
  return row;
}

/// Runs of the allocator itself; with `options.planned`, through the plans.
Run account_runs(const Trace& trace, const TraceRunOptions& options, PolicyKind kind) {
  return [&trace, &options, kind](Bytes capacity, bool is_probe) {
    TraceRunOptions run = options;
    run.check = false;
    run.wants_picture = options.wants_picture && !is_probe;
    return outcome_of(account_pass(trace, run, capacity, is_probe), kind);
  };
}

PolicyOutcome run_planned(const Trace& trace, const TraceRunOptions& options,
                          TraceRunResult* result) {
  const Trace run = closed(trace);
  const auto plans = std::make_shared<const PlannedTrace>(plan_trace(run, options.limits));
  const PlannedTrace& planned = *plans;
  if (options.wants_picture) result->plans = plans;
  if (!planned.trouble.empty()) {
    ++result->account.faults;
    if (result->account.first_trouble.empty()) result->account.first_trouble = planned.trouble;
  }
  TraceRunOptions through_plan = options;
  through_plan.planned = &planned;
  return run_everywhere(run, options, account_runs(run, through_plan, PolicyKind::kPlanned));
}

}  // namespace

void compare_policies(const Trace& trace, const TraceRunOptions& options, TraceRunResult* result) {
  for (const PolicyKind kind : options.policies) {
    if (kind == PolicyKind::kPlanned) {
      result->policies.push_back(run_planned(trace, options, result));
    } else if (kind == PolicyKind::kAshlar) {
      result->policies.push_back(
          run_everywhere(trace, options, account_runs(trace, options, kind)));
    } else {
      const Progress progress(std::string(policy_name(kind)) + ": running " + trace.name);
      result->policies.push_back(
          run_everywhere(trace, options, [&, kind](Bytes capacity, bool is_probe) {
            return policy_pass(trace, kind, capacity, options.wants_picture && !is_probe, is_probe);
          }));
    }
  }
}

}  // namespace ashlar::tool
