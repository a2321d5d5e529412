// The judge's own reading of a configuration string (row DEV-22).
//
// Purpose: the rules that a subject is judged by come from the text that it was given, not from what
// it made of the text; a parser's mistake then shows in every call that depends on the setting, and
// at once where the subject takes a bad text or refuses a good one.
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <ashlar/cache/config.h>

namespace ashlar::spec {

/// The longest text that is judged: the reading recurses for each byte.
inline constexpr std::size_t kSettingsTextMax = 1000;

/// A page of the map from addresses to segments. No segment may be shorter.
inline constexpr std::uint64_t kPageBytes = std::uint64_t{2} << 20;

/// The settings that a text of at most kSettingsTextMax bytes asks for; std::nullopt if the text
/// must be refused.
std::optional<cache::Config> read_settings(const std::string& text);

/// The settings with segments or pages chosen, as an allocator on a device with virtual memory obeys them.
cache::Config obeyed_settings(cache::Config config);

/// Compares what a subject made of the text with what the text asks for: nullptr, or the name of
/// the first field that differs.
const char* differing_field(const cache::Config& subject, const cache::Config& asked);

}  // namespace ashlar::spec
