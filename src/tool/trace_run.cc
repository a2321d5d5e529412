#include "src/tool/trace_run.h"

#include <algorithm>
#include <utility>

#include "src/tool/alter.h"

namespace ashlar::tool {
namespace {

constexpr Bytes kCapacityStep = 2_MiB;

double ratio(Bytes part, Bytes whole) {
  return whole == 0_B ? 1.0
                      : static_cast<double>(part.count()) / static_cast<double>(whole.count());
}

}  // namespace

double TraceRunResult::utilisation() const {
  return ratio(account.peak_requested, capacity_was_found ? capacity : account.peak_reserved);
}

Bytes find_capacity(const Trace& trace, const TraceRunOptions& options, Bytes peak_reserved) {
  TraceRunOptions plain = options;
  plain.wants_picture = false;
  // In steps of capacity. The trace does not run on `low`; it runs on `high`.
  std::uint64_t low = (trace.peak_live.count() + kCapacityStep.count() - 1) / kCapacityStep.count();
  low = std::max<std::uint64_t>(low, 1) - 1;
  std::uint64_t high = std::max<std::uint64_t>(
      (peak_reserved.count() + kCapacityStep.count() - 1) / kCapacityStep.count(), 1);
  high = std::max(high, low + 1);
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    const Account account = account_pass(trace, plain, kCapacityStep * middle, true);
    (account.ooms == 0 ? high : low) = middle;
  }
  return kCapacityStep * high;
}

namespace {

TraceRunResult run_passes(const Trace& trace, const std::string& file,
                          const TraceRunOptions& options) {
  TraceRunResult result;
  result.trace = trace.name;
  result.file = file;
  result.allocations = trace.allocations;
  result.events = std::uint64_t{trace.allocations} + trace.frees;
  result.stated_peak_live = trace.stated_peak_live;
  result.capacity = options.capacity;
  if (options.find_capacity) {
    TraceRunOptions plain = options;
    plain.wants_picture = false;
    const Account unlimited = account_pass(trace, plain, Bytes::max());
    result.capacity = find_capacity(trace, options, unlimited.peak_reserved);
    result.capacity_was_found = true;
  }
  result.account = account_pass(trace, options, result.capacity);
  if (options.check && !options.is_planned)
    result.check = check_pass(trace, options, result.capacity);
  const Timing timing = timing_pass(trace, options.config, options.planned);
  result.ns_per_event = timing.ns_per_event;
  result.timing_passes = timing.passes;
  return result;
}

}  // namespace

TraceRunResult run_trace(const Trace& trace, const std::string& file,
                         const TraceRunOptions& options) {
  if (!options.is_planned) return run_passes(trace, file, options);
  const Trace run = closed(trace);
  const PlannedTrace planned = plan_trace(run);
  const AlteredTrace altered =
      options.alter > 0 ? alter(run, options.alter, options.seed) : AlteredTrace{run, 0};
  TraceRunOptions through_plan = options;
  through_plan.planned = &planned;
  TraceRunResult result = run_passes(altered.trace, file, through_plan);
  result.planned =
      PlannedOutcome{planned.managed(), planned.peak(),  planned.lower_bound(),
                     planned.seconds,   altered.altered, first_difference(planned, altered.trace)};
  if (!planned.trouble.empty()) {
    ++result.account.faults;
    result.account.first_trouble = planned.trouble;
  }
  return result;
}

}  // namespace ashlar::tool
