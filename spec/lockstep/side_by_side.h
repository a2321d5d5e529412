// The model's map and the subject's, side by side, for the reader of a counterexample.
//
// Thread safety: pure function.
#pragma once

#include <string>

#include "spec/model/cache_model.h"

namespace ashlar::spec {

/// One line for each segment and block of the snapshot, with the model's block at that address to
/// the left. `!` marks a difference; a block that only the model knows has a line of its own.
std::string side_by_side(const CacheModel& model, DeviceId device, const cache::Snapshot& snapshot);

}  // namespace ashlar::spec
