// The switches of the tree of ci/bugs: which planted bug is on is chosen when a program starts, so that one build holds all.
//
// Purpose: ci/bugs writes `::ashlar_bug("NAME")` where a .bug file says BUG. ASHLAR_BUG=NAME in the environment turns that one
// on; unset, the program is the unchanged one. With ASHLAR_BUG_ASSERTIONS=0 a broken assertion is passed over, as in a release
// build. A constant expression cannot read the environment: there the macro ASHLAR_BUG_COMPILED chooses. So
// `const bool b = BUG && f();` is a constant and never on; write `bool b = false; if (BUG) b = f();`.
// Thread safety: both variables are read once, during static initialisation.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <type_traits>

namespace ashlar_bugs {

/// FNV-1a.
constexpr std::uint64_t hash_of(const char* text) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (; *text != '\0'; ++text) hash = (hash ^ static_cast<unsigned char>(*text)) * 0x100000001b3u;
  return hash;
}

inline std::uint64_t selected_at_start() noexcept {
  const char* const name = std::getenv("ASHLAR_BUG");
  return name == nullptr ? 0 : hash_of(name);
}

inline bool passes_assertions_at_start() noexcept {
  const char* const text = std::getenv("ASHLAR_BUG_ASSERTIONS");
  return text != nullptr && *text == '0';
}

inline const std::uint64_t selected = selected_at_start();
inline const bool passes_assertions = passes_assertions_at_start();

/// A bug's name, hashed by the compiler.
struct Name {
  consteval Name(const char* text) : hash(hash_of(text)) {}
  std::uint64_t hash;
};

#ifdef ASHLAR_BUG_COMPILED
inline constexpr std::uint64_t compiled = hash_of(ASHLAR_BUG_COMPILED);
#else
inline constexpr std::uint64_t compiled = 0;
#endif

}  // namespace ashlar_bugs

/// True if that bug is on.
constexpr bool ashlar_bug(ashlar_bugs::Name name) noexcept {
  if (std::is_constant_evaluated()) return ashlar_bugs::compiled == name.hash;
  return ashlar_bugs::selected == name.hash;
}
