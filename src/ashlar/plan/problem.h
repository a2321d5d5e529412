// A planning problem: buffers with known lifetimes that are to share memory.
//
// Purpose: the plain types that readers, solvers, the checker in spec/ and the tool exchange.
// Thread safety: plain values.
//
// A buffer is live over [lower, upper) but for its gaps, and needs `size` bytes at one offset, the
// same all its life. Two buffers conflict when both are live at some time, unless they belong to
// one alias group: the buffers of a group begin at the same offset and may overlap each other (an
// in-place operation's output and the input it overwrites; a view). So what pins or aligns one of a
// group pins or aligns them all. Buffers of different spaces never conflict. Times mean nothing but
// their order.
//
// A problem is sound when check_problem() says so: everything that takes a problem REQUIRES that. A
// sound problem has a plan, capacities aside, and whoever puts buffers one above another, in any
// order, each at the first aligned byte, stays below kPlanBytesMax.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ashlar/base/export.h>
#include <ashlar/base/status.h>
#include <ashlar/base/types.h>

namespace ashlar::inline v0::plan {

using Time = std::int64_t;

/// Half-open: live at lower, not any more at upper.
struct Lifetime {
  Time lower = 0;
  Time upper = 0;
  friend constexpr bool operator==(const Lifetime&, const Lifetime&) = default;
};

/// No offset.
inline constexpr Bytes kNowhere = Bytes::max();
/// A buffer that is in no alias group.
inline constexpr std::uint32_t kNoGroup = 0xffffffffu;
/// Offsets, sizes and their sums stay below this: 2^62.
inline constexpr Bytes kPlanBytesMax{std::uint64_t{1} << 62};
inline constexpr std::uint32_t kBuffersMax = 1u << 28;
inline constexpr std::uint32_t kGapsMax = 1u << 30;

struct Buffer {
  Lifetime life;
  Bytes size;
  Bytes alignment{1};       ///< of the offset; a power of two
  Bytes pinned = kNowhere;  ///< must be at that offset
  /// where somebody would like it: kept by a plan that is no worse for it, never a condition
  Bytes hint = kNowhere;
  std::uint32_t group = kNoGroup;  ///< index into Problem::groups
  std::uint32_t space = 0;         ///< index into Problem::spaces
  /// [gaps_begin, gaps_end) of Problem::gaps: ascending, apart from each other and from
  std::uint32_t gaps_begin = 0;
  std::uint32_t gaps_end = 0;  ///< both ends of its life
  friend constexpr bool operator==(const Buffer&, const Buffer&) = default;
};

struct Space {
  std::string name;
  Bytes capacity = kNowhere;  ///< kNowhere: unlimited
  friend bool operator==(const Space&, const Space&) = default;
};

struct Problem {
  std::vector<Buffer> buffers;
  std::vector<Lifetime> gaps;
  std::vector<Space> spaces{1};  ///< one at least
  /// by alias group: what files call it; an empty name stands for its number
  std::vector<std::string> groups;
  /// by buffer: what files call it. May be empty: then a buffer's id is its number
  std::vector<std::string> ids;
  friend bool operator==(const Problem&, const Problem&) = default;
};

/// What is wrong with a problem, and with which buffer.
struct ProblemFault {
  Status status;
  std::uint32_t buffer = 0;
  /// the buffer it disagrees with, where that takes two; otherwise the same
  std::uint32_t other = 0;
};

/// Ok, or the first rule that is broken and the first buffer that breaks it. In that order: a table
/// that is too long or missing; an empty life or size, a bound above passed, an alignment that is
/// no power of two, a pin that is not aligned, a gap out of place, a space or group that is not
/// there; sizes, each with the most its alignment can waste, and the highest pinned end that
/// together pass kPlanBytesMax; a group over two spaces, with two pins, or with a pin that is not
/// aligned for all of it; two pinned buffers that conflict and overlap. Cost: O(n log n).
ASHLAR_API ProblemFault check_problem(const Problem& problem);

/// Do two buffers have to be disjoint? A buffer does not conflict with itself. Cost: O(gaps of
/// both).
ASHLAR_API bool conflict(const Problem& problem, std::uint32_t a, std::uint32_t b) noexcept;

/// 64-bit FNV-1a over everything that conditions a plan: not ids, hints or capacities, nor how
/// groups are called or numbered. Equal on every machine. Cost: linear.
ASHLAR_API std::uint64_t hash_of(const Problem& problem);

}  // namespace ashlar::inline v0::plan
