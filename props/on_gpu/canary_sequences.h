// The sequences that canary worlds run: those of the simulated GPU's suites, with settings under which memory changes hands.
//
// Thread safety: pure functions. The same seed gives the same sequence everywhere.
#pragma once

#include <cstdint>

#include "props/on_gpu/planted_device.h"
#include "spec/ops/op.h"

namespace ashlar::props {

/// For a planted fault the settings are those under which it can show.
spec::OpFile canary_sequence(std::uint64_t seed, Planted planted);
/// What the op `seed` of the file says; 1 without.
std::uint64_t seed_of(const spec::OpFile& file);

}  // namespace ashlar::props
