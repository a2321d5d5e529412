// Random planning problems with many conflicts: few times, few sizes, and each feature in some.
//
// A problem is as the CSV reader would make it (groups and spaces named, numbered as they first
// occur, gaps in the buffers' order), so that writing and reading gives it back. It is sound, by
// this file's own rules and not by check_problem().
// Thread safety: pure functions of the generator's state.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <ashlar/plan/problem.h>

#include "spec/ops/random.h"

namespace ashlar {

struct GenerateLimits {
  std::uint32_t buffers_max = 8;
  plan::Time times = 12;    ///< lifetimes are within [0, times), before they are shifted
  std::uint64_t sizes = 9;  ///< sizes are 1 to this number, before they are scaled
  std::uint32_t buffers_min = 0;
};

/// A buffer without any feature.
inline plan::Buffer plain_buffer(plan::Time lower, plan::Time upper, std::uint64_t size) {
  plan::Buffer buffer;
  buffer.life = {lower, upper};
  buffer.size = Bytes{size};
  return buffer;
}

/// The peak of each space with these offsets.
inline std::vector<Bytes> peaks_of(const plan::Problem& problem,
                                   const std::vector<Bytes>& offsets) {
  std::vector<Bytes> peaks(problem.spaces.size());
  for (std::size_t b = 0; b < offsets.size(); ++b) {
    Bytes& peak = peaks[problem.buffers[b].space];
    peak = std::max(peak, offsets[b] + problem.buffers[b].size);
  }
  return peaks;
}

/// A problem, equal for the same state of `random` on every machine.
plan::Problem generate_problem(spec::Random* random, const GenerateLimits& limits = {});

/// Offsets of a valid plan, made by placing the buffers in a random order.
std::vector<Bytes> generate_plan(spec::Random* random, const plan::Problem& problem);

}  // namespace ashlar
