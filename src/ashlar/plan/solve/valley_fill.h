// A greedy planner for any number of buffers: fills the lowest valley first.
//
// Purpose: the first answer, and for a million buffers mostly the last one. O(n log n): 10^6
// buffers in a second or two.
// Thread safety: pure function.
//
// The skyline begins flat. Again and again a valley is taken: a run of one floor between higher
// ones. If an item to come lives between its ends, the best that does is placed there (or the one
// that begins first); else the valley is raised to its lower neighbour. Which valley comes first
// makes no difference, for no item fits in two; so the next one downhill is taken, near in memory,
// and there is no queue (measured: twice as fast as taking the lowest). An item in pieces needs a
// valley over its whole life but leaves a valley in each gap. A pinned item is a ceiling: what
// would meet it waits until the floor has passed it, and a floor that reaches it rises to its top.
//
// Source: best-fit skyline packing (E. Burke, G. Kendall, G. Whitwell, Operations Research 52,
// 2004). Items here cannot move sideways, which turns "the widest that fits" into a search for the
// best end within the valley.
#pragma once

#include <cstdint>
#include <vector>

#include <ashlar/plan/solve/items.h>
#include <ashlar/plan/solve/orders.h>
#include <ashlar/plan/solve/stop.h>

namespace ashlar::inline v0::plan::solve {

/// Fills `*offsets`, by item, and returns the peak. As soon as the peak cannot be below `stop_at`,
/// or `stop` (if given) says so, it gives up and returns stop_at; the offsets then mean nothing.
/// Cost: O(n log n), and with pins O(log^2 n) more for each item and each pin it waits for; 60
/// bytes an item.
Units valley_fill(const Items& items, const FillOrder& order, Units stop_at, const Stop* stop,
                  std::vector<Units>* offsets);

/// The items with time running the other way: a plan of these is a plan of those.
Items mirrored(const Items& items);

}  // namespace ashlar::inline v0::plan::solve
