// First fit: a greedy planner for items of any kind, with pieces, pins and alignments.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include <ashlar/plan/solve/items.h>
#include <ashlar/plan/solve/stop_condition.h>

namespace ashlar::inline v0::plan::solve {

/// With more items first fit takes longer than a greedy answer is worth.
inline constexpr ItemIndex kFirstFitItemsMax = 30'000;

/// Places the pinned items, then the others in the given order, each at the lowest offset that is
/// free for all its life. Returns the peak, or stop_at as soon as the peak cannot be below that or
/// `stop` (if given) is met. Cost: O(n^2) at worst.
/// Source: with an order by height this is the memory planner of TensorFlow Lite (greedy by size).
Units first_fit(const Items& items, const std::vector<ItemIndex>& order, Units stop_at,
                const StopCondition* stop, std::vector<Units>* offsets);

/// Places the pinned items; then, lowest hint first, the items whose hint is aligned and free, at
/// their hints; then the others by first fit in the given order. `hints` is by item, kNotPinned for
/// an item without one. Gives up as first_fit() does. Cost: O(n^2) at worst.
Units first_fit_with_hints(const Items& items, const std::vector<Units>& hints,
                           const std::vector<ItemIndex>& order, Units stop_at,
                           const StopCondition* stop, std::vector<Units>* offsets);

}  // namespace ashlar::inline v0::plan::solve
