// Mutations of the byte form that respect op boundaries, for structure-aware fuzzing.
//
// A mutation inserts, drops, swaps, repeats or moves whole ops, or changes one argument of one op.
// So almost every child is a sequence close to its parent; flipping bytes would shift every op
// behind the change. Every mutation is a function of the seed.
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "spec/ops/op.h"

namespace ashlar::spec {

/// The position at which each op of `bytes` starts; the last op may be cut short. Replaces
/// `*starts`.
void op_starts(std::span<const std::uint8_t> bytes, std::vector<std::size_t>* starts);

/// Applies one to four mutations to `data` in place. The result is at most `size_max` bytes long.
void mutate_ops(Subject subject, std::vector<std::uint8_t>* data, std::size_t size_max,
                std::uint64_t seed);

/// A child of two parents: a run of a's ops followed by a run of b's, or a with a run of b's ops
/// inserted. At most `size_max` bytes.
std::vector<std::uint8_t> splice_ops(std::span<const std::uint8_t> a,
                                     std::span<const std::uint8_t> b, std::size_t size_max,
                                     std::uint64_t seed);

}  // namespace ashlar::spec
