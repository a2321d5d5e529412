// Moves every item of a given plan down as far as it goes.
//
// Thread safety: pure function.
#pragma once

#include <vector>

#include <ashlar/plan/solve/items.h>

namespace ashlar::inline v0::plan::solve {

/// Takes the items in order of their given offsets and puts each onto the items below it, so no
/// offset in `*offsets` is above the given one. False if `given` is not a valid plan of the items:
/// two of them overlap, one is not aligned, or one is not at its pin.
/// Cost: O(n log n).
bool compact(const Items& items, const std::vector<Units>& given, std::vector<Units>* offsets);

}  // namespace ashlar::inline v0::plan::solve
