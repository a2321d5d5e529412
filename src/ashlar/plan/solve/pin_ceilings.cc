#include <ashlar/plan/solve/pin_ceilings.h>

#include <algorithm>
#include <bit>

namespace ashlar::inline v0::plan::solve {

PinCeilings::PinCeilings(const Items& items) {
  for (const Item& item : items.items) {
    if (item.pinned == kNotPinned) continue;
    for (const Piece* piece = items.begin_of(item); piece != items.end_of(item); ++piece) {
      pins_.push_back({piece->first, piece->last, item.pinned, item.pinned + piece->height});
    }
  }
  if (pins_.empty()) return;
  std::sort(pins_.begin(), pins_.end(), [](const PinnedSpan& a, const PinnedSpan& b) {
    return a.bottom != b.bottom ? a.bottom < b.bottom : a.first < b.first;
  });
  leaves_ = std::bit_ceil(std::size_t{items.sections()});
  over_.resize(2 * leaves_);
  touching_.resize(2 * leaves_);
  for (std::uint32_t pin = 0; pin < size(); ++pin) add(pin);
}

void PinCeilings::add(std::uint32_t pin) {
  const auto touch = [&](std::size_t node) {
    if (touching_[node].empty() || touching_[node].back() != pin) touching_[node].push_back(pin);
  };
  const auto put = [&](std::size_t node) {
    over_[node].push_back(pin);
    for (; node >= 1; node /= 2) touch(node);
  };
  std::size_t left = leaves_ + pins_[pin].first, right = leaves_ + pins_[pin].last;
  for (; left < right; left /= 2, right /= 2) {
    if ((left & 1) != 0) put(left++);
    if ((right & 1) != 0) put(--right);
  }
}

std::uint32_t PinCeilings::from(const std::vector<std::uint32_t>& pins, std::uint32_t least) {
  const auto at = std::lower_bound(pins.begin(), pins.end(), least);
  return at == pins.end() ? kNone : *at;
}

std::uint32_t PinCeilings::lowest(Section first, Section last, Units floor) const {
  if (pins_.empty()) return kNone;
  const auto begin =
      std::lower_bound(pins_.begin(), pins_.end(), floor,
                       [](const PinnedSpan& pin, Units at) { return pin.bottom < at; });
  const auto least = static_cast<std::uint32_t>(begin - pins_.begin());
  std::uint32_t found = kNone;
  const auto look = [&](std::size_t node) {
    found = std::min(found, from(touching_[node], least));
    for (node /= 2; node >= 1; node /= 2) found = std::min(found, from(over_[node], least));
  };
  std::size_t left = leaves_ + first, right = leaves_ + last;
  for (; left < right; left /= 2, right /= 2) {
    if ((left & 1) != 0) look(left++);
    if ((right & 1) != 0) look(--right);
  }
  return found;
}

}  // namespace ashlar::inline v0::plan::solve
