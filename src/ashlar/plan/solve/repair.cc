#include <ashlar/plan/solve/repair.h>

#include <algorithm>
#include <numeric>

#include <ashlar/plan/solve/orders.h>
#include <ashlar/plan/solve/skyline_search.h>

namespace ashlar::inline v0::plan::solve {
namespace {

/// How many items are taken out at first, and at most.
constexpr std::uint32_t kTakenFirst = 32;
constexpr std::uint32_t kTakenMax = 512;
/// To set up a search costs as much as the sum of its items' widths, so parts have to be small.
constexpr std::uint64_t kCoverMax = 1u << 21;
constexpr std::uint64_t kAttempts = 3;
constexpr std::uint64_t kErrorsMax = 300;

}  // namespace

Repair::Repair(const Items& items)
    : items_(items), by_first_(items.size()), begin_(items.sections() + 1, 0) {
  std::iota(by_first_.begin(), by_first_.end(), 0);
  std::sort(by_first_.begin(), by_first_.end(), [&](ItemIndex a, ItemIndex b) {
    const Section first_a = items.items[a].first, first_b = items.items[b].first;
    return first_a != first_b ? first_a < first_b : a < b;
  });
  for (const Item& item : items.items) begin_[item.first + 1] += 1;
  std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
}

/// The item, and the unpinned items that live within a window around the fullest section of its
/// life. The window is doubled until they are `count`, or all.
std::vector<ItemIndex> Repair::items_around(ItemIndex around, std::uint32_t count) const {
  const Item& item = items_.items[around];
  const auto load = items_.load.begin();
  const auto fullest =
      static_cast<Section>(std::max_element(load + item.first, load + item.last) - load);
  std::vector<ItemIndex> taken;
  for (Section reach = 2;; reach *= 2) {
    const Section left = fullest < reach ? 0 : fullest - reach;
    const Section right = std::min(items_.sections(), fullest + reach);
    taken.assign(1, around);
    for (std::uint32_t k = begin_[left]; k < begin_[right]; ++k) {
      const ItemIndex other = by_first_[k];
      if (other != around && items_.items[other].last <= right &&
          items_.items[other].pinned == kNotPinned)
        taken.push_back(other);
    }
    if (taken.size() >= count || (left == 0 && right == items_.sections())) break;
  }
  if (taken.size() > kTakenMax) taken.resize(kTakenMax);
  return taken;
}

/// The instance of a search: the items taken out and, pinned where they are, the items that stay;
/// over the sections of the items taken out alone.
Items Repair::part_of(const std::vector<ItemIndex>& taken,
                      const std::vector<Units>& offsets) const {
  Section left = items_.sections(), right = 0;
  std::vector<bool> is_taken(items_.size(), false);
  for (const ItemIndex index : taken) {
    left = std::min(left, items_.items[index].first);
    right = std::max(right, items_.items[index].last);
    is_taken[index] = true;
  }
  Items part;
  part.load.assign(right - left, 0);
  const auto add = [&](ItemIndex index, Units pinned) {
    const Item& item = items_.items[index];
    Item copy = item;
    copy.pinned = pinned;
    copy.pieces_begin = static_cast<std::uint32_t>(part.pieces.size());
    for (const Piece* piece = items_.begin_of(item); piece != items_.end_of(item); ++piece) {
      const Section first = std::max(piece->first, left), last = std::min(piece->last, right);
      if (first >= last) continue;
      part.pieces.push_back({first - left, last - left, piece->height});
      // Differences from the section before; partial_sum() below adds them up.
      part.load[first - left] += piece->height;
      if (last < right) part.load[last - left] -= piece->height;
    }
    copy.pieces_end = static_cast<std::uint32_t>(part.pieces.size());
    if (copy.pieces_begin == copy.pieces_end) return;
    copy.first = part.pieces[copy.pieces_begin].first;
    copy.last = part.pieces.back().last;
    part.items.push_back(copy);
  };
  for (const ItemIndex index : taken) add(index, items_.items[index].pinned);
  for (ItemIndex index = 0; index < items_.size(); ++index) {
    const Item& item = items_.items[index];
    if (!is_taken[index] && item.first < right && item.last > left) add(index, offsets[index]);
  }
  std::partial_sum(part.load.begin(), part.load.end(), part.load.begin());
  for (const Units load : part.load) part.lower_bound = std::max(part.lower_bound, load);
  return part;
}

bool Repair::put_back(const std::vector<ItemIndex>& taken, Units target, std::uint64_t attempt,
                      std::vector<Units>* offsets, std::uint64_t steps_end,
                      const StopCondition& stop) {
  const Items part = part_of(taken, *offsets);
  steps_ += items_.size() / 8 + part.pieces.size();
  const std::uint64_t cover = cover_of(part);
  if (part.lower_bound > target || cover > kCoverMax || !SkylineSearch::can_search(part))
    return false;
  steps_ += cover;
  SkylineSearch search(part);
  SearchMemory memory;
  for (std::uint64_t k = 0; k < kAttempts; ++k) {
    if (steps_ >= steps_end || stop.is_met()) return false;
    const std::uint64_t before = search.steps();
    const SkylineSearch::Limits limits{taken.size() + kErrorsMax, steps_end - steps_, &stop};
    const auto outcome =
        search.run(target, search_ranks(part, attempt + k, memory.blames), limits, &memory);
    steps_ += search.steps() - before + part.size();
    if (outcome == SkylineSearch::Outcome::kNone) return false;
    if (outcome != SkylineSearch::Outcome::kFound) continue;
    for (std::uint32_t i = 0; i < taken.size(); ++i) (*offsets)[taken[i]] = search.offsets()[i];
    return true;
  }
  return false;
}

bool Repair::lower(Units target, std::vector<Units>* offsets, std::uint64_t steps,
                   const StopCondition& stop) {
  const std::uint64_t steps_end =
      steps > ~std::uint64_t{0} - steps_ ? ~std::uint64_t{0} : steps_ + steps;
  std::vector<ItemIndex> high;
  for (ItemIndex i = 0; i < items_.size(); ++i) {
    if ((*offsets)[i] + items_.items[i].height > target) high.push_back(i);
  }
  std::sort(high.begin(), high.end(), [&](ItemIndex a, ItemIndex b) {
    const Units end_a = (*offsets)[a] + items_.items[a].height,
                end_b = (*offsets)[b] + items_.items[b].height;
    return end_a != end_b ? end_a > end_b : a < b;
  });
  for (const ItemIndex index : high) {
    // The repair of another item may have lowered this one too.
    if ((*offsets)[index] + items_.items[index].height <= target) continue;
    bool is_low = false;
    for (std::uint32_t count = kTakenFirst; !is_low && count <= kTakenMax; count *= 2) {
      if (steps_ >= steps_end || stop.is_met()) return false;
      is_low = put_back(items_around(index, count), target, count, offsets, steps_end, stop);
    }
    if (!is_low) return false;
  }
  return true;
}

}  // namespace ashlar::inline v0::plan::solve
