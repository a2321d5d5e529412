#include "src/tool/sizes.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include <ashlar/base/checked.h>

namespace ashlar::tool {
namespace {

constexpr std::string_view kUnits = "KMGTPE";

}  // namespace

std::optional<Bytes> parse_size(std::string_view text) {
  std::uint64_t number = 0;
  const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || failure != std::errc{}) return std::nullopt;
  std::string_view unit = text.substr(static_cast<std::size_t>(stop - text.data()));
  if (unit.empty()) return Bytes{number};
  const std::size_t power = kUnits.find(unit.front());
  unit.remove_prefix(1);
  if (power == std::string_view::npos || (!unit.empty() && unit != "iB")) return std::nullopt;
  return checked_multiply(Bytes{std::uint64_t{1024} << (10 * power)}, number);
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
