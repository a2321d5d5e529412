// Planning problems of any size, as real ones are shaped: public ones have 60 000 buffers at most.
//
// Each is a function of (seed, buffers): the same numbers give the same problem on every machine
// and compiler.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <ashlar/plan/problem.h>

namespace ashlar::bench {

struct ProblemKind {
  const char* name;
  const char* about;  ///< one line
  plan::Problem (*generate)(std::uint64_t seed, std::uint32_t buffers);
};

/// Lives of up to 256 steps, begun anywhere: about 64 buffers are live at a time.
plan::Problem generate_random(std::uint64_t seed, std::uint32_t buffers);
/// Pareto lives: most are short, some as long as the program, and these are most of the memory.
plan::Problem generate_heavy(std::uint64_t seed, std::uint32_t buffers);
/// A step of training: a third are activations, kept from a layer's forward pass to its backward
/// pass; the rest short-lived.
plan::Problem generate_training(std::uint64_t seed, std::uint32_t buffers);
/// As random, but one in eight has a gap, is aligned, or works in place on the one before it, and
/// one in 64 is pinned.
plan::Problem generate_mixed(std::uint64_t seed, std::uint32_t buffers);

const std::vector<ProblemKind>& problem_kinds();

}  // namespace ashlar::bench
