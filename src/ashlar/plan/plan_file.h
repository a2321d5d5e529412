// Plans as files.
//
// Purpose: plan once, run often. What is for people is CSV (problem_csv.h); this form is for the
// machine that replays the plan, so it is binary: read with no parsing, checked whole against
// damage, and there is one file for a plan and no other. Every number is little endian, its lowest
// byte first:
//
//   8 bytes            89 'A' 'P' 'L' 'A' 'N' 0d 0a: no text, and altered by whatever alters line
//   ends
//   4                  version: 1
//   4                  spaces
//   8                  buffers
//   8                  hash_of(problem)
//   16 for each space  peak, lower bound
//   8 for each buffer  offset
//   8                  64-bit FNV-1a of everything before
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <ashlar/base/export.h>
#include <ashlar/base/status.h>
#include <ashlar/plan/plan.h>
#include <ashlar/plan/problem.h>

namespace ashlar::inline v0::plan {

inline constexpr std::uint32_t kPlanFileVersion = 1;

/// The file of a plan; the same bytes on every machine. cannot_fit, which explains a failure and
/// serves no replay, is left out. kInvalidArgument: what parse_plan would refuse. REQUIRES:
/// check_problem(problem). Cost: O(n log n).
ASHLAR_API Result<std::string> format_plan(const Plan& plan, const Problem& problem);

/// The plan, or kMalformed: not a plan file, another version, cut off, damaged, made for another
/// problem, or no valid plan of it (a buffer nowhere, unaligned, off its pin or its group, over
/// another that is live with it; a peak that is not the highest end, a lower bound above the peak).
/// Then `*error` (if given) is one line of printable text, `name: reason`.
/// REQUIRES: check_problem(problem). Cost: O(n log n).
ASHLAR_API Result<Plan> parse_plan(std::string_view bytes, std::string_view name,
                                   const Problem& problem, std::string* error);

}  // namespace ashlar::inline v0::plan
