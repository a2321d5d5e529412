// Checked arithmetic for numbers that come from a caller.
//
// Purpose: a size that would wrap is an error (C16; bugs H24, H25); it never becomes a small number.
// Thread safety: pure functions. Cost: one compare each.
#pragma once

#include <optional>

#include <ashlar/base/types.h>

namespace ashlar::inline v0 {

/// a + b; std::nullopt if the sum would wrap.
constexpr std::optional<Bytes> checked_add(Bytes a, Bytes b) {
  if (a.count() > Bytes::max().count() - b.count()) return std::nullopt;
  return Bytes{a.count() + b.count()};
}

/// a * k; std::nullopt if the product would wrap.
constexpr std::optional<Bytes> checked_multiply(Bytes a, std::uint64_t k) {
  if (k != 0 && a.count() > Bytes::max().count() / k) return std::nullopt;
  return Bytes{a.count() * k};
}

constexpr bool is_power_of_two(std::uint64_t n) { return n != 0 && (n & (n - 1)) == 0; }

/// The smallest multiple of `unit` that is at least `a`; std::nullopt if it would wrap.
/// REQUIRES: unit > 0.
constexpr std::optional<Bytes> checked_round_up(Bytes a, Bytes unit) {
  const std::uint64_t remainder = a % unit;
  if (remainder == 0) return a;
  return checked_add(a, Bytes{unit.count() - remainder});
}

/// The smallest multiple of `unit` that is at least `a`.
/// REQUIRES: unit is a power of two; the result does not wrap.
constexpr Bytes round_up(Bytes a, Bytes unit) {
  ASHLAR_ASSERT(is_power_of_two(unit.count()) && a.count() + (unit.count() - 1) >= a.count(),
                "base(1): round_up wrapped");
  return Bytes{(a.count() + (unit.count() - 1)) & ~(unit.count() - 1)};
}

/// The largest multiple of `unit` that is at most `a`. REQUIRES: unit > 0.
constexpr Bytes round_down(Bytes a, Bytes unit) { return Bytes{a.count() - a % unit}; }

}  // namespace ashlar::inline v0
