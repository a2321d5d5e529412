#include "src/tool/plan_limits.h"

#include <fmt/format.h>

#include <chrono>

namespace ashlar::tool {

bool check_limits(const PlanLimits& limits, std::string* error) {
  if (!limits.time_limit || (*limits.time_limit >= 0 && *limits.time_limit <= kPlanSecondsMax))
    return true;
  *error = fmt::format("--time-limit: between 0 and {:.0f} seconds", kPlanSecondsMax);
  return false;
}

plan::PlanOptions options_of(const PlanLimits& limits, const PlanLimits& by_default) {
  const PlanLimits& used = limits.time_limit || limits.work ? limits : by_default;
  plan::PlanOptions options;
  options.work = used.work;
  if (used.time_limit)
    options.time_limit =
        std::chrono::nanoseconds(static_cast<std::int64_t>(*used.time_limit * 1e9));
  return options;
}

}  // namespace ashlar::tool
