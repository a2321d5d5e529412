// Moves every item of a given plan down as far as it goes.
//
// Thread safety: pure function.
#pragma once

#include <vector>

#include <ashlar/plan/solve/items.h>

namespace ashlar::inline v0::plan::solve {

/// Takes the items in order of their given offsets and puts each on what is below it: no offset in
/// `*offsets` is above the given one. False where that is no valid plan, which then `given` is not
/// either: two meet, one is not aligned or not at its pin.
/// Cost: O(n log n).
bool compact(const Items& items, const std::vector<Units>& given, std::vector<Units>* offsets);

}  // namespace ashlar::inline v0::plan::solve
