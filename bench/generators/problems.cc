#include "bench/generators/problems.h"

#include <algorithm>
#include <bit>

#include "spec/ops/random.h"

namespace ashlar::bench {
namespace {

constexpr std::uint64_t kGranule = 256;

/// Log-uniform over [kGranule << low, kGranule << (low + octaves)), in granules.
Bytes draw_size(spec::Random* random, unsigned low, unsigned octaves) {
  const std::uint64_t octave = std::uint64_t{1} << (low + random->below(octaves));
  return Bytes{kGranule * (octave + random->below(octave))};
}

void add(plan::Problem* problem, plan::Time lower, plan::Time length, Bytes size) {
  plan::Buffer buffer;
  buffer.life = {lower, lower + length};
  buffer.size = size;
  problem->buffers.push_back(buffer);
}

plan::Time below(spec::Random* random, std::uint64_t n) {
  return static_cast<plan::Time>(random->below(n));
}

}  // namespace

plan::Problem generate_random(std::uint64_t seed, std::uint32_t buffers) {
  spec::Random random(seed);
  plan::Problem problem;
  for (std::uint32_t i = 0; i < buffers; ++i) {
    const plan::Time lower = below(&random, 2 * std::uint64_t{buffers});
    const plan::Time length = 1 + below(&random, 256);
    add(&problem, lower, length, draw_size(&random, 1, 14));
  }
  return problem;
}

plan::Problem generate_heavy(std::uint64_t seed, std::uint32_t buffers) {
  spec::Random random(seed);
  plan::Problem problem;
  for (std::uint32_t i = 0; i < buffers; ++i) {
    const plan::Time lower = below(&random, 2 * std::uint64_t{buffers});
    // Twice as long is 2^-1.1 times as frequent.
    const int doublings = std::countl_zero(random.next()) * 10 / 11;
    const std::uint64_t least = std::uint64_t{16} << std::min(doublings, 40);
    const auto length =
        static_cast<plan::Time>(std::min(least + random.below(least), 2 * std::uint64_t{buffers}));
    add(&problem, lower, length, draw_size(&random, 1, 14));
  }
  return problem;
}

plan::Problem generate_training(std::uint64_t seed, std::uint32_t buffers) {
  spec::Random random(seed);
  plan::Problem problem;
  const plan::Time end = 4 * plan::Time{buffers};
  for (std::uint32_t i = 0; i < buffers; ++i) {
    if (i % 3 == 0) {
      const plan::Time lower = 2 * plan::Time{i};
      add(&problem, lower, end - 2 * lower, draw_size(&random, 4, 8));
    } else {
      const plan::Time lower = below(&random, static_cast<std::uint64_t>(end));
      const plan::Time length = 1 + below(&random, 20);
      add(&problem, lower, length, draw_size(&random, 4, 12));
    }
  }
  return problem;
}

plan::Problem generate_mixed(std::uint64_t seed, std::uint32_t buffers) {
  // of pinned buffers, each as high as the largest: 64 MiB in all
  constexpr std::uint64_t kLanes = 8;
  constexpr Bytes kLane{kGranule << 15};
  spec::Random random(seed);
  plan::Problem problem;
  plan::Time lane_end[kLanes] = {};
  for (std::uint32_t i = 0; i < buffers; ++i) {
    const plan::Time lower = below(&random, 2 * std::uint64_t{buffers});
    const plan::Time length = 1 + below(&random, 256);
    add(&problem, lower, length, draw_size(&random, 1, 14));
    plan::Buffer& buffer = problem.buffers.back();
    if (i % 64 == 1) {
      plan::Time& end = lane_end[i / 64 % kLanes];
      const plan::Time pinned_lower = end + below(&random, 2 * 64 * kLanes);
      end = pinned_lower + length;
      buffer.life = {pinned_lower, end};
      buffer.pinned = kLane * (i / 64 % kLanes);
    } else if (i % 8 == 2 && length >= 3) {
      buffer.gaps_begin = static_cast<std::uint32_t>(problem.gaps.size());
      problem.gaps.push_back({lower + length / 3, lower + length - length / 3});
      buffer.gaps_end = buffer.gaps_begin + 1;
    } else if (i % 8 == 4) {
      buffer.alignment = Bytes{kGranule << random.below(9)};
    } else if (i % 8 == 6) {
      plan::Buffer& before = problem.buffers[i - 1];
      before.group = buffer.group = static_cast<std::uint32_t>(problem.groups.size());
      problem.groups.emplace_back();
      buffer.life = {before.life.upper, before.life.upper + length};
    }
  }
  return problem;
}

const std::vector<ProblemKind>& problem_kinds() {
  static const std::vector<ProblemKind> kinds{
      {"random", "lives of up to 256 steps, begun anywhere", generate_random},
      {"heavy", "Pareto lives: some as long as the program", generate_heavy},
      {"training", "activations kept from forward to backward, and short-lived ones",
       generate_training},
      {"mixed", "as random, with gaps, alignments, pins and buffers used in place",
       generate_mixed}};
  return kinds;
}

}  // namespace ashlar::bench
