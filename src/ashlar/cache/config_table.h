// The table behind the configuration string: each key with its documentation and its value's parser.
//
// Thread safety: constants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <ashlar/cache/config.h>

namespace ashlar::inline v0::cache {

/// A setting's parser: nullptr, or why the value is bad (static text).
using SetValue = const char* (*)(std::string_view value, Config* config);

/// The value of a key that turns its feature off. Of a feature that is not built it is the one value
/// that can be obeyed.
enum class Off : std::uint8_t { kNone, kFalse, kZero, kOne };

struct ConfigRow {
  ConfigKey key;
  SetValue set;  ///< null: PyTorch knows it, and what it turns on is not built here
  Off off = Off::kNone;
};

inline constexpr std::size_t kConfigKeys = 38;

/// Every key, in the order of their names: kConfigKeys rows.
std::span<const ConfigRow> config_rows() noexcept;

/// Two keys for one setting, PyTorch's and Ashlar's: a text has one of them at most.
struct KeyPair {
  std::string_view of_pytorch;
  std::string_view own;
};
inline constexpr KeyPair kKeyPairs[] = {{"expandable_segments", "backing"},
                                        {"large_segment_size_mb", "large_segment_mb"}};

/// The text without the spaces at its ends.
inline std::string_view trimmed_setting(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// Takes the first `key:value` from the text: up to a comma that stands in no brackets. What is left
/// has no space at its ends.
inline std::string_view take_setting(std::string_view* text) {
  bool is_bracketed = false;
  std::size_t length = 0;
  for (; length < text->size(); ++length) {
    const char c = (*text)[length];
    if (c == '[' || c == ']') is_bracketed = c == '[';
    if (c == ',' && !is_bracketed) break;
  }
  const std::string_view setting = text->substr(0, length);
  text->remove_prefix(length < text->size() ? length + 1 : length);
  *text = trimmed_setting(*text);
  return trimmed_setting(setting);
}

}  // namespace ashlar::inline v0::cache
