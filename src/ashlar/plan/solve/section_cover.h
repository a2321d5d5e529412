// The unplaced items over each section.
//
// Thread safety: none. Cost: O(1) to take an item out of a section and, by the trail, to put it
// back.
//
// Invariant: the unplaced items of a section come first in its row, up to the row's end. An item is
// taken out by swapping it behind that end. So the row needs no undo log of its own: when the trail
// restores the end, the item is back in, perhaps at another place of the row.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <ashlar/plan/solve/skyline_instance.h>
#include <ashlar/plan/solve/trail.h>

namespace ashlar::inline v0::plan::solve {

class SectionCover {
 public:
  /// `instance` outlives the cover.
  explicit SectionCover(const SkylineInstance& instance)
      : instance_(instance), slot_(instance.slots) {}

  /// Makes every item unplaced that is not pinned.
  void reset() {
    rows_ = instance_.over.values;
    end_.assign(instance_.over.begin.begin() + 1, instance_.over.begin.end());
    for (Section s = 0; s < end_.size(); ++s) {
      for (std::uint32_t k = instance_.over.begin[s]; k < end_[s]; ++k) slot_of(rows_[k], s) = k;
    }
  }
  std::span<const ItemIndex> operator[](Section section) const {
    return {rows_.data() + instance_.over.begin[section], rows_.data() + end_[section]};
  }
  /// Takes an unplaced item out of a section that it is over.
  void remove(ItemIndex index, Section section, Trail* trail) {
    const std::uint32_t last = end_[section] - 1;
    std::uint32_t& slot = slot_of(index, section);
    std::swap(rows_[slot], rows_[last]);
    slot_of(rows_[slot], section) = slot;
    slot = last;
    trail->set(end_, section, last);
  }

 private:
  std::uint32_t& slot_of(ItemIndex index, Section section) {
    return slot_[instance_.slots_begin[index] + (section - instance_.items.items[index].first)];
  }

  const SkylineInstance& instance_;
  std::vector<ItemIndex> rows_;      // as instance_.over, each row in an order of its own
  std::vector<std::uint32_t> end_;   // by section, into rows_
  std::vector<std::uint32_t> slot_;  // by item and section of its life: where it is in rows_
};

}  // namespace ashlar::inline v0::plan::solve
