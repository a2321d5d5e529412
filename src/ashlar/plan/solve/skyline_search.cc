// The search itself: parts, choices, branching. How the state changes is in skyline_state.cc.
#include <ashlar/plan/solve/skyline_search.h>

#include <algorithm>

namespace ashlar::inline v0::plan::solve {

namespace {
/// A search goes as deep as items are placed and floors raised; this many levels fit a thread's
/// stack.
constexpr std::uint32_t kDepthMax = 4'000;
/// So many nodes between two looks at the clock: a node takes microseconds.
constexpr std::uint64_t kNodesBetweenLooks = 32;
}  // namespace

SkylineSearch::Outcome SkylineSearch::run(Units capacity, const std::vector<std::int32_t>& order,
                                          const Limits& limits, SearchMemory* memory) {
  if (items_.lower_bound > capacity) return Outcome::kNone;
  memory->failed.begin(capacity);
  memory->blames.resize(items_.size(), 0);
  memory_ = memory;
  capacity_ = capacity;
  order_ = &order;
  limits_ = limits;
  nodes_ = 0;
  steps_begin_ = steps_;
  steps_end_ =
      limits.steps > ~std::uint64_t{0} - steps_ ? ~std::uint64_t{0} : steps_ + limits.steps;
  has_stopped_ = false;
  depth_ = 0;
  if (!prepare()) return Outcome::kNone;
  if (search(Part{0, items_.sections()})) return Outcome::kFound;
  return has_stopped_ ? Outcome::kStopped : Outcome::kNone;
}

bool SkylineSearch::is_out_of_time() {
  nodes_ += 1;
  has_stopped_ |= nodes_ > limits_.nodes || steps_ >= steps_end_ || depth_ > kDepthMax ||
                  (nodes_ % kNodesBetweenLooks == 0 && is_told_to_stop());
  return has_stopped_;
}

bool SkylineSearch::is_told_to_stop() {
  return limits_.pace != nullptr ? limits_.pace->is_over(steps_ - steps_begin_)
                                 : limits_.stop->now();
}

/// Searches every part of [first, last) that has items to come. False: one of them has no plan, or
/// the search was stopped.
bool SkylineSearch::search(Part whole) {
  if (is_out_of_time()) return false;
  steps_ += whole.last - whole.first;
  const std::size_t mine = parts_.size();
  for (Section s = whole.first; s < whole.last;) {
    if (to_come_[s] == 0) {
      s += 1;
      continue;
    }
    Section end = s + 1;
    while (end < whole.last && crossed_[end] > 0) end += 1;
    parts_.push_back({s, end});
    s = end;
  }
  // Small parts first: they are the sooner found to be hopeless.
  std::sort(parts_.begin() + static_cast<std::ptrdiff_t>(mine), parts_.end(),
            [](const Part& a, const Part& b) {
              const Section width_a = a.last - a.first, width_b = b.last - b.first;
              return width_a != width_b ? width_a < width_b : a.first < b.first;
            });
  bool all = true;
  const std::size_t end = parts_.size();
  depth_ += 1;
  for (std::size_t i = mine; all && i < end; ++i) all = search_part(parts_[i]);
  depth_ -= 1;
  parts_.resize(mine);
  return all;
}

bool SkylineSearch::search_part(Part part) {
  const FailedParts::Key key = key_of(part);
  if (memory_->failed.holds(key)) return false;
  const std::size_t mine = candidates_.size();
  const Choice choice = choose(part);
  std::sort(candidates_.begin() + static_cast<std::ptrdiff_t>(mine), candidates_.end(),
            [&](ItemIndex a, ItemIndex b) {
              const std::int64_t score_a = score(part, choice, a), score_b = score(part, choice, b);
              return score_a != score_b ? score_a > score_b : a < b;
            });
  const std::size_t end = candidates_.size();
  const Mark before = mark();
  bool found = false;
  for (std::size_t i = mine; !found && !has_stopped_ && i < end; ++i) {
    place(candidates_[i], choice.floor);
    found = propagate() && search(part);
    if (!found) undo(before);
  }
  if (!found && !has_stopped_ && choice.raised != kNoUnits) {
    found = raise(choice.section, choice.raised) && propagate() && search(part);
    if (!found) undo(before);
  }
  candidates_.resize(mine);
  if (!found && !has_stopped_) memory_->failed.add(key);
  return found;
}

// Choices.

/// The scarcest choice in the part; its candidates are on top of candidates_.
SkylineSearch::Choice SkylineSearch::choose(Part part) {
  Choice best;
  bool has_one = false;
  const std::size_t mine = candidates_.size();
  for (Section left = part.first; left < part.last;) {
    const Units floor = floor_[left];
    Section right = left + 1;
    if (to_come_[left] == 0) {
      left = right;
      continue;
    }
    while (right < part.last && floor_[right] == floor && to_come_[right] > 0) right += 1;
    const auto is_higher = [&](Section s) { return to_come_[s] == 0 || floor_[s] > floor; };
    const bool is_valley =
        (left == part.first || is_higher(left - 1)) && (right == part.last || is_higher(right));
    if (is_valley) {
      for (const bool at_left : {true, false}) {
        Choice other;
        other.left = left;
        other.right = right;
        other.section = at_left ? left : right - 1;
        other.floor = floor;
        if (!collect(part, at_left, &other)) continue;
        const bool is_better = !has_one || is_scarcer(other, best);
        const auto begin = candidates_.begin() + static_cast<std::ptrdiff_t>(mine);
        const auto own = candidates_.begin() + static_cast<std::ptrdiff_t>(other.begin);
        if (is_better) {
          candidates_.erase(begin, own);
          best = other;
          has_one = true;
        } else {
          candidates_.erase(own, candidates_.end());
        }
        if (best.count() == 0) return best;
      }
    }
    left = right;
  }
  ASHLAR_ASSERT(has_one, "skyline: a part without a choice");
  return best;
}

bool SkylineSearch::is_scarcer(const Choice& a, const Choice& b) const {
  if (a.count() != b.count()) return a.count() < b.count();
  if (slack_[a.section] != slack_[b.section]) return slack_[a.section] < slack_[b.section];
  return a.floor < b.floor;
}

/// How good the item looks in the valley. One that fills it leaves no step; one that ends level
/// with a neighbour, one less. (Measured on MiniMalloc's instances: without this, twenty times the
/// nodes.)
std::int64_t SkylineSearch::score(Part part, const Choice& choice, ItemIndex index) const {
  constexpr std::int64_t kLevel = std::int64_t{1} << 32;  // more than any order
  const Item& item = items_.items[index];
  const Units top = choice.floor + item.height;
  const auto is_level = [&](Section neighbour) {
    return to_come_[neighbour] > 0 && floor_[neighbour] == top;
  };
  std::int64_t score = (*order_)[index];
  const bool at_left = item.first == choice.left, at_right = item.last == choice.right;
  if (at_left && at_right) score += kLevel;
  if (at_left && item.first > part.first && is_level(item.first - 1)) score += kLevel;
  if (at_right && item.last < part.last && is_level(item.last)) score += kLevel;
  return score;
}

/// Puts the items that may stand at one end of a valley on top of candidates_, and says how high
/// the floor is without. False where an item would stand there and hang over a lower floor
/// elsewhere: then another valley is lower.
bool SkylineSearch::collect(Part part, bool at_left, Choice* out) {
  const Section at = out->section;
  const Units floor = out->floor;
  out->begin = static_cast<std::uint32_t>(candidates_.size());
  Section reach = at_left ? at + 1 : at;  // how far the candidates go from here
  bool has_broken = false;
  const auto offer = [&](ItemIndex index) {
    for (std::size_t i = out->begin; i < candidates_.size(); ++i) {
      if (twin_[candidates_[i]] == twin_[index]) return;
    }
    candidates_.push_back(index);
  };
  const auto& begins = at_left ? starts_begin_ : ends_begin_;
  const auto& list = at_left ? starts_ : ends_;
  const Section slot = at_left ? at : at + 1;
  for (std::uint32_t k = begins[slot]; k < begins[slot + 1]; ++k) {
    const ItemIndex index = list[k];
    const Item& item = items_.items[index];
    if (placed_[index] != 0 || rest_[index] != floor || item.last > out->right ||
        item.first < out->left)
      continue;
    reach = at_left ? std::max(reach, item.last) : std::min(reach, item.first);
    offer(index);
  }
  for (const ItemIndex index : broken_) {
    if (placed_[index] != 0 || rest_[index] != floor || !covers(items_.items[index], at)) continue;
    if (!stands_level(items_.items[index], floor)) {
      candidates_.resize(out->begin);
      return false;
    }
    has_broken = true;
    offer(index);
  }
  out->end = static_cast<std::uint32_t>(candidates_.size());
  out->raised = raised_floor(part, *out, reach, at_left, has_broken);
  return true;
}

/// How high the floor is at least where no candidate stands on it: kNoUnits where that cannot be,
/// for want of items or slack.
Units SkylineSearch::raised_floor(Part part, const Choice& choice, Section reach, bool at_left,
                                  bool has_broken) const {
  const Section at = choice.section;
  Units least = kNoUnits;
  for (std::uint32_t k = cover_begin_[at]; k < cover_end_[at]; ++k) {
    const ItemIndex index = cover_[k];
    if (rest_[index] != choice.floor) {
      least = std::min(least, rest_[index]);
      continue;
    }
    // A candidate that is higher stands on a pinned item,
    for (std::uint32_t p = forbidden_begin_[index]; p < forbidden_begin_[index + 1]; ++p) {
      if (forbidden_[p].top > choice.floor) {
        least = std::min(least, forbidden_[p].top);
        break;
      }
    }
  }
  // or on an item to come that is over other sections of its own but not over this one,
  const auto may_carry = [&](ItemIndex index) {
    if (placed_[index] != 0 || covers(items_.items[index], at)) return;
    for (std::uint32_t k = choice.begin; k < choice.end; ++k) {
      if (share_section(items_.items[index], items_.items[candidates_[k]])) {
        least = std::min(least, rest_[index] + least_height_[index]);
        return;
      }
    }
  };
  if (has_broken) {
    for_unplaced_in(part, may_carry);
    // which begins, or ends, within the candidates' reach, or is in several pieces
  } else if (choice.begin != choice.end) {
    const auto& begins = at_left ? starts_begin_ : ends_begin_;
    const auto& list = at_left ? starts_ : ends_;
    const Section from = at_left ? at + 1 : reach + 1;
    const Section to = at_left ? reach : at + 1;
    for (std::uint32_t k = begins[from]; k < begins[to]; ++k) {
      if (placed_[list[k]] == 0)
        least = std::min(least, rest_[list[k]] + items_.items[list[k]].height);
    }
    for (const ItemIndex index : broken_) may_carry(index);
  }
  ASHLAR_ASSERT(least > choice.floor, "skyline: a floor is raised to where it is");
  if (least == kNoUnits) return kNoUnits;
  return waste_between(at, choice.floor, above_pins(at, least)) <= slack_[at] ? least : kNoUnits;
}

bool SkylineSearch::covers(const Item& item, Section section) const {
  for (const Piece* piece = items_.begin_of(item); piece != items_.end_of(item); ++piece) {
    if (section >= piece->first && section < piece->last) return true;
  }
  return false;
}

bool SkylineSearch::share_section(const Item& a, const Item& b) const {
  for (const Piece* piece = items_.begin_of(a); piece != items_.end_of(a); ++piece) {
    for (const Piece* other = items_.begin_of(b); other != items_.end_of(b); ++other) {
      if (piece->first < other->last && other->first < piece->last) return true;
    }
  }
  return false;
}

/// Are all floors under the item that high?
bool SkylineSearch::stands_level(const Item& item, Units floor) const {
  for (const Piece* piece = items_.begin_of(item); piece != items_.end_of(item); ++piece) {
    for (Section s = piece->first; s < piece->last; ++s) {
      if (floor_[s] != floor) return false;
    }
  }
  return true;
}

}  // namespace ashlar::inline v0::plan::solve
