// Which sanitizers a suite is built with. Under them everything takes ten times as long, so suites whose runs are long do less.
//
// Thread safety: constants.
#pragma once

namespace ashlar::props {

#if defined(__has_feature)
#define ASHLAR_HAS_FEATURE(name) __has_feature(name)
#else
#define ASHLAR_HAS_FEATURE(name) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || ASHLAR_HAS_FEATURE(address_sanitizer)
inline constexpr bool kHasAddressSanitizer = true;
#else
inline constexpr bool kHasAddressSanitizer = false;
#endif
#if defined(__SANITIZE_THREAD__) || ASHLAR_HAS_FEATURE(thread_sanitizer)
inline constexpr bool kHasThreadSanitizer = true;
#else
inline constexpr bool kHasThreadSanitizer = false;
#endif
#undef ASHLAR_HAS_FEATURE

inline constexpr bool kIsSanitized = kHasAddressSanitizer || kHasThreadSanitizer;

}  // namespace ashlar::props
