#include <ashlar/plan/solve/compact.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>

namespace ashlar::inline v0::plan::solve {
namespace {

/// Floors over sections, as runs of one height. compact() overwrites the sections that it has asked
/// about, so all its calls together touch each run once.
class Floors {
 public:
  explicit Floors(Section sections) {
    runs_[0] = 0;
    runs_[sections] = 0;  // the end; no call reaches it
  }
  /// The highest floor over [first, last).
  Units highest(Section first, Section last) const {
    auto run = std::prev(runs_.upper_bound(first));
    Units highest = 0;
    for (; run->first < last; ++run) highest = std::max(highest, run->second);
    return highest;
  }
  void set(Section first, Section last, Units floor) {
    split(last);
    const auto begin = split(first);
    runs_.erase(std::next(begin), runs_.find(last));
    begin->second = floor;
  }

 private:
  std::map<Section, Units>::iterator split(Section at) {
    const auto run = std::prev(runs_.upper_bound(at));
    return run->first == at ? run : runs_.emplace(at, run->second).first;
  }
  std::map<Section, Units> runs_;  // by first section
};

}  // namespace

bool compact(const Items& items, const std::vector<Units>& given, std::vector<Units>* offsets) {
  std::vector<ItemIndex> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](ItemIndex a, ItemIndex b) {
    return given[a] != given[b] ? given[a] < given[b] : a < b;
  });
  offsets->assign(items.size(), 0);
  Floors floors(items.sections());
  for (const ItemIndex index : order) {
    const Item& item = items.items[index];
    Units at = 0;
    for (const Piece* piece = items.begin_of(item); piece != items.end_of(item); ++piece) {
      at = std::max(at, floors.highest(piece->first, piece->last));
    }
    at = aligned(at, item.alignment);
    if (item.pinned != kNotPinned && at <= item.pinned) at = item.pinned;
    if (at > given[index] || given[index] % item.alignment != 0) return false;
    if (item.pinned != kNotPinned && given[index] != item.pinned) return false;
    (*offsets)[index] = at;
    for (const Piece* piece = items.begin_of(item); piece != items.end_of(item); ++piece) {
      floors.set(piece->first, piece->last, at + piece->height);
    }
  }
  return true;
}

}  // namespace ashlar::inline v0::plan::solve
