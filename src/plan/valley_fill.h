// A greedy planner for any number of buffers: fills the lowest valley first.
//
// Purpose: the first answer, and for a million buffers mostly the last one. O(n log n): 10^6 buffers in seconds.
// Thread safety: pure function.
//
// The skyline begins flat. Again and again a valley is taken: a run of one floor between higher ones. If an item to come fits
// between its ends, the one that begins first is placed there (of several that begin together, by the rule), or the best of
// all; else the valley is raised to its lower neighbour. Placing splits a run in up to three, and raising merges two: there are at most 3 n steps.
// Which valley comes first makes no difference, for no item fits in two; so the next one downhill is taken, near in memory,
// and there is no queue (measured: twice as fast as taking the lowest).
//
// Source: best-fit skyline packing (E. Burke, G. Kendall, G. Whitwell, Operations Research 52, 2004). Items here cannot move
// sideways, which turns "the widest that fits" into a search for the first end within the valley.
#pragma once

#include <cstdint>
#include <vector>

#include <ashlar/plan/items.h>
#include <ashlar/plan/stop.h>

namespace ashlar {
inline namespace v0 {
namespace plan {

struct FillRule {
  enum class Prefer : std::uint8_t { kWidest, kLargest, kHighest };
  Prefer prefer = Prefer::kWidest;
  bool is_backwards = false;   ///< time runs the other way
  bool picks_best = false;     ///< of all that fit in a valley the preferred, not the one that begins first. Slow in large valleys
};
/// Rules that pick the best are for up to so many items.
inline constexpr ItemIndex kPickBestItemsMax = 100'000;
/// Every rule, the better ones first.
inline constexpr FillRule kFillRules[] = {
    {FillRule::Prefer::kWidest, false, false},  {FillRule::Prefer::kHighest, true, false}, {FillRule::Prefer::kLargest, false, false},
    {FillRule::Prefer::kWidest, true, false},   {FillRule::Prefer::kLargest, false, true}, {FillRule::Prefer::kHighest, false, false},
    {FillRule::Prefer::kLargest, true, false},  {FillRule::Prefer::kHighest, false, true}};

/// Fills `*offsets`, by item, and returns the peak. As soon as the peak cannot be below `stop_at`, or `stop` (if given) says
/// so, it gives up and returns stop_at; the offsets then mean nothing. REQUIRES: items.is_simple. Cost: O(n log n), 40 bytes an item.
Units valley_fill(const Items& items, FillRule rule, Units stop_at, const Stop* stop, std::vector<Units>* offsets);

}  // namespace plan
}  // namespace v0
}  // namespace ashlar
