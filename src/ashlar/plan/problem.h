// A planning problem: buffers with known lifetimes that are to share memory.
//
// Purpose: the plain types that readers, solvers, the checker in spec/ and the tool exchange.
// Thread safety: plain values.
//
// A buffer is live over [lower, upper) except for its gaps, and needs `size` bytes at one offset,
// the same for all its life. Two buffers conflict if both are live at some time, unless they are in
// one alias group. The buffers of an alias group begin at the same offset and may overlap each
// other, as an in-place operation's output overlaps its input; so a pin or an alignment of one of
// them holds for them all. Buffers of different spaces never conflict. Times have an order and no
// unit.
//
// A problem is sound if check_problem() says so; every function that takes a problem REQUIRES that.
// A sound problem has a plan, capacities aside, and buffers that are stacked in any order, each at
// the first aligned byte, end at or below kPlanBytesMax.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ashlar/base/export.h>
#include <ashlar/base/status.h>
#include <ashlar/base/types.h>

namespace ashlar::inline v0::plan {

/// A moment. Only the order of times counts.
using Time = std::int64_t;

/// Half-open: live from `lower` on, no longer live at `upper`.
struct Lifetime {
  Time lower = 0;  ///< the first moment
  Time upper = 0;  ///< the first moment after it; above lower
  /// Equal if both ends are.
  friend constexpr bool operator==(const Lifetime&, const Lifetime&) = default;
};

/// Stands for no offset, and for no capacity limit.
inline constexpr Bytes kNowhere = Bytes::max();
/// The group of a buffer that is in no alias group.
inline constexpr std::uint32_t kNoGroup = 0xffffffffu;
/// The bound of offsets, sizes and their sums: 2^62 bytes.
inline constexpr Bytes kPlanBytesMax{std::uint64_t{1} << 62};
/// The maximum number of buffers of a problem.
inline constexpr std::uint32_t kBuffersMax = 1u << 28;
/// The maximum number of gaps of a problem.
inline constexpr std::uint32_t kGapsMax = 1u << 30;

/// What has to be placed.
struct Buffer {
  Lifetime life;            ///< from the first to the last moment it is live
  Bytes size;               ///< above zero
  Bytes alignment{1};       ///< of the offset, in bytes; a power of two
  Bytes pinned = kNowhere;  ///< the offset it must have; kNowhere: any
  /// The offset it should have: kept by a plan that is no worse for it, never a condition.
  Bytes hint = kNowhere;
  std::uint32_t group = kNoGroup;  ///< index into Problem::groups
  std::uint32_t space = 0;         ///< index into Problem::spaces
  /// Its gaps are [gaps_begin, gaps_end) of Problem::gaps: ascending, with time between them, and
  /// between them and both ends of its life.
  std::uint32_t gaps_begin = 0;
  std::uint32_t gaps_end = 0;  ///< see gaps_begin
  /// Equal if every field is.
  friend constexpr bool operator==(const Buffer&, const Buffer&) = default;
};

/// A memory that buffers are placed in.
struct Space {
  std::string name;           ///< what files call it; an empty name stands for its number
  Bytes capacity = kNowhere;  ///< in bytes; kNowhere: unlimited
  /// Equal if both fields are.
  friend bool operator==(const Space&, const Space&) = default;
};

/// Buffers to be placed, and the tables that they refer to.
struct Problem {
  std::vector<Buffer> buffers;      ///< a buffer's number is its index
  std::vector<Lifetime> gaps;       ///< see Buffer::gaps_begin
  std::vector<Space> spaces{1};     ///< at least one
  std::vector<std::string> groups;  ///< by alias group: its name; empty stands for its number
  std::vector<std::string> ids;     ///< by buffer: its name. Or empty: the numbers are the names
  /// Equal if every table is.
  friend bool operator==(const Problem&, const Problem&) = default;
};

/// What is wrong with a problem, and with which buffer.
struct ProblemFault {
  Status status;             ///< ok, or the rule that is broken
  std::uint32_t buffer = 0;  ///< the buffer that breaks it
  std::uint32_t other = 0;   ///< the buffer it disagrees with; `buffer` again if there is none
};

/// Checks that a problem is sound. Returns ok, or the first broken rule and the first buffer that
/// breaks it. The rules, in order:
///   - tables: no more than kBuffersMax buffers and kGapsMax gaps, at least one space, ids for all
///     buffers or none (the fault then names no buffer);
///   - each buffer: its life and size are not empty, no number is above its bound, the alignment is
///     a power of two, the pin is aligned, gaps, space and group exist;
///   - the sum of all sizes, each with the maximum that its alignment can waste, and of the highest
///     pinned end is at most kPlanBytesMax;
///   - each group: one space, at most one pin, which is aligned for all its buffers;
///   - pinned buffers that conflict do not overlap.
///
/// Cost: O(n log n). Throws std::bad_alloc if host memory runs out.
/// Thread safety: any number of calls at the same time.
ASHLAR_API ProblemFault check_problem(const Problem& problem);

/// Whether buffers `a` and `b` must not overlap. A buffer does not conflict with itself. REQUIRES:
/// check_problem(problem); both are numbers of buffers. Cost: O(gaps of both). Never throws.
/// Thread safety: any number of calls at the same time.
ASHLAR_API bool conflict(const Problem& problem, std::uint32_t a, std::uint32_t b) noexcept;

/// A hash over everything that a plan depends on: not ids, hints, capacities, or the names and
/// numbers of groups. Equal on every machine. REQUIRES: check_problem(problem). Source: 64-bit
/// FNV-1a.
///
/// Cost: linear. Throws std::bad_alloc if host memory runs out.
/// Thread safety: any number of calls at the same time.
ASHLAR_API std::uint64_t hash_of(const Problem& problem);

}  // namespace ashlar::inline v0::plan
