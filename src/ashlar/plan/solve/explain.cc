#include <ashlar/plan/solve/explain.h>

#include <algorithm>
#include <limits>

#include <ashlar/plan/live.h>
#include <ashlar/plan/solve/items.h>
#include <ashlar/plan/solve/skyline_search.h>

namespace ashlar::inline v0::plan::solve {
namespace {

using Buffers = std::vector<std::uint32_t>;

/// What it costs to make the items of a part.
constexpr std::uint64_t kStepsPerBuffer = 16;

/// The problem of some buffers of the space alone.
Problem part_of(const Problem& problem, std::uint32_t space, const Buffers& buffers) {
  Problem part;
  part.spaces = {problem.spaces[space]};
  part.gaps = problem.gaps;
  for (const std::uint32_t b : buffers) {
    part.buffers.push_back(problem.buffers[b]);
    part.buffers.back().space = 0;
  }
  return part;
}

bool is_live_at(const Problem& problem, const Buffer& buffer, Time time) {
  for (std::uint32_t k = 0; k < live_pieces(buffer); ++k) {
    const Lifetime piece = live_piece(problem, buffer, k);
    if (time >= piece.lower && time < piece.upper) return true;
  }
  return false;
}

/// The largest of the buffers that are live when the most units of the items are: as many as exceed
/// the capacity, whatever was added by rounding (items.h). Empty if the live units always fit.
Buffers crowd(const Problem& problem, std::uint32_t space, const Buffers& buffers,
              const Items& items) {
  const auto most =
      static_cast<Units>((problem.spaces[space].capacity + items.rounding) / items.unit);
  const auto fullest = std::max_element(items.load.begin(), items.load.end());
  if (fullest == items.load.end() || *fullest <= most) return {};
  const Time time = items.moment[static_cast<std::size_t>(fullest - items.load.begin())];

  Buffers live;
  for (const std::uint32_t b : buffers) {
    if (is_live_at(problem, problem.buffers[b], time)) live.push_back(b);
  }
  std::sort(live.begin(), live.end(), [&](std::uint32_t a, std::uint32_t b) {
    const Bytes size_a = problem.buffers[a].size, size_b = problem.buffers[b].size;
    return size_a != size_b ? size_a > size_b : a < b;
  });
  Buffers few;
  std::vector<std::uint32_t> groups;
  Units sum = 0;
  for (const std::uint32_t b : live) {
    const std::uint32_t group = problem.buffers[b].group;  // counts once, as large as its largest
    if (group != kNoGroup && std::find(groups.begin(), groups.end(), group) != groups.end())
      continue;
    if (group != kNoGroup) groups.push_back(group);
    few.push_back(b);
    sum += static_cast<Units>((problem.buffers[b].size + items.unit - Bytes{1}) / items.unit);
    if (sum > most) break;
  }
  std::sort(few.begin(), few.end());
  return few;
}

/// One buffer that is pinned too high; or a crowd. Empty if there is neither.
Buffers overload(const Problem& problem, std::uint32_t space, const Buffers& buffers) {
  const Bytes capacity = problem.spaces[space].capacity;
  for (const std::uint32_t b : buffers) {
    const Buffer& buffer = problem.buffers[b];
    if (buffer.pinned != kNowhere && buffer.pinned + buffer.size > capacity) return {b};
  }
  const Problem part = part_of(problem, space, buffers);
  Buffers few = crowd(problem, space, buffers, make_items(part, 0));
  return few.empty() ? crowd(problem, space, buffers, make_rounded_items(part, 0)) : few;
}

/// Whether a search within the steps left proves that the buffers have no plan.
bool cannot_fit(const Problem& problem, std::uint32_t space, const Buffers& buffers,
                std::uint64_t* steps, const StopCondition& stop) {
  const Problem part = part_of(problem, space, buffers);
  const Items rounded = make_rounded_items(part, 0);
  *steps -= std::min(*steps, kStepsPerBuffer * buffers.size());
  const Bytes space_capacity = problem.spaces[space].capacity;
  if (rounded.bound_in_bytes(rounded.lower_bound) > space_capacity) return true;
  const Items items = rounded.rounding == Bytes{} ? rounded : make_items(part, 0);
  const auto capacity = static_cast<Units>(space_capacity / items.unit);
  if (!SkylineSearch::can_search(items)) return false;
  SkylineSearch search(items);
  SearchMemory memory;
  const SkylineSearch::Outcome outcome =
      search.run(capacity, std::vector<std::int32_t>(items.size(), 0),
                 {std::numeric_limits<std::uint64_t>::max(), *steps, &stop}, &memory);
  *steps -= std::min(*steps, search.steps());
  return outcome == SkylineSearch::Outcome::kNone;
}

}  // namespace

std::vector<std::uint32_t> explain_misfit(const Problem& problem, std::uint32_t space,
                                          std::uint64_t steps, const StopCondition& stop) {
  Buffers buffers;
  for (std::uint32_t b = 0; b < problem.buffers.size(); ++b) {
    if (problem.buffers[b].space == space) buffers.push_back(b);
  }
  if (Buffers few = overload(problem, space, buffers); !few.empty()) buffers = std::move(few);
  // Leave out halves, quarters, ... single buffers, as long as the rest cannot fit.
  for (std::size_t chunk = buffers.size() / 2; chunk > 0; chunk /= 2) {
    for (std::size_t at = 0; at < buffers.size() && steps > 0 && !stop.is_met();) {
      Buffers fewer(buffers.begin(), buffers.begin() + static_cast<std::ptrdiff_t>(at));
      const std::size_t end = std::min(at + chunk, buffers.size());
      fewer.insert(fewer.end(), buffers.begin() + static_cast<std::ptrdiff_t>(end), buffers.end());
      if (!fewer.empty() && cannot_fit(problem, space, fewer, &steps, stop)) {
        buffers = std::move(fewer);
      } else {
        at = end;
      }
    }
  }
  return buffers;
}

}  // namespace ashlar::inline v0::plan::solve
