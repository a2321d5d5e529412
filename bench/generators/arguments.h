// Numbers on the generators' command lines.
//
// Thread safety: pure function.
#pragma once

#include <charconv>
#include <string_view>

namespace ashlar::bench {

/// False for anything but one whole number that fits.
template <class Number>
bool parse_number(std::string_view text, Number* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace ashlar::bench
