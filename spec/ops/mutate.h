// Mutations of the byte form that respect op boundaries, for structure-aware fuzzing.
//
// A mutation inserts, drops, swaps, repeats or moves whole ops, or changes one argument of one; so
// almost every child is a sequence near its parent, where flipping bytes would shift every op
// behind the change. All are functions of the seed.
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "spec/ops/op.h"

namespace ashlar::spec {

/// Where each op of `bytes` starts; the last one may be cut short. Replaces `*starts`.
void op_starts(std::span<const std::uint8_t> bytes, std::vector<std::size_t>* starts);

/// Changes `data` in place, one to four times; never longer than `size_max`.
void mutate_ops(Subject subject, std::vector<std::uint8_t>* data, std::size_t size_max,
                std::uint64_t seed);

/// A child of two parents: a run of a's ops, then a run of b's; or b's run put into a. At most
/// `size_max` bytes.
std::vector<std::uint8_t> splice_ops(std::span<const std::uint8_t> a,
                                     std::span<const std::uint8_t> b, std::size_t size_max,
                                     std::uint64_t seed);

}  // namespace ashlar::spec
