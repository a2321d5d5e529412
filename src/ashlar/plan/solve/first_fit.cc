#include <ashlar/plan/solve/first_fit.h>

#include <algorithm>

namespace ashlar::inline v0::plan::solve {
namespace {

/// The lowest offset from `at` on at which `item` does not overlap `other`, which is at `offset`.
Units clear_of(const Items& items, const Item& item, Units at, const Item& other, Units offset) {
  bool has_moved = true;
  while (has_moved) {  // pieces differ in height: above one, the item may overlap another
    has_moved = false;
    const Piece* a = items.begin_of(item);
    const Piece* b = items.begin_of(other);
    while (a != items.end_of(item) && b != items.end_of(other)) {
      const bool share_a_section = a->first < b->last && b->first < a->last;
      if (share_a_section && at < offset + b->height && offset < at + a->height) {
        at = aligned(offset + b->height, item.alignment);
        has_moved = true;
      }
      if (a->last < b->last) {
        ++a;
      } else {
        ++b;
      }
    }
  }
  return at;
}

struct Placed {
  Units offset;
  ItemIndex item;
  Section first;
  Section last;
};

/// Places items one by one, pinned ones first.
class FirstFit {
 public:
  FirstFit(const Items& items, std::vector<Units>* offsets)
      : items_(items), offsets_(*offsets), is_placed_(items.size(), false) {
    offsets_.assign(items.size(), 0);
    placed_.reserve(items.size());
    std::vector<ItemIndex> pinned;
    for (ItemIndex i = 0; i < items.size(); ++i) {
      if (items.items[i].pinned != kNotPinned) pinned.push_back(i);
    }
    // The lowest first, so that each is appended to placed_.
    std::sort(pinned.begin(), pinned.end(), [&](ItemIndex a, ItemIndex b) {
      return items.items[a].pinned != items.items[b].pinned
                 ? items.items[a].pinned < items.items[b].pinned
                 : a < b;
    });
    for (const ItemIndex i : pinned) put(i, items.items[i].pinned);
  }
  bool is_placed(ItemIndex index) const { return is_placed_[index]; }
  Units peak() const { return peak_; }

  void put(ItemIndex index, Units offset) {
    const Item& item = items_.items[index];
    offsets_[index] = offset;
    is_placed_[index] = true;
    peak_ = std::max(peak_, offset + item.height);
    const auto at = std::upper_bound(placed_.begin(), placed_.end(), offset,
                                     [](Units x, const Placed& p) { return x < p.offset; });
    placed_.insert(at, Placed{offset, index, item.first, item.last});
  }

  /// The lowest offset from `at` on that is free for all the item's life. REQUIRES: `at` is
  /// aligned.
  Units lowest_from(ItemIndex index, Units at) const {
    const Item& item = items_.items[index];
    for (Units from = -1; from != at;) {
      from = at;
      // Both `at` and the offsets of placed_ ascend. So a placed item that begins above the item's
      // end ends the loop, and one that was passed is passed for good, unless the item is in
      // pieces: a low piece may pass below a placed item, and be lifted into it when a high piece
      // moves the item up. Then the loop starts again.
      for (const Placed& other : placed_) {
        if (other.offset >= at + item.height) break;
        if (other.first >= item.last || item.first >= other.last) continue;
        at = clear_of(items_, item, at, items_.items[other.item], other.offset);
      }
      if (item.pieces_end - item.pieces_begin == 1) break;
    }
    return at;
  }

 private:
  const Items& items_;
  std::vector<Units>& offsets_;
  std::vector<bool> is_placed_;
  std::vector<Placed> placed_;  // by offset
  Units peak_ = 0;
};

/// Places what is left in the given order. Returns as first_fit() does.
Units fit_the_rest(FirstFit* fit, const std::vector<ItemIndex>& order, Units stop_at,
                   const StopCondition* stop) {
  constexpr std::uint32_t kPlacedBetweenLooks = 256;
  std::uint32_t placed = 0;
  for (const ItemIndex index : order) {
    if (fit->is_placed(index)) continue;
    fit->put(index, fit->lowest_from(index, 0));
    const bool is_stopped =
        ++placed % kPlacedBetweenLooks == 0 && stop != nullptr && stop->is_met();
    if (is_stopped || fit->peak() >= stop_at) return stop_at;
  }
  return fit->peak();
}

}  // namespace

Units first_fit(const Items& items, const std::vector<ItemIndex>& order, Units stop_at,
                const StopCondition* stop, std::vector<Units>* offsets) {
  FirstFit fit(items, offsets);
  return fit_the_rest(&fit, order, stop_at, stop);
}

Units first_fit_with_hints(const Items& items, const std::vector<Units>& hints,
                           const std::vector<ItemIndex>& order, Units stop_at,
                           const StopCondition* stop, std::vector<Units>* offsets) {
  FirstFit fit(items, offsets);
  std::vector<ItemIndex> hinted;
  for (ItemIndex i = 0; i < items.size(); ++i) {
    if (hints[i] != kNotPinned && hints[i] % items.items[i].alignment == 0 && !fit.is_placed(i))
      hinted.push_back(i);
  }
  std::sort(hinted.begin(), hinted.end(), [&](ItemIndex a, ItemIndex b) {
    return hints[a] != hints[b] ? hints[a] < hints[b] : a < b;
  });
  for (const ItemIndex index : hinted) {
    if (fit.lowest_from(index, hints[index]) == hints[index]) fit.put(index, hints[index]);
  }
  return fit_the_rest(&fit, order, stop_at, stop);
}

}  // namespace ashlar::inline v0::plan::solve
