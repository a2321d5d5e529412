// Sizes: what a request is rounded to, which pool it lives in, which blocks may serve it, what
// segment it grows by.
//
// Purpose: rows DEV-1..4, and the sizes of DEV-22's mode without a cache, as pure functions, so that the reasons stand in one place.
// Thread safety: pure functions.
#pragma once

#include <algorithm>
#include <bit>
#include <optional>

#include <ashlar/base/checked.h>
#include <ashlar/base/pool_id.h>
#include <ashlar/cache/config.h>
#include <ashlar/cache/page_map.h>

namespace ashlar::inline v0::cache {

/// The equal steps of the request's power of two (row DEV-1); 0 or 1 = none.
inline std::uint32_t roundup_divisions(const Config& config, Bytes size) {
  const auto log2 = static_cast<int>(std::bit_width(size.count())) - 1;
  const int index = log2 <= 20 ? 0 : (log2 >= 35 ? 15 : log2 - 20);
  return config.roundup_divisions[static_cast<unsigned>(index)];
}

/// What a request of `size` bytes takes from a pool: a multiple of the granule, at least `size`.
/// Nothing if that would wrap (bug H24). REQUIRES: size > 0.
inline std::optional<Bytes> rounded_size(const Config& config, Bytes size) {
  const std::uint64_t steps = config.caches ? roundup_divisions(config, size) : 0;
  if (steps > 1 && size.count() / steps >= config.granule.count()) {
    // The next of `steps` equal divisions between this power of two and the next; each is a
    // multiple of the granule.
    const Bytes step{std::bit_floor(size.count()) >> std::countr_zero(steps)};
    return checked_round_up(size, step);
  }
  return checked_round_up(size, config.granule);
}

/// Row DEV-2: the pool in which a rounded size lives.
inline PoolId pool_of(const Config& config, Bytes size) {
  return size <= config.small_request_max ? PoolId::kSmall : PoolId::kLarge;
}

/// Row DEV-2: the segment to ask the driver for. Nothing if rounding would wrap. A request under
/// max_split_size gets a segment under it: its own free block would be too large for it otherwise
/// (fit_end), and each repetition would take new memory. No segment is shorter than the page map's
/// page: the page would have room for two of them only. Without a cache it is the request's own size.
inline std::optional<Bytes> segment_size(const Config& config, Bytes size) {
  if (!config.caches) return size;
  if (pool_of(config, size) == PoolId::kSmall) return config.small_segment;
  if (size < config.large_request_min) return config.large_segment;
  const std::optional<Bytes> rounded = checked_round_up(size, config.segment_round);
  const bool is_over = rounded && *rounded >= config.max_split_size && size < config.max_split_size;
  return is_over ? std::max(size, kSegmentBytesMin) : rounded;
}

/// Row DEV-3: blocks of this size or more may not serve the request. REQUIRES: Config::caches.
inline Bytes cached_fit_end(const Config& config, Bytes size) {
  if (size < config.max_split_size) return config.max_split_size;
  return checked_add(size, config.max_non_split_rounding).value_or(Bytes::max());
}

/// The same of every configuration: without a cache no block may.
inline Bytes fit_end(const Config& config, Bytes size) {
  return config.caches ? cached_fit_end(config, size) : size;
}

/// Row DEV-4: is a block of `block` bytes split when it serves `size`?
inline bool should_split(const Config& config, Bytes size, Bytes block) {
  const Bytes rest = block - size;
  if (pool_of(config, size) == PoolId::kSmall || config.backing == Backing::kPages)
    return rest >= config.granule;
  return size < config.max_split_size && rest > config.small_request_max;
}

}  // namespace ashlar::inline v0::cache
