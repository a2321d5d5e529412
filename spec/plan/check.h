// Is it a plan? The clauses P1 (valid) and P2 (never below its stated lower bound), judged without
// any solver's code: of src/ this sees the plain types of a problem and a plan, and calls none of
// its functions.
//
// REQUIRES, throughout: the problem is sound as plan/problem.h says. Offsets and answers may be
// anything.
// Thread safety: pure functions. Cost: O(n log n), n counting gaps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ashlar/plan/plan.h>
#include <ashlar/plan/problem.h>

namespace ashlar::spec {

/// The first rule that is broken, and what breaks it.
struct PlanViolation {
  enum class Rule : std::uint8_t {
    kCount,    ///< as many offsets as buffers, as many answers as spaces
    kNowhere,  ///< every buffer has an offset
    /// and ends within its space, when that is asked for, and within kPlanBytesMax always
    kCapacity,
    kAlignment,   ///< at a multiple of its alignment
    kPin,         ///< where it is pinned
    kGroup,       ///< where the others of its alias group are
    kOverlap,     ///< and shares no byte with another that is live at the same time
    kPeak,        ///< a space's peak is the highest end of a buffer
    kLowerBound,  ///< and is not below the lower bound
    /// each space that is said not to fit has buffers said not to fit, no other has, and none is
    /// said twice
    kCannotFit,
  };
  Rule rule = Rule::kCount;
  /// the buffer, the space (kPeak, kLowerBound), the place in the list, or its end (kCannotFit)
  std::uint32_t one = 0;
  std::uint32_t other = 0;  ///< the other buffer (kGroup, kOverlap)
  plan::Time at = 0;        ///< when both are live for the first time (kOverlap)
  /// one line: "buffers 17 and 42 are both live at 1024 and share bytes [4096, 8192)"
  std::string text;
};

enum class Capacities : bool { kIgnored, kHeld };

/// Nothing, or the first violation: the rules of one buffer, buffer by buffer, then the first
/// overlap in time.
std::optional<PlanViolation> check_plan(const plan::Problem& problem,
                                        const std::vector<Bytes>& offsets,
                                        Capacities capacities = Capacities::kIgnored);

/// The same, and then what the plan says about itself.
std::optional<PlanViolation> check_answer(const plan::Problem& problem, const plan::Plan& plan);

}  // namespace ashlar::spec
