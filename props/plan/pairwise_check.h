// Finds overlaps by comparing every pair of buffers, and every pair of their live pieces: slow, and
// simple enough to be seen to be right.
//
// Purpose: the sweeps of spec/plan/check.h and plan/overlap.h are compared with it.
// Thread safety: pure function.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include <ashlar/plan/problem.h>

namespace ashlar {

/// The times at which a buffer is live, as [lower, upper) pieces.
inline std::vector<plan::Lifetime> live_times(const plan::Problem& problem, std::uint32_t b) {
  std::vector<plan::Lifetime> pieces;
  plan::Time from = problem.buffers[b].life.lower;
  for (std::uint32_t g = problem.buffers[b].gaps_begin; g < problem.buffers[b].gaps_end; ++g) {
    pieces.push_back({from, problem.gaps[g].lower});
    from = problem.gaps[g].upper;
  }
  pieces.push_back({from, problem.buffers[b].life.upper});
  return pieces;
}

/// The first time at which two conflicting buffers are both live; nothing if they do not conflict.
inline std::optional<plan::Time> first_meeting(const plan::Problem& problem, std::uint32_t a,
                                               std::uint32_t b) {
  const plan::Buffer& one = problem.buffers[a];
  const plan::Buffer& two = problem.buffers[b];
  if (a == b || one.space != two.space || (one.group == two.group && one.group != plan::kNoGroup))
    return std::nullopt;
  std::optional<plan::Time> first;
  for (const plan::Lifetime& p : live_times(problem, a)) {
    for (const plan::Lifetime& q : live_times(problem, b)) {
      const plan::Time begin = std::max(p.lower, q.lower);
      if (begin < std::min(p.upper, q.upper) && (!first || begin < *first)) first = begin;
    }
  }
  return first;
}

/// Whether two buffers at these offsets share bytes. A buffer at kNowhere shares none.
inline bool share_bytes(const plan::Problem& problem, const std::vector<Bytes>& offsets,
                        std::uint32_t a, std::uint32_t b) {
  if (offsets[a] == plan::kNowhere || offsets[b] == plan::kNowhere) return false;
  return offsets[a] < offsets[b] + problem.buffers[b].size &&
         offsets[b] < offsets[a] + problem.buffers[a].size;
}

/// The first time at which two conflicting buffers share bytes.
inline std::optional<plan::Time> first_overlap_by_pairs(const plan::Problem& problem,
                                                        const std::vector<Bytes>& offsets) {
  std::optional<plan::Time> first;
  for (std::uint32_t a = 0; a < offsets.size(); ++a) {
    for (std::uint32_t b = 0; b < a; ++b) {
      const std::optional<plan::Time> at = first_meeting(problem, a, b);
      if (at && share_bytes(problem, offsets, a, b) && (!first || *at < *first)) first = at;
    }
  }
  return first;
}

}  // namespace ashlar
