// Greedy planners for items of any kind: pieces, pins, alignments.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include <ashlar/plan/solve/items.h>
#include <ashlar/plan/solve/stop.h>

namespace ashlar::inline v0::plan::solve {

/// first_fit() beyond this many items takes longer than anybody waits for a greedy answer.
inline constexpr ItemIndex kFirstFitItemsMax = 30'000;

/// Places the pinned items, then the others in the order given, each at the lowest offset that is
/// free all its life. Returns the peak, or stop_at as soon as the peak cannot be below it or `stop`
/// (if given) says so. Cost: O(n^2) at worst.
/// Source: the memory planner of TensorFlow Lite (greedy by size) is the one whose order is by
/// height.
Units first_fit(const Items& items, const std::vector<ItemIndex>& order, Units stop_at,
                const Stop* stop, std::vector<Units>* offsets);

/// The same, but first of all (pinned items apart) items go to what `wishes` says for them, the
/// lowest wish first, where that is aligned and free; the others, and those that wish nothing
/// (kNotPinned), follow in the order given. Cost: O(n^2) at worst.
Units first_fit_from(const Items& items, const std::vector<Units>& wishes,
                     const std::vector<ItemIndex>& order, std::vector<Units>* offsets);

}  // namespace ashlar::inline v0::plan::solve
