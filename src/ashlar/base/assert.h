// The three kinds of check.
//
// Purpose: one macro for each kind.
//
//   ASHLAR_REQUIRE(condition, code, why)
//       A caller's misuse. Always on; returns a typed Status from the enclosing function.
//   ASHLAR_ASSERT(condition, why)
//       A bug in the library. On in every build but release (ASHLAR_ASSERTIONS); aborts.
//   ASHLAR_VALIDATE(structure)
//       A walk over the whole structure, structure.validate(). On in fuzz and property builds
//       (ASHLAR_VALIDATION); aborts with the text of the broken invariant.
//
// `why` begins with the clause or numbered invariant that the check keeps ("C3: ..."). A condition
// has no side effects.
// Thread safety: usable from any thread.
#pragma once

#include <cstdio>
#include <cstdlib>

#include <ashlar/base/language.h>

#ifndef ASHLAR_ASSERTIONS
#ifdef NDEBUG
#define ASHLAR_ASSERTIONS 0
#else
#define ASHLAR_ASSERTIONS 1
#endif
#endif
#ifndef ASHLAR_VALIDATION
#define ASHLAR_VALIDATION 0
#endif

namespace ashlar::inline v0 {

/// Prints `file:line: why` on stderr and aborts. Never returns.
[[noreturn]] inline void assertion_failed(const char* file, int line, const char* why) noexcept {
  std::fprintf(stderr, "%s:%d: ashlar assertion failed: %s\n", file, line, why);
  std::abort();
}

}  // namespace ashlar::inline v0

#if ASHLAR_ASSERTIONS
#define ASHLAR_ASSERT(condition, why) \
  ((condition) ? static_cast<void>(0) : ::ashlar::assertion_failed(__FILE__, __LINE__, (why)))
#else
// The condition is not evaluated, but the names in it count as used, so that the compiler does not
// warn of unused variables. As a type it leaves no region in a coverage report either.
#define ASHLAR_ASSERT(condition, why) \
  static_cast<void>(static_cast<decltype(static_cast<bool>(condition))*>(nullptr))
#endif

#if ASHLAR_VALIDATION
// validate() returns nullptr, or the text of the broken invariant.
#define ASHLAR_VALIDATE(structure)                            \
  do {                                                        \
    if (const char* broken = (structure).validate())          \
      ::ashlar::assertion_failed(__FILE__, __LINE__, broken); \
  } while (false)
#else
#define ASHLAR_VALIDATE(structure) static_cast<void>(0)
#endif

#define ASHLAR_REQUIRE(condition, code, why)  \
  do {                                        \
    if (!(condition)) [[unlikely]]            \
      return ::ashlar::Status{(code), (why)}; \
  } while (false)
