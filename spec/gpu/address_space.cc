#include "spec/gpu/address_space.h"

#include <algorithm>

namespace ashlar::spec {
namespace {

std::uint64_t round_up(std::uint64_t n, std::uint64_t unit) { return (n + unit - 1) / unit * unit; }

}  // namespace

std::optional<Address> AddressSpace::take(Bytes size, std::uint64_t alignment, Random& rng) {
  if (size.count() > kEnd - kFirst) return std::nullopt;
  const std::uint64_t bytes = round_up(size.count(), kGrain);
  std::optional<Address> got;
  if (!adversarial_) {
    alignment = std::max(alignment, kTidyAlignment);
    if (reuses_) got = take_lowest(bytes, alignment);
    return got ? got : take_fresh(bytes, alignment, 0);
  }
  alignment = std::max(alignment, kGrain);
  const std::uint64_t choice = rng.below(8);
  if (choice < 5 && reuses_) got = take_recent(bytes, alignment, rng);
  if (!got) got = take_fresh(bytes, alignment, choice == 7 ? kGrain * (1 + rng.below(8)) : 0);
  return got || !reuses_ ? got : take_lowest(bytes, alignment);
}

std::size_t AddressSpace::hole_at_or_after(std::uint64_t address) const {
  const auto it =
      std::lower_bound(holes_.begin(), holes_.end(), address,
                       [](const Hole& hole, std::uint64_t value) { return hole.end <= value; });
  return static_cast<std::size_t>(it - holes_.begin());
}

// Looks at the ranges given back lately, newest first. Takes the address given back, rounded up; if
// the size does not fit there, the begin of its hole. One time in four it takes instead the highest
// address of the hole at which the size fits.
std::optional<Address> AddressSpace::take_recent(std::uint64_t size, std::uint64_t alignment,
                                                 Random& rng) {
  const bool from_top = rng.below(4) == 0;
  for (std::size_t i = 0; i < kRecent; ++i) {
    const std::uint64_t base = recent_[(recent_at_ + kRecent - 1 - i) % kRecent];
    if (base == 0) break;
    const std::size_t at = hole_at_or_after(base);
    if (at == holes_.size() || holes_[at].begin > base) continue;
    const Hole hole = holes_[at];
    for (const std::uint64_t from : {base, hole.begin}) {
      const std::uint64_t begin = round_up(from, alignment);
      if (begin >= hole.end || hole.end - begin < size) continue;
      const std::uint64_t top = (hole.end - size) / alignment * alignment;
      const std::uint64_t chosen = from_top && top >= begin ? top : begin;
      return carve(at, chosen, chosen + size);
    }
  }
  return std::nullopt;
}

std::optional<Address> AddressSpace::take_lowest(std::uint64_t size, std::uint64_t alignment) {
  for (std::size_t i = 0; i < holes_.size(); ++i) {
    const std::uint64_t begin = round_up(holes_[i].begin, alignment);
    if (begin < holes_[i].end && holes_[i].end - begin >= size)
      return carve(i, begin, begin + size);
  }
  return std::nullopt;
}

std::optional<Address> AddressSpace::take_fresh(std::uint64_t size, std::uint64_t alignment,
                                                std::uint64_t gap) {
  if (alignment > kEnd - next_) return std::nullopt;
  const std::uint64_t begin = round_up(next_ + gap, alignment);
  if (begin >= kEnd || kEnd - begin < size) return std::nullopt;
  const std::uint64_t old_next = next_;
  next_ = begin + size;
  if (begin > old_next) {
    // The gap is a hole; only a hole that ends at old_next can touch it.
    if (!holes_.empty() && holes_.back().end == old_next) {
      holes_.back().end = begin;
    } else {
      holes_.push_back({old_next, begin});
    }
  }
  return Address{begin};
}

Address AddressSpace::carve(std::size_t hole, std::uint64_t begin, std::uint64_t end) {
  const Hole whole = holes_[hole];
  const auto it = holes_.begin() + static_cast<std::ptrdiff_t>(hole);
  if (begin > whole.begin && end < whole.end) {
    it->end = begin;
    holes_.insert(it + 1, Hole{end, whole.end});
  } else if (begin > whole.begin) {
    it->end = begin;
  } else if (end < whole.end) {
    it->begin = end;
  } else {
    holes_.erase(it);
  }
  return Address{begin};
}

void AddressSpace::give_back(Address at, Bytes size) {
  const std::uint64_t begin = at.value();
  const std::uint64_t end = begin + round_up(size.count(), kGrain);
  recent_[recent_at_] = begin;
  recent_at_ = (recent_at_ + 1) % kRecent;
  const std::size_t i = hole_at_or_after(begin);
  const bool joins_before = i > 0 && holes_[i - 1].end == begin;
  const bool joins_after = i < holes_.size() && holes_[i].begin == end;
  const auto it = holes_.begin() + static_cast<std::ptrdiff_t>(i);
  if (joins_before && joins_after) {
    (it - 1)->end = it->end;
    holes_.erase(it);
  } else if (joins_before) {
    (it - 1)->end = end;
  } else if (joins_after) {
    it->begin = begin;
  } else {
    holes_.insert(it, Hole{begin, end});
  }
  if (!adversarial_ && reuses_ && holes_.back().end == next_) {
    next_ = holes_.back().begin;
    holes_.pop_back();
  }
}

}  // namespace ashlar::spec
