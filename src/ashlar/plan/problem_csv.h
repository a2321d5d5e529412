// Planning problems as CSV, in MiniMalloc's form.
//
// Format: the first line names the columns, in any order; then one buffer a line, a field for each
// column. Lines end in LF or CRLF; empty lines are permitted only at the end. There are no quotes,
// and no blanks around fields. Four columns are required:
//   id         a name that occurs once; 1 to 1024 printable ASCII characters except comma and quote
//   lower      when it begins to live; a whole number
//   upper      when it no longer lives, above lower
//   size       in bytes, above zero
// and these are optional, as are their fields (an empty field says nothing):
//   alignment  of the offset in bytes, a power of two
//   gaps       when it is not live: `lower-upper lower-upper ...`, ascending, live before, between
//              and after
//   hint       the offset it should have if that makes no plan worse
//   pinned     the offset it must have
//   group      the name of its alias group
//   offset     its offset in some plan; not a condition
//   space      the name of its space; if the column exists, no field of it is empty
//
// Reading is strict: everything else is an error `name:line: reason`, and no partial problem is
// returned.
// Thread safety: plain values and pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <ashlar/base/export.h>
#include <ashlar/base/status.h>
#include <ashlar/plan/problem.h>

namespace ashlar::inline v0::plan {

/// The maximum number of characters of an id or name.
inline constexpr std::size_t kCsvNameMax = 1024;

/// What a CSV file holds.
struct ProblemCsv {
  Problem problem;  ///< sound
  /// The offset column, in bytes, by buffer; kNowhere for an empty field. Empty without the column.
  std::vector<Bytes> offsets;
};

/// Reads a problem from `text`; `name` stands for the file in messages. Buffers keep the file's
/// order; groups and spaces are numbered as they first occur. kMalformed: `text` is not a sound
/// problem; then `*error` (if given) is one line of printable text, `name:line: reason`.
///
/// Cost: linear, and check_problem(). Throws std::bad_alloc if host memory runs out.
/// Thread safety: any number of calls at the same time.
ASHLAR_API Result<ProblemCsv> parse_problem_csv(std::string_view text, std::string_view name,
                                                std::string* error);

/// Writes `problem` as CSV, without columns that would say nothing, and with `offsets` (in bytes, by
/// buffer; kNowhere for none) unless that is empty. A problem that was read from CSV is written so
/// that it reads the same. In other problems an empty name is written as the number it stands for;
/// capacities, and spaces and groups without buffers, are left out.
/// kInvalidArgument: the number of offsets is not that of the buffers, or an id or name occurs twice
/// or cannot stand in CSV. kSizeOverflow: an offset over kPlanBytesMax that is not kNowhere.
/// REQUIRES: check_problem(problem).
///
/// Cost: linear. Throws std::bad_alloc if host memory runs out.
/// Thread safety: any number of calls at the same time.
ASHLAR_API Result<std::string> format_problem_csv(const Problem& problem,
                                                  const std::vector<Bytes>& offsets);

}  // namespace ashlar::inline v0::plan
