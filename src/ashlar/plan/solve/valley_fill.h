// A greedy planner for any number of buffers: fills the lowest valley first.
//
// Purpose: makes the first answer, and for a million buffers mostly also the last. O(n log n): 10^6
// buffers in one to two seconds.
// Thread safety: pure function.
//
// The skyline begins flat. Each step takes a valley, a run of one floor between higher ones. If an
// unplaced item lives within the valley, the best such item (or the one that begins first) is
// placed there; otherwise the valley is raised to its lower neighbour. The order of the valleys
// makes no difference, because no item fits in two of them; so the next one downhill is taken, which
// is near in memory and needs no queue (measured: twice as fast as always taking the lowest). An
// item in pieces needs a valley over its whole life, and leaves a valley in each gap. A pinned item
// is a ceiling: an item that would meet it waits until the floor has passed it, and a floor that
// reaches it rises to its top.
//
// Source: best-fit skyline packing (E. Burke, G. Kendall, G. Whitwell, Operations Research 52,
// 2004). There an item may move sideways and the widest that fits is taken; here items are fixed in
// time, so the step looks for the best item that ends within the valley.
#pragma once

#include <cstdint>
#include <vector>

#include <ashlar/plan/solve/items.h>
#include <ashlar/plan/solve/orders.h>
#include <ashlar/plan/solve/stop_condition.h>

namespace ashlar::inline v0::plan::solve {

/// Fills `*offsets`, by item, and returns the peak. Gives up and returns stop_at as soon as the peak
/// cannot be below that, or `stop` (if given) is met; then the offsets are meaningless.
/// Cost: O(n log n), and with pins O(log^2 n) more for each item and each pin that it waits for; 60
/// bytes per item.
Units valley_fill(const Items& items, const FillOrder& order, Units stop_at,
                  const StopCondition* stop, std::vector<Units>* offsets);

/// The items with time reversed. A plan of the mirrored items is a plan of the items.
Items mirrored(const Items& items);

}  // namespace ashlar::inline v0::plan::solve
