#include <ashlar/plan/orders.h>

#include <bit>

#include <ashlar/plan/mix.h>

namespace ashlar {
inline namespace v0 {
namespace plan {

std::int32_t log2_fixed(std::uint64_t value) {
  const int whole = static_cast<int>(std::bit_width(value)) - 1;
  const std::uint64_t fraction = whole >= 10 ? value >> (whole - 10) : value << (10 - whole);
  return whole * 1024 + static_cast<std::int32_t>(fraction & 1023);  // linear between powers of two
}

std::uint64_t luby(std::uint64_t k) {
  for (;;) {
    const std::uint64_t whole = std::bit_floor(k + 1);
    if (whole == k + 1) return whole / 2;
    k -= whole - 1;
  }
}

std::vector<std::int32_t> order_of(const Items& items, std::uint64_t attempt) {
  std::vector<std::int32_t> order(items.size());
  std::int64_t wide = static_cast<std::int64_t>(mix(attempt) % 1025), noise = static_cast<std::int64_t>(mix(~attempt) % 1024);
  if (attempt == 1) wide = 1024;
  if (attempt == 2) wide = 0;
  if (attempt == 3) wide = 512;
  if (attempt <= 3) noise = 0;
  for (ItemIndex i = 0; i < items.size(); ++i) {
    const Item& item = items.items[i];
    const std::int64_t jitter = static_cast<std::int64_t>(mix(attempt << 32 | i) % 2049) - 1024;
    order[i] = static_cast<std::int32_t>((wide * log2_fixed(item.last - item.first) +
                                          (1024 - wide) * log2_fixed(static_cast<std::uint64_t>(item.height)) + noise * jitter) / 1024);
  }
  return order;
}

}  // namespace plan
}  // namespace v0
}  // namespace ashlar
