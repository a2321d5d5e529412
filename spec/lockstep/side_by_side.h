// The model's map and the subject's, side by side: what a reader of a counterexample wants to see
// first.
//
// Thread safety: pure function.
#pragma once

#include <string>

#include "spec/model/cache_model.h"

namespace ashlar::spec {

/// One line per segment and block of the snapshot, with what the model holds at that address to the
/// left; `!` where the two disagree, and lines of their own for blocks that only the model knows.
std::string side_by_side(const CacheModel& model, DeviceId device, const cache::Snapshot& snapshot);

}  // namespace ashlar::spec
