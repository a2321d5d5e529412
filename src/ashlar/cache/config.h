// The allocator's settings and their string form, ASHLAR_ALLOC_CONF.
//
// Purpose: PyTorch's keys with PyTorch's meaning (row DEV-22), so that a setting that works there
// works here; and our own. The string is `key:value,key:value`. An unknown key, a bad value, or a
// known key whose feature is not built is an error that names it (bug: silently ignored settings).
// Thread safety: plain values.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <ashlar/base/export.h>
#include <ashlar/base/status.h>
#include <ashlar/base/types.h>

namespace ashlar::inline v0::cache {

/// When may a stream be given memory that another stream's heap holds idle?
enum class Reuse : std::uint8_t {
  kOwn,        ///< never
  kCompleted,  ///< when its last use is already complete; nothing is enqueued (default)
  /// also behind a wait of the asking stream on the owner's event; can deadlock behind a collective
  kOrdered,
};

struct Config {
  // Rows DEV-1..4 (the constants are PyTorch's).
  Bytes granule{512};              ///< requests are rounded to this
  Bytes small_request_max{1_MiB};  ///< requests up to this live in the small pool
  Bytes small_segment{2_MiB};      ///< the small pool's segments
  /// requests under this (and over small_request_max) are cut from large_segment
  Bytes large_request_min{10_MiB};
  Bytes large_segment{20_MiB};
  /// larger requests get a segment of their size rounded up to this
  Bytes segment_round{2_MiB};
  /// blocks of this size or more are never split (max_split_size_mb)
  Bytes max_split_size{Bytes::max()};
  /// slack allowed to a request of max_split_size or more
  Bytes max_non_split_rounding{20_MiB};
  /// roundup_power2_divisions: per power of two 1 MiB << i (i = 0..15; the first also for anything
  /// smaller, the last for anything larger), how many equal steps it has; 0 or 1 = plain rounding
  /// to the granule.
  std::array<std::uint32_t, 16> roundup_divisions{};
  /// per_process_memory_fraction: cap on what is reserved on a device, as a part of its total; 1 =
  /// no cap.
  double memory_fraction = 1.0;
  // Ours.
  Reuse reuse = Reuse::kCompleted;
  /// How long an allocation at the limit may wait for a pending free: 0 = never, kWaitForever = as
  /// long as it takes.
  std::uint32_t wait_ms = 1000;
};

/// Parses `text` over the defaults. On failure: kMalformed or kUnsupported, and `*error` (if given)
/// says which key or value and why, in one line. Cost: linear.
ASHLAR_API Result<Config> parse_config(std::string_view text, std::string* error);

/// parse_config of the environment variable ASHLAR_ALLOC_CONF; the defaults when it is not set.
ASHLAR_API Result<Config> config_from_environment(std::string* error);

/// Is every field in its range, and the set consistent? kInvalidArgument names the first that is
/// not.
ASHLAR_API Status check_config(const Config& config);

}  // namespace ashlar::inline v0::cache
