#include <ashlar/plan/solve/orders.h>

#include <bit>
#include <iterator>

#include <ashlar/base/mix.h>

namespace ashlar::inline v0::plan::solve {
namespace {

/// What an item's rank depends on, in 1/1024: its width in sections, its length in time, its height,
/// and a random number.
struct Weights {
  std::int64_t width, length, height, noise;
  bool picks_best, is_backwards;
};
// Measured: the first is best for large graphs. The others are good for small ones and were chosen
// because they find different plans.
constexpr Weights kFixedWeights[] = {{0, 512, 512, 0, true, false},  {0, 512, 512, 0, false, true},
                                     {0, 0, 1024, 0, false, true},   {512, 0, 512, 0, false, false},
                                     {512, 0, 512, 0, true, false},  {324, 0, 700, 0, false, true},
                                     {860, 0, 164, 0, false, false}, {1024, 0, 0, 0, true, false}};
static_assert(std::size(kFixedWeights) == kFixedFillOrders);

Weights draw_weights(std::uint64_t attempt) {
  const std::uint64_t word = mix(~attempt);
  const auto draw = [word](int shift, std::int64_t most) {
    return static_cast<std::int64_t>(word >> shift & 0xffff) * most >> 16;
  };
  const std::int64_t height = draw(0, 1025), width = draw(16, 1025 - height);
  return {width, 1024 - height - width, height, 64 + draw(32, 512), true, word >> 63 != 0};
}

std::uint64_t length_of(const Items& items, const Item& item) {
  const auto at = [&](Section s) { return static_cast<std::uint64_t>(items.moment[s]); };
  const std::uint64_t end = item.last == items.sections() ? at(item.last - 1) + 1 : at(item.last);
  return end - at(item.first);
}

/// A random number from -1024 to 1024, by attempt and item.
std::int64_t jitter(std::uint64_t attempt, ItemIndex item) {
  return static_cast<std::int64_t>(mix(attempt << 32 | item) % 2049) - 1024;
}

}  // namespace

std::int32_t log2_fixed(std::uint64_t value) {
  const int whole = static_cast<int>(std::bit_width(value)) - 1;
  const std::uint64_t fraction = whole >= 10 ? value >> (whole - 10) : value << (10 - whole);
  return whole * 1024 + static_cast<std::int32_t>(fraction & 1023);
}

std::uint64_t luby(std::uint64_t k) {
  for (;;) {
    const std::uint64_t whole = std::bit_floor(k + 1);
    if (whole == k + 1) return whole / 2;
    k -= whole - 1;
  }
}

std::vector<std::int32_t> search_ranks(const Items& items, std::uint64_t attempt,
                                       const std::vector<std::uint64_t>& blames) {
  std::vector<std::int32_t> ranks(items.size());
  const std::uint64_t word = mix(attempt);
  std::int64_t wide = static_cast<std::int64_t>(word % 1025),
               noise = static_cast<std::int64_t>(mix(~attempt) % 1024);
  if ((word >> 62 & 1) != 0) wide = wide * 3 / 10;
  if (attempt == 1) wide = 1024;
  if (attempt == 2) wide = 0;
  if (attempt == 3) wide = 512;
  if (attempt <= 3) noise = 0;
  const bool looks_at_blames = attempt > 3 && !blames.empty() && word >> 63 != 0;
  for (ItemIndex i = 0; i < items.size(); ++i) {
    const Item& item = items.items[i];
    ranks[i] = static_cast<std::int32_t>(
        (wide * log2_fixed(item.last - item.first) +
         (1024 - wide) * log2_fixed(static_cast<std::uint64_t>(item.height)) +
         noise * jitter(attempt, i)) /
        1024);
    if (looks_at_blames) ranks[i] += log2_fixed(1 + blames[i]);
  }
  return ranks;
}

FillOrder fill_order(const Items& items, std::uint64_t attempt) {
  const Weights weights =
      attempt < kFixedFillOrders ? kFixedWeights[attempt] : draw_weights(attempt);
  FillOrder order{weights.picks_best, weights.is_backwards,
                  std::vector<std::int32_t>(items.size())};
  for (ItemIndex i = 0; i < items.size(); ++i) {
    const Item& item = items.items[i];
    std::int64_t rank = weights.height * log2_fixed(static_cast<std::uint64_t>(item.height));
    if (weights.width != 0) rank += weights.width * log2_fixed(item.last - item.first);
    if (weights.length != 0) rank += weights.length * log2_fixed(length_of(items, item));
    if (weights.noise != 0) rank += weights.noise * jitter(attempt, i);
    order.ranks[i] = static_cast<std::int32_t>(rank / 32);
  }
  return order;
}

}  // namespace ashlar::inline v0::plan::solve
