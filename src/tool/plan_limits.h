// How long a plan is searched for: options that `plan` and `replay --planned` share.
//
// Thread safety: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <ashlar/plan/planner.h>

namespace ashlar::tool {

/// How long `plan` searches if neither a time limit nor work is given.
inline constexpr double kPlanSecondsDefault = 10;
/// The work of `replay --planned` if neither is given, so that its plans are the same everywhere: a
/// second or two for a trace of training, which is mostly solved at once.
inline constexpr std::uint64_t kReplayWorkDefault = 40'000'000;
inline constexpr double kPlanSecondsMax = 1e6;

/// As given on the command line.
struct PlanLimits {
  std::optional<double> time_limit;   ///< seconds, for all spaces or streams together
  std::optional<std::uint64_t> work;  ///< steps, for each space or stream
};

/// Checks the time limit. False: `*error` is one line.
bool check_limits(const PlanLimits& limits, std::string* error);

/// The planner's options for the limits: those given, or `by_default`.
plan::PlanOptions options_of(const PlanLimits& limits, const PlanLimits& by_default);

}  // namespace ashlar::tool
