// Texts joined from parts, for reports that a good run never makes.
//
// A reporter takes the parts, not their text: a string built inside a checker would be in the
// checker's frame, and a sanitizer lays out and clears every frame at every call.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ashlar::spec {

inline void append(std::string* text, std::string_view part) { *text += part; }
inline void append(std::string* text, std::uint64_t n) { *text += std::to_string(n); }

/// Each part is a text, a number, or of a type that has its own append().
template <class... Parts>
std::string joined(const Parts&... parts) {
  std::string text;
  (append(&text, parts), ...);
  return text;
}

}  // namespace ashlar::spec
