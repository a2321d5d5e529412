#include <ashlar/plan/solve/fills.h>

#include <algorithm>
#include <numeric>

#include <ashlar/plan/solve/first_fit.h>
#include <ashlar/plan/solve/orders.h>
#include <ashlar/plan/solve/valley_fill.h>

namespace ashlar::inline v0::plan::solve {
namespace {

/// First fit looks at every pair of items. With more pairs it takes longer than a greedy answer is
/// worth, and is left out.
constexpr std::uint64_t kFirstFitPairsMax = 900'000'000;
/// With more pairs than this, first fit comes after some fills in random orders.
constexpr std::uint64_t kFirstFitPairsFew = 10'000'000;
constexpr std::uint32_t kRandomFillsBeforeFirstFit = 32;
constexpr std::uint64_t kFillStepsPerItem = 100;

}  // namespace

std::vector<ItemIndex> order_by_size(const Items& items, bool by_area) {
  std::vector<ItemIndex> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](ItemIndex i) {
    const Item& item = items.items[i];
    return log2_fixed(static_cast<std::uint64_t>(item.height)) +
           (by_area ? log2_fixed(item.last - item.first) : 0);
  };
  std::sort(order.begin(), order.end(), [&](ItemIndex a, ItemIndex b) {
    const std::int32_t key_a = key(a), key_b = key(b);
    if (key_a != key_b) return key_a > key_b;
    const Units height_a = items.items[a].height, height_b = items.items[b].height;
    return height_a != height_b ? height_a > height_b : a < b;
  });
  return order;
}

Fills::Fills(const Items& items) : items_(items) {
  for (const Item& item : items.items) to_place_count_ += item.pinned == kNotPinned ? 1 : 0;
  const std::uint64_t pairs = to_place_count_ * items.size();
  has_first_fit_ = pairs <= kFirstFitPairsMax;
  const bool is_soon = pairs <= kFirstFitPairsFew;
  first_fit_ = kFixedFillOrders + (is_soon ? 0 : kRandomFillsBeforeFirstFit);
  initial_count_ = kFixedFillOrders + (is_soon ? 2 : 0);
}

Units Fills::run(std::uint32_t k, Units stop_at, const StopCondition* stop,
                 std::vector<Units>* offsets) {
  if (is_first_fit(k))
    return first_fit(items_, order_by_size(items_, k != first_fit_), stop_at, stop, offsets);
  const FillOrder order = fill_order(items_, has_first_fit_ && k > first_fit_ ? k - 2 : k);
  if (order.is_backwards) std::call_once(mirror_once_, [this] { mirrored_ = mirrored(items_); });
  return valley_fill(order.is_backwards ? mirrored_ : items_, order, stop_at, stop, offsets);
}

std::uint64_t Fills::cost(std::uint32_t k) const {
  return is_first_fit(k) ? to_place_count_ * items_.size() / 4 : kFillStepsPerItem * items_.size();
}

}  // namespace ashlar::inline v0::plan::solve
