// Plans as binary files.
//
// Purpose: plan once, run often. CSV (problem_csv.h) is for people; this form is for the program
// that replays the plan: it needs no parsing, damage anywhere is noticed, and a plan has exactly one
// file. Numbers are little endian:
//
//   8 bytes            89 'A' 'P' 'L' 'A' 'N' 0d 0a: begins with a byte that ASCII text does not
//                      have, and ends in a line end that a conversion of line ends would alter
//   4                  version: 1
//   4                  spaces
//   8                  buffers
//   8                  hash_of(problem)
//   16 for each space  peak, lower bound
//   8 for each buffer  offset
//   8                  64-bit FNV-1a of all bytes before it
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

/// The version that is written, and the only one that is read.
inline constexpr std::uint32_t kPlanFileVersion = 1;

/// Writes a plan of `problem` as a file: the same bytes on every machine. Plan::cannot_fit is left
/// out, because it explains a failure and no replay needs it. kInvalidArgument: `plan` is not a
/// valid plan of the problem, so parse_plan() would refuse the file. REQUIRES:
/// check_problem(problem).
///
/// Cost: O(n log n). Throws std::bad_alloc if host memory runs out.
/// Thread safety: any number of calls at the same time.
ASHLAR_API Result<std::string> format_plan(const Plan& plan, const Problem& problem);

/// Reads a plan of `problem` from the bytes of a file; `name` stands for the file in messages.
/// kMalformed: the bytes are not a plan file, are of another version, cut off or damaged, were made
/// for another problem, or hold no valid plan of it (a buffer without offset, unaligned, not at its
/// pin, apart from its group, or overlapping one that it conflicts with; a peak that is not the
/// highest end; a lower bound above the peak). Then `*error` (if given) is one line of printable
/// text, `name: reason`. REQUIRES: check_problem(problem).
///
/// Cost: O(n log n). Throws std::bad_alloc if host memory runs out.
/// Thread safety: any number of calls at the same time.
ASHLAR_API Result<Plan> parse_plan(std::string_view bytes, std::string_view name,
                                   const Problem& problem, std::string* error);

}  // namespace ashlar::inline v0::plan
