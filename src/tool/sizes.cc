#include "src/tool/sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include <ashlar/base/checked.h>

namespace ashlar::tool {
namespace {

constexpr std::string_view kUnits = "KMGTPE";

/// The bytes of a unit; nothing if it is none.
std::optional<std::uint64_t> bytes_of_unit(std::string_view unit) {
  if (unit == "B") return 1;
  if (unit == "kB") return 1000;
  if (unit.empty()) return std::nullopt;
  const std::size_t power = kUnits.find(unit.front());
  if (power == std::string_view::npos) return std::nullopt;
  unit.remove_prefix(1);
  if (unit.empty() || unit == "iB") return std::uint64_t{1024} << (10 * power);
  if (unit != "B") return std::nullopt;
  std::uint64_t bytes = 1000;
  for (std::size_t i = 0; i < power; ++i) bytes *= 1000;
  return bytes;
}

/// Takes a point and the digits behind it from the front of `*text`. False if there is no digit, or
/// are more than nine.
bool take_decimals(std::string_view* text, std::string_view* digits) {
  constexpr std::size_t kDecimalsMax = 9;
  text->remove_prefix(1);
  const std::size_t length = std::min(text->find_first_not_of("0123456789"), text->size());
  *digits = text->substr(0, length);
  text->remove_prefix(length);
  return length > 0 && length <= kDecimalsMax;
}

}  // namespace

std::optional<Bytes> parse_size(std::string_view text) {
  std::uint64_t number = 0;
  const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || failure != std::errc{}) return std::nullopt;
  std::string_view unit = text.substr(static_cast<std::size_t>(stop - text.data()));
  if (unit.empty()) return Bytes{number};
  std::string_view decimals;
  if (unit.front() == '.' && !take_decimals(&unit, &decimals)) return std::nullopt;
  const auto bytes = bytes_of_unit(unit);
  if (!bytes) return std::nullopt;
  // bytes * part / scale, in two summands because the product may need more than 64 bits.
  std::uint64_t part = 0, scale = 1;
  for (const char digit : decimals) {
    part = part * 10 + static_cast<std::uint64_t>(digit - '0');
    scale *= 10;
  }
  const std::uint64_t part_bytes = *bytes / scale * part + *bytes % scale * part / scale;
  const auto whole = checked_multiply(Bytes{*bytes}, number);
  return whole ? checked_add(*whole, Bytes{part_bytes}) : std::nullopt;
}

std::string size_text(Bytes size) {
  if (size < 1_KiB) return fmt::format("{} B", size.count());
  double value = static_cast<double>(size.count());
  std::size_t power = 0;
  for (value /= 1024; value >= 1024; value /= 1024) ++power;
  const int decimals = value >= 1000 ? 0 : value >= 100 ? 1 : value >= 10 ? 2 : 3;
  return fmt::format("{:.{}f} {}iB", value, decimals, kUnits[power]);
}

}  // namespace ashlar::tool
