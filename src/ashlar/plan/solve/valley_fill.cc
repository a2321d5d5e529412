#include <ashlar/plan/solve/valley_fill.h>

#include <algorithm>
#include <map>
#include <utility>

#include <ashlar/plan/solve/pin_ceilings.h>
#include <ashlar/plan/solve/skyline_runs.h>
#include <ashlar/plan/solve/unplaced_items.h>

namespace ashlar::inline v0::plan::solve {
namespace {

class Fill {
 public:
  Fill(const Items& items, const FillOrder& order, std::vector<Units>* offsets)
      : items_(items),
        unplaced_(items, order.ranks, order.picks_best),
        skyline_(items.sections()),
        ceilings_(items),
        offsets_(*offsets) {
    offsets_.assign(items.size(), 0);
    for (ItemIndex i = 0; i < items.size(); ++i) {
      const Item& item = items.items[i];
      left_ += item.pinned == kNotPinned ? 1 : 0;
      if (item.pinned == kNotPinned) continue;
      offsets_[i] = item.pinned;
      peak_ = std::max(peak_, item.pinned + item.height);
    }
  }

  /// Places an item, or changes the skyline so that one can be placed later.
  void step() {
    run_ = skyline_.downhill(run_);
    const Section last = skyline_.last_of(run_);
    const Units floor = skyline_.floor_of(run_);
    const std::uint32_t pin = ceilings_.lowest(run_, last, floor);
    if (pin != PinCeilings::kNone && ceilings_[pin].bottom == floor) return pass(pin);
    const ItemIndex index = unplaced_.take(run_, last);
    if (index == kNoItem) {
      run_ = skyline_.raise(
          run_, pin == PinCeilings::kNone ? SkylineRuns::kNoFloor : ceilings_[pin].bottom);
      return;
    }
    const Item& item = items_.items[index];
    const Units offset = aligned(floor, item.alignment);
    if (pin != PinCeilings::kNone) {
      const std::uint32_t above = ceilings_.lowest(item.first, item.last, floor);
      if (above != PinCeilings::kNone && ceilings_[above].bottom < offset + item.height) {
        waiting_.emplace(std::pair(above, std::max(item.first, ceilings_[above].first)), index);
        return;
      }
    }
    place(index, offset);
  }
  ItemIndex left() const { return left_; }
  Units peak() const { return peak_; }

 private:
  void place(ItemIndex index, Units offset) {
    const Item& item = items_.items[index];
    offsets_[index] = offset;
    peak_ = std::max(peak_, offset + item.height);
    left_ -= 1;
    Section run = run_;
    for (const Piece* piece = items_.begin_of(item); piece != items_.end_of(item); ++piece) {
      run_ = skyline_.place(run, piece->first, piece->last, offset + piece->height);
      run = piece->last;
    }
  }
  /// The floor has reached the pin: raises the sections under the pin to its top.
  void pass(std::uint32_t pin) {
    const PinnedSpan& range = ceilings_[pin];
    const Section first = std::max(run_, range.first),
                  last = std::min(skyline_.last_of(run_), range.last);
    run_ = skyline_.place(run_, first, last, range.top);
    const auto begin = waiting_.lower_bound({pin, first}), end = waiting_.lower_bound({pin, last});
    for (auto at = begin; at != end; ++at) unplaced_.put(at->second);
    waiting_.erase(begin, end);
  }

  const Items& items_;
  UnplacedItems unplaced_;
  SkylineRuns skyline_;
  PinCeilings ceilings_;
  // items that wait for a pin to be passed: by pin, and the first section that they share with it
  std::multimap<std::pair<std::uint32_t, Section>, ItemIndex> waiting_;
  std::vector<Units>& offsets_;
  Section run_ = 0;
  ItemIndex left_ = 0;  // items to place
  Units peak_ = 0;
};

}  // namespace

Units valley_fill(const Items& items, const FillOrder& order, Units stop_at,
                  const StopCondition* stop, std::vector<Units>* offsets) {
  constexpr std::uint32_t kStepsBetweenLooks = 4096;
  if (items.size() == 0) return 0;
  Fill fill(items, order, offsets);
  for (std::uint32_t steps = 1; fill.left() > 0; ++steps) {
    fill.step();
    const bool is_stopped = steps % kStepsBetweenLooks == 0 && stop != nullptr && stop->is_met();
    if (is_stopped || fill.peak() >= stop_at) return stop_at;
  }
  return fill.peak();
}

Items mirrored(const Items& items) {
  Items out = items;
  const auto turn = [&](auto& range) {
    const Section first = range.first;
    range.first = items.sections() - range.last;
    range.last = items.sections() - first;
  };
  for (Item& item : out.items) {
    std::reverse(out.pieces.begin() + item.pieces_begin, out.pieces.begin() + item.pieces_end);
    turn(item);
  }
  for (Piece& piece : out.pieces) turn(piece);
  std::reverse(out.load.begin(), out.load.end());
  return out;
}

}  // namespace ashlar::inline v0::plan::solve
