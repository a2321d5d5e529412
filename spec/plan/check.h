// The checker of plans: clauses P1 (valid) and P2 (never below its stated lower bound). It uses no
// solver's code: of src/ it includes the plain types of a problem and a plan, and calls none of
// their functions.
//
// REQUIRES, throughout: the problem is sound as plan/problem.h says. Offsets and answers may have
// any value.
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
    /// a buffer ends within kPlanBytesMax, and (Capacities::kHeld) within its space
    kCapacity,
    kAlignment,   ///< its offset is a multiple of its alignment
    kPin,         ///< a pinned buffer is where it is pinned
    kGroup,       ///< the buffers of an alias group have one offset
    kOverlap,     ///< two buffers that are live at the same time share no byte
    kPeak,        ///< a space's peak is the highest end of a buffer
    kLowerBound,  ///< a space's peak is not below its lower bound
    /// a space that cannot fit lists buffers that cannot fit; no other space does, and no buffer is
    /// listed twice
    kCannotFit,
  };
  Rule rule = Rule::kCount;
  /// the buffer; the space (kPeak, kLowerBound); the place in the list, or its end (kCannotFit)
  std::uint32_t one = 0;
  std::uint32_t other = 0;  ///< the other buffer (kGroup, kOverlap)
  plan::Time at = 0;        ///< the first time at which both are live (kOverlap)
  /// one line: "buffers 17 and 42 are both live at 1024 and share bytes [4096, 8192)"
  std::string text;
};

enum class Capacities : bool { kIgnored, kHeld };

/// The first violation, nullopt if there is none. First the rules of single buffers, buffer by
/// buffer, then the overlap that is first in time.
std::optional<PlanViolation> check_plan(const plan::Problem& problem,
                                        const std::vector<Bytes>& offsets,
                                        Capacities capacities = Capacities::kIgnored);

/// check_plan, and then what the plan states: peaks, lower bounds, buffers that cannot fit.
std::optional<PlanViolation> check_answer(const plan::Problem& problem, const plan::Plan& plan);

}  // namespace ashlar::spec
