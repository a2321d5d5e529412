#include "src/tool/trace_run.h"

#include <algorithm>
#include <utility>

#include "src/tool/capacity_search.h"
#include "src/tool/repeat.h"

namespace ashlar::tool {
namespace {

TraceRunOptions without_picture(const TraceRunOptions& options) {
  TraceRunOptions plain = options;
  plain.wants_picture = false;
  return plain;
}

}  // namespace

double TraceRunResult::utilisation() const {
  return used_part(account.peak_requested, capacity_was_found ? capacity : account.peak_reserved);
}

Bytes find_capacity(const Trace& trace, const TraceRunOptions& options, Bytes peak_reserved) {
  const TraceRunOptions plain = without_picture(options);
  return smallest_capacity(trace, peak_reserved, [&](Bytes capacity) {
    return account_pass(trace, plain, capacity, true).ooms == 0;
  });
}

bool is_settled(const Account& account) {
  return account.ooms == 0 && account.steps.size() == kRepeats &&
         std::all_of(account.steps.begin() + (kSettledBy - 1), account.steps.end(),
                     [](const StepFigures& step) { return step.driver_calls == 0; });
}

unsigned address_period(const Account& account) {
  if (account.steps.size() != kRepeats) return 0;
  const auto repeats_after = [&](unsigned period) {
    for (unsigned i = kSettledBy - 1; i + period < kRepeats; ++i) {
      if (account.steps[i].addresses != account.steps[i + period].addresses) return false;
    }
    return true;
  };
  for (unsigned period = 1; 2 * period <= kRepeats - kSettledBy + 1; ++period) {
    if (repeats_after(period)) return period;
  }
  return 0;
}

std::optional<Bytes> find_settled_capacity(const Trace& repeated, const TraceRunOptions& options) {
  const TraceRunOptions plain = without_picture(options);
  const Account unlimited = account_pass(repeated, plain, Bytes::max());
  if (!is_settled(unlimited)) return std::nullopt;
  return smallest_capacity(repeated, unlimited.peak_reserved, [&](Bytes capacity) {
    return is_settled(account_pass(repeated, plain, capacity, true));
  });
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
  if (options.find_settled) {
    const std::optional<Bytes> capacity = find_settled_capacity(trace, options);
    result.capacity = capacity.value_or(Bytes::max());
    result.capacity_was_found = capacity.has_value();
  }
  if (options.find_capacity) {
    const Account unlimited = account_pass(trace, without_picture(options), Bytes::max());
    result.capacity = find_capacity(trace, options, unlimited.peak_reserved);
    result.capacity_was_found = true;
  }
  result.account = account_pass(trace, options, result.capacity);
  if (options.find_settled && !result.capacity_was_found) {
    ++result.account.faults;
    result.account.first_trouble = "C20: the repeated step does not settle on any device";
  }
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
  if (options.find_settled) {
    std::string why;
    const std::optional<Trace> repeated = repeat_last_step(trace, &why);
    if (repeated) return run_passes(*repeated, file, options);
    TraceRunResult result;
    result.trace = trace.name;
    result.file = file;
    result.account.faults = 1;
    result.account.first_trouble = "the last step cannot be repeated: " + why;
    return result;
  }
  if (!options.is_planned) return run_passes(trace, file, options);
  const Trace run = closed(trace);
  const auto plans = std::make_shared<const PlannedTrace>(
      options.given_plan == nullptr ? plan_trace(run, options.limits)
                                    : with_plan(run, *options.given_plan));
  const PlannedTrace& planned = *plans;
  const AlteredTrace altered =
      options.alter > 0 ? alter(run, options.alter, options.seed) : AlteredTrace{run, 0};
  TraceRunOptions through_plan = options;
  through_plan.planned = &planned;
  TraceRunResult result = run_passes(altered.trace, file, through_plan);
  result.planned =
      PlannedOutcome{planned.managed(), planned.peak(),  planned.lower_bound(),
                     planned.seconds,   altered.altered, first_difference(planned, altered.trace)};
  if (options.wants_picture) result.plans = plans;
  if (!planned.trouble.empty()) {
    ++result.account.faults;
    result.account.first_trouble = planned.trouble;
  }
  return result;
}

}  // namespace ashlar::tool
