#include <ashlar/plan/solve/skyline_choices.h>

#include <algorithm>
#include <cstddef>
#include <span>

namespace ashlar::inline v0::plan::solve {

ValleyChoices ChoiceFinder::push(Part part) {
  ValleyChoices best;
  bool has_one = false;
  const std::size_t begin = candidates_.size();
  for (Section left = part.first; left < part.last;) {
    const Units floor = state_.floor(left);
    Section right = left + 1;
    if (!state_.is_open(left)) {
      left = right;
      continue;
    }
    while (right < part.last && state_.floor(right) == floor && state_.is_open(right)) right += 1;
    const auto is_higher = [&](Section s) { return !state_.is_open(s) || state_.floor(s) > floor; };
    const bool is_valley =
        (left == part.first || is_higher(left - 1)) && (right == part.last || is_higher(right));
    if (is_valley) {
      ValleyChoices valley;
      valley.left = left;
      valley.right = right;
      valley.floor = floor;
      keep_scarcest(part, valley, &best, &has_one);
      if (has_one && best.count() == 0) break;
    }
    left = right;
  }
  ASHLAR_ASSERT(has_one, "skyline: a part without choices");
  best.begin = static_cast<std::uint32_t>(begin);
  best.end = static_cast<std::uint32_t>(candidates_.size());
  std::sort(candidates_.begin() + static_cast<std::ptrdiff_t>(begin), candidates_.end(),
            [&](ItemIndex a, ItemIndex b) {
              const std::int64_t score_a = score(part, best, a), score_b = score(part, best, b);
              return score_a != score_b ? score_a > score_b : a < b;
            });
  return best;
}

/// Compares the choices at both ends of a valley with the best so far, and keeps the candidates of
/// the scarcest alone. Stops at choices that are none.
void ChoiceFinder::keep_scarcest(Part part, ValleyChoices valley, ValleyChoices* best,
                                 bool* has_one) {
  for (const bool at_left : {true, false}) {
    ValleyChoices choices = valley;
    choices.section = at_left ? valley.left : valley.right - 1;
    if (!collect(part, at_left, &choices)) continue;
    const auto own = candidates_.begin() + static_cast<std::ptrdiff_t>(choices.begin);
    if (*has_one && !is_scarcer(choices, *best)) {
      candidates_.erase(own, candidates_.end());
    } else {
      // Those of the best so far are below.
      const std::uint32_t below = *has_one ? best->end - best->begin : 0;
      candidates_.erase(own - static_cast<std::ptrdiff_t>(below), own);
      choices.begin -= below;
      choices.end -= below;
      *best = choices;
      *has_one = true;
    }
    if (best->count() == 0) return;
  }
}

bool ChoiceFinder::is_scarcer(const ValleyChoices& a, const ValleyChoices& b) const {
  if (a.count() != b.count()) return a.count() < b.count();
  const Units slack_a = state_.slack(a.section), slack_b = state_.slack(b.section);
  return slack_a != slack_b ? slack_a < slack_b : a.floor < b.floor;
}

/// Rates an item by how level the skyline is with it. (Measured on MiniMalloc's instances: by rank
/// alone, a search visits twenty times the nodes.)
std::int64_t ChoiceFinder::score(Part part, const ValleyChoices& choices, ItemIndex index) const {
  constexpr std::int64_t kLevel = std::int64_t{1} << 32;  // more than any rank
  const Item& item = instance_.items.items[index];
  const Units top = choices.floor + item.height;
  const auto is_level = [&](Section neighbour) {
    return state_.is_open(neighbour) && state_.floor(neighbour) == top;
  };
  std::int64_t score = (*ranks_)[index];
  const bool at_left = item.first == choices.left, at_right = item.last == choices.right;
  if (at_left && at_right) score += kLevel;
  if (at_left && item.first > part.first && is_level(item.first - 1)) score += kLevel;
  if (at_right && item.last < part.last && is_level(item.last)) score += kLevel;
  return score;
}

/// Pushes the items that may stand at one end of a valley, and finds what the floor may be raised
/// to. False, and pushes nothing, if an item of several pieces would stand there and hang over a
/// lower floor elsewhere: then another valley is lower.
bool ChoiceFinder::collect(Part part, bool at_left, ValleyChoices* out) {
  const Items& items = instance_.items;
  const Section at = out->section;
  const Units floor = out->floor;
  out->begin = static_cast<std::uint32_t>(candidates_.size());
  Section reach = at_left ? at + 1 : at;  // how far the candidates go from here
  bool has_broken = false;
  for (const ItemIndex index : at_left ? instance_.starts[at] : instance_.ends[at + 1]) {
    const Item& item = items.items[index];
    if (state_.is_placed(index) || state_.rest(index) != floor || item.last > out->right ||
        item.first < out->left)
      continue;
    reach = at_left ? std::max(reach, item.last) : std::min(reach, item.first);
    add_candidate(out->begin, index);
  }
  for (const ItemIndex index : instance_.broken) {
    const Item& item = items.items[index];
    if (state_.is_placed(index) || state_.rest(index) != floor || !instance_.covers(item, at))
      continue;
    if (!state_.stands_level(item, floor)) {
      candidates_.resize(out->begin);
      return false;
    }
    has_broken = true;
    add_candidate(out->begin, index);
  }
  out->end = static_cast<std::uint32_t>(candidates_.size());
  out->raised = raised_floor(part, *out, reach, at_left, has_broken);
  return true;
}

/// Pushes the item, unless one just like it is a candidate already.
void ChoiceFinder::add_candidate(std::uint32_t begin, ItemIndex index) {
  for (std::size_t i = begin; i < candidates_.size(); ++i) {
    if (instance_.twin[candidates_[i]] == instance_.twin[index]) return;
  }
  candidates_.push_back(index);
}

/// How high the floor is at least if no candidate stands on it; kNoUnits if that cannot be, because
/// no item could rest higher or because there is too little slack.
Units ChoiceFinder::raised_floor(Part part, const ValleyChoices& choices, Section reach,
                                 bool at_left, bool has_broken) const {
  const Section at = choices.section;
  Units least = kNoUnits;
  for (const ItemIndex index : state_.unplaced()[at]) {
    if (state_.rest(index) != choices.floor) {
      least = std::min(least, state_.rest(index));
      continue;
    }
    // A candidate that does not stand on the floor stands on a pinned item,
    for (const Interval& interval : instance_.forbidden[index]) {
      if (interval.top > choices.floor) {
        least = std::min(least, interval.top);
        break;
      }
    }
  }
  // or on an unplaced item that shares a section with it but is not over this one.
  const Items& items = instance_.items;
  const auto may_carry = [&](ItemIndex index) {
    const Item& item = items.items[index];
    if (state_.is_placed(index) || instance_.covers(item, at)) return;
    for (std::uint32_t k = choices.begin; k < choices.end; ++k) {
      if (!instance_.share_section(item, items.items[candidates_[k]])) continue;
      least = std::min(least, state_.rest(index) + instance_.least_height[index]);
      return;
    }
  };
  if (has_broken) {
    state_.for_unplaced_in(part, may_carry);
  } else if (choices.begin != choices.end) {
    // Such an item begins, or ends, within the candidates' reach, or it is in several pieces.
    const std::span<const ItemIndex> within = at_left ? instance_.starts.between(at + 1, reach)
                                                      : instance_.ends.between(reach + 1, at + 1);
    for (const ItemIndex index : within) {
      if (!state_.is_placed(index))
        least = std::min(least, state_.rest(index) + items.items[index].height);
    }
    for (const ItemIndex index : instance_.broken) may_carry(index);
  }
  ASHLAR_ASSERT(least > choices.floor, "skyline: a floor is raised to where it is");
  if (least == kNoUnits) return kNoUnits;
  const Units to = instance_.above_pins(at, least);
  return instance_.waste_between(at, choices.floor, to) <= state_.slack(at) ? least : kNoUnits;
}

}  // namespace ashlar::inline v0::plan::solve
