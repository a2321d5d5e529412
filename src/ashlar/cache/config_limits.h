// The largest values of settings: those that the parser of the configuration string and check_config()
// both hold them to.
//
// Thread safety: constants.
#pragma once

#include <cstdint>

#include <ashlar/base/types.h>

namespace ashlar::inline v0::cache {

/// The largest configured size, 1 PiB: a sum of a few cannot wrap.
inline constexpr Bytes kConfigBytesMax{std::uint64_t{1} << 50};
inline constexpr std::uint32_t kRoundupDivisionsMax = 1024;
inline constexpr Bytes kFirstGrowthMax{std::uint64_t{512} << 20};
/// A context is known only once that many requests were made.
inline constexpr std::uint32_t kPlaceContextMax = 64;

}  // namespace ashlar::inline v0::cache
