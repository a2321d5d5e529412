// Mutation and cross-over by whole ops, for libFuzzer targets that read the byte form of ops.
//
// Thread safety: none; the engine calls from one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "spec/ops/mutate.h"

namespace ashlar::fuzz {

/// Copies up to `size_max` bytes into the engine's buffer. Returns how many it copied.
inline std::size_t copy_out(const std::vector<std::uint8_t>& bytes, std::uint8_t* out,
                            std::size_t size_max) {
  const std::size_t size = std::min(bytes.size(), size_max);
  std::copy_n(bytes.begin(), size, out);
  return size;
}

/// The body of a target's LLVMFuzzerCustomMutator.
inline std::size_t mutate(spec::Subject subject, std::uint8_t* data, std::size_t size,
                          std::size_t size_max, unsigned seed) {
  std::vector<std::uint8_t> bytes(data, data + size);
  spec::mutate_ops(subject, &bytes, size_max, seed);
  return copy_out(bytes, data, size_max);
}

/// The body of a target's LLVMFuzzerCustomCrossOver.
inline std::size_t cross_over(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b,
                              std::uint8_t* out, std::size_t size_max, unsigned seed) {
  return copy_out(spec::splice_ops(a, b, size_max, seed), out, size_max);
}

}  // namespace ashlar::fuzz
