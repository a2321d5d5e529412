#include <ashlar/plan/valley_fill.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace ashlar {
inline namespace v0 {
namespace plan {
namespace {

/// An item and when it lives, in the direction in which time runs here.
struct Span {
  Section first;
  Section last;
  ItemIndex item;
};

/// The items still to be placed, by where they begin: finds the first one within a valley.
class ToPlace {
 public:
  ToPlace(const Items& items, FillRule rule, std::vector<Span> spans)
      : items_(items), prefer_(rule.prefer), picks_best_(rule.picks_best), sections_(items.sections()),
        spans_(std::move(spans)) {
    const auto key = [&](const Span& span) { return std::pair(key_of(span), items.items[span.item].height); };
    std::sort(spans_.begin(), spans_.end(), [&](const Span& a, const Span& b) {
      if (a.first != b.first) return a.first < b.first;
      const auto key_a = key(a), key_b = key(b);
      return key_a != key_b ? key_a > key_b : a.item < b.item;
    });
    next_.resize(spans_.size());
    head_.assign(sections_, kNone);
    for (auto k = static_cast<std::uint32_t>(spans_.size()); k-- > 0;) {
      next_[k] = head_[spans_[k].first];
      head_[spans_[k].first] = k;
    }
    leaves_ = std::bit_ceil(std::max<Section>(sections_, 1));
    least_end_.assign(std::size_t{2} * leaves_, kNever);
    for (Section s = 0; s < sections_; ++s) least_end_[leaves_ + s] = least_end_at(s);
    for (std::size_t node = leaves_; node-- > 1;) {
      least_end_[node] = std::min(least_end_[2 * node], least_end_[2 * node + 1]);
    }
    if (!picks_best_) return;
    best_key_.assign(least_end_.size(), kNoKey);
    for (Section s = 0; s < sections_; ++s) best_key_[leaves_ + s] = best_key_at(s);
    for (std::size_t node = leaves_; node-- > 1;) best_key_[node] = std::max(best_key_[2 * node], best_key_[2 * node + 1]);
  }

  /// Takes out the item within [left, right) that begins first, or is best. False where there is none.
  bool take(Section left, Section right, Span* out) {
    const Section first = picks_best_ ? best_start(left, right) : first_start(left, right);
    if (first >= right) return false;
    std::uint32_t* link = &head_[first];
    while (spans_[*link].last > right) link = &next_[*link];
    *out = spans_[*link];
    *link = next_[*link];
    std::size_t node = leaves_ + first;
    if (picks_best_) {
      best_key_[node] = best_key_at(first);
      for (std::size_t above = node / 2; above >= 1; above /= 2) {
        best_key_[above] = std::max(best_key_[2 * above], best_key_[2 * above + 1]);
      }
    }
    least_end_[node] = least_end_at(first);
    for (node /= 2; node >= 1; node /= 2) {
      const Section least = std::min(least_end_[2 * node], least_end_[2 * node + 1]);
      if (least_end_[node] == least) break;
      least_end_[node] = least;
    }
    return true;
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffffu;
  static constexpr Section kNever = std::numeric_limits<Section>::max();

  Section least_end_at(Section section) const {
    Section least = kNever;
    for (std::uint32_t k = head_[section]; k != kNone; k = next_[k]) least = std::min(least, spans_[k].last);
    return least;
  }
  /// The first section from `left` on where an item begins that ends by `right`; `right` or later where there is none.
  Section first_start(Section left, Section right) const {
    std::size_t node = std::size_t{leaves_} + left;
    while (least_end_[node] > right) {
      while ((node & 1) != 0) node /= 2;  // up, as long as this was a right child
      if (node == 0) return right;
      node += 1;
      if (std::has_single_bit(node)) return right;  // past the last leaf
    }
    while (node < leaves_) {
      node *= 2;
      if (least_end_[node] > right) node += 1;
    }
    return static_cast<Section>(node - leaves_);
  }

  double key_of(const Span& span) const {
    const auto width = static_cast<double>(span.last - span.first);
    const auto height = static_cast<double>(items_.items[span.item].height);
    return prefer_ == FillRule::Prefer::kWidest ? width : prefer_ == FillRule::Prefer::kHighest ? height : width * height;
  }
  double best_key_at(Section section) const {
    return head_[section] == kNone ? kNoKey : key_of(spans_[head_[section]]);  // they are in order
  }
  /// Where the best item within [left, right) begins; `right` where there is none. Looks only where there may be a better one.
  Section best_start(Section left, Section right) {
    Section best = right;
    double key = kNoKey;
    visits_.assign(1, {1, 0, leaves_});
    while (!visits_.empty()) {
      const Visit at = visits_.back();
      visits_.pop_back();
      if (at.last <= left || at.first >= right || least_end_[at.node] > right || best_key_[at.node] <= key) continue;
      if (at.node >= leaves_) {
        std::uint32_t k = head_[at.first];
        while (spans_[k].last > right) k = next_[k];
        if (key_of(spans_[k]) > key) {
          key = key_of(spans_[k]);
          best = at.first;
        }
        continue;
      }
      const Section middle = at.first + (at.last - at.first) / 2;
      const Visit halves[] = {{2 * at.node, at.first, middle}, {2 * at.node + 1, middle, at.last}};
      const bool right_is_better = best_key_[2 * at.node + 1] > best_key_[2 * at.node];
      visits_.push_back(halves[right_is_better ? 0 : 1]);  // the better one is on top
      visits_.push_back(halves[right_is_better ? 1 : 0]);
    }
    return best;
  }
  struct Visit {
    std::size_t node;
    Section first;
    Section last;
  };
  static constexpr double kNoKey = -1;

  const Items& items_;
  const FillRule::Prefer prefer_;
  const bool picks_best_;
  const Section sections_;
  Section leaves_ = 0;
  std::vector<Span> spans_;             // by first section, then by the rule
  std::vector<std::uint32_t> next_;     // of the same first section
  std::vector<std::uint32_t> head_;     // by section
  std::vector<Section> least_end_;      // a tree over the sections where items begin
  std::vector<double> best_key_;        // another
  std::vector<Visit> visits_;
};

/// The skyline: runs of sections with one floor, neighbours with different ones. A run is named by its first section.
class Skyline {
 public:
  explicit Skyline(Section sections) : last_of_(sections), first_of_(sections), floor_(sections) { set(0, sections, 0); }
  Section last_of(Section run) const { return last_of_[run]; }
  Units floor_of(Section run) const { return floor_[run]; }
  /// A valley downhill from the run: itself, if both neighbours are higher.
  Section downhill(Section run) const {
    for (;;) {
      if (last_of_[run] < last_of_.size() && floor_[last_of_[run]] < floor_[run]) {
        run = last_of_[run];
      } else if (run > 0 && floor_[first_of_[run - 1]] < floor_[run]) {
        run = first_of_[run - 1];
      } else {
        return run;
      }
    }
  }
  /// Raises a valley to its lower neighbour, with which it becomes one run: that. REQUIRES: it has a neighbour.
  Section raise(Section run) {
    const Section last = last_of_[run];
    const bool has_left = run > 0, has_right = last < last_of_.size();
    const Units left = has_left ? floor_[first_of_[run - 1]] : std::numeric_limits<Units>::max();
    const Units right = has_right ? floor_[last] : std::numeric_limits<Units>::max();
    ASHLAR_ASSERT(has_left || has_right, "valley fill: an item that fits nowhere");
    return make(run, last, std::min(left, right));
  }
  /// Puts [from, to) of a run at `top`, and returns the run that is there now.
  Section place(Section run, Section from, Section to, Units top) {
    const Units floor = floor_[run];
    const Section last = last_of_[run];
    if (run < from) set(run, from, floor);
    if (to < last) set(to, last, floor);
    return make(from, to, top);
  }

 private:
  void set(Section first, Section last, Units floor) {
    last_of_[first] = last;
    first_of_[last - 1] = first;
    floor_[first] = floor;
  }
  /// A run there, one with its neighbours of the same floor.
  Section make(Section first, Section last, Units floor) {
    if (first > 0 && floor_[first_of_[first - 1]] == floor) first = first_of_[first - 1];
    if (last < last_of_.size() && floor_[last] == floor) last = last_of_[last];
    set(first, last, floor);
    return first;
  }

  std::vector<Section> last_of_;   // by a run's first section
  std::vector<Section> first_of_;  // by a run's last section
  std::vector<Units> floor_;       // by a run's first section
};

std::vector<Span> spans_of(const Items& items, FillRule rule) {
  std::vector<Span> spans(items.size());
  for (ItemIndex i = 0; i < items.size(); ++i) {
    const Item& item = items.items[i];
    spans[i] = rule.is_backwards ? Span{items.sections() - item.last, items.sections() - item.first, i}
                                 : Span{item.first, item.last, i};
  }
  return spans;
}

}  // namespace

Units valley_fill(const Items& items, FillRule rule, Units stop_at, const Stop* stop, std::vector<Units>* offsets) {
  constexpr ItemIndex kPlacedBetweenLooks = 4096;
  ASHLAR_ASSERT(items.is_simple, "valley fill: items with pieces, pins or alignments");
  offsets->assign(items.size(), 0);
  if (items.size() == 0) return 0;
  Skyline skyline(items.sections());
  Units peak = 0;
  ToPlace to_place(items, rule, spans_of(items, rule));
  Section run = 0;
  Span span{};
  for (ItemIndex placed = 0; placed < items.size();) {
    run = skyline.downhill(run);
    if (!to_place.take(run, skyline.last_of(run), &span)) {
      run = skyline.raise(run);
      continue;
    }
    const Units floor = skyline.floor_of(run);
    const Units top = floor + items.items[span.item].height;
    (*offsets)[span.item] = floor;
    peak = std::max(peak, top);
    if (peak >= stop_at || (++placed % kPlacedBetweenLooks == 0 && stop != nullptr && stop->now())) return stop_at;
    run = skyline.place(run, span.first, span.last, top);
  }
  return peak;
}

}  // namespace plan
}  // namespace v0
}  // namespace ashlar
