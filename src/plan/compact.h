// Moves every item of a given plan down as far as it goes.
//
// Thread safety: pure function.
#pragma once

#include <vector>

#include <ashlar/plan/items.h>

namespace ashlar {
inline namespace v0 {
namespace plan {

/// Takes the items in order of their given offsets and puts each on what is below it. False where `given` is no valid plan of
/// the items (two meet, one is not aligned or not at its pin): so it is a validator too. Else no offset in `*offsets` is above
/// the given one. Cost: O(n log n).
bool compact(const Items& items, const std::vector<Units>& given, std::vector<Units>* offsets);

}  // namespace plan
}  // namespace v0
}  // namespace ashlar
