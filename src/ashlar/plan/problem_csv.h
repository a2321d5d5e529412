// Planning problems as CSV, MiniMalloc's form.
//
// Format: the first line names the columns, in any order; then one buffer a line, a field for each
// column. Lines end in LF or CRLF; empty lines only at the end. No quotes, no blanks around fields.
//   id         any name, once; 1 to 1024 printable ASCII characters but comma and quote
//   lower      when it begins to live; a whole number
//   upper      when it lives no more, above lower
//   size       in bytes, above zero
// and, where there is anything to say (an empty field means it says nothing):
//   alignment  of the offset in bytes, a power of two
//   gaps       when it is not live: `lower-upper lower-upper ...`, ascending, live before, between
//              and after
//   hint       the offset it should have if that makes no plan worse
//   pinned     the offset it must have
//   group      its alias group's name
//   offset     somebody's solution, not a condition
//   space      the name of the space it is for; in such a file every buffer has one
//
// Reading is strict: anything else is an error that says `name:line: reason`; no partial problem
// comes out.
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

/// The longest id or name.
inline constexpr std::size_t kCsvNameMax = 1024;

struct ProblemCsv {
  Problem problem;
  /// the column's, by buffer, kNowhere where it is empty; without such a column, none
  std::vector<Bytes> offsets;
};

/// A sound problem, or kMalformed: then `*error` (if given) is one line of printable text,
/// `name:line: reason`. Buffers stand in the file's order; groups and spaces are numbered as they
/// first occur. Cost: linear but for check_problem.
ASHLAR_API Result<ProblemCsv> parse_problem_csv(std::string_view text, std::string_view name,
                                                std::string* error);

/// The problem, with its columns that say anything, and `offsets` when there are any. What was read
/// from CSV comes out so that it reads the same. In other problems: what has no name gets its
/// number for one, and capacities, spaces without buffers and groups without buffers are left out.
/// kInvalidArgument: the number of offsets is not that of the buffers, or ids or names are such as
/// CSV cannot hold, or occur twice. kSizeOverflow: an offset over kPlanBytesMax that is not
/// kNowhere.
/// REQUIRES: check_problem(problem). Cost: linear.
ASHLAR_API Result<std::string> format_problem_csv(const Problem& problem,
                                                  const std::vector<Bytes>& offsets);

}  // namespace ashlar::inline v0::plan
