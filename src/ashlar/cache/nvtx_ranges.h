// The slow paths of the allocator as ranges that profilers show (NVTX, the domain "ashlar").
//
// Purpose: where an allocation is slow, a profile says why: the range of the miss contains what it did, a growth, a
// wait, a reclaim, with the bytes that were asked for as its payload. Only slow paths have ranges: a hit and a plain
// free have none.
// Thread safety: any thread; a range begins and ends on one thread, inside those that it has open. Called with no
// spin lock held, since a profiler runs then.
// Cost: without a profiler a few nanoseconds; where the library is built without ASHLAR_NVTX, an empty call.
#pragma once

#include <cstdint>

#include <ashlar/base/types.h>

namespace ashlar::inline v0::cache {

/// What a range is of.
enum class SlowPath : std::uint8_t {
  kMiss,      ///< an allocation that its heap's free blocks did not serve; bytes as requested
  kGrow,      ///< memory is asked of the driver; the bytes that it is asked for
  kReclaim,   ///< everything is searched, and idle memory goes back; bytes as rounded
  kWait,      ///< for work that uses freed memory
  kTrim,      ///< CachingAllocator::trim()
  kGiveBack,  ///< without a cache: what is done goes back
};
inline constexpr unsigned kSlowPaths = 6;

/// The name that the range has in a profile.
const char* slow_path_name(SlowPath path) noexcept;

/// A range, for as long as it lives.
class NvtxRange {
 public:
  explicit NvtxRange(SlowPath path, Bytes size = {}) noexcept;
  // NOLINTNEXTLINE(performance-trivially-destructible): it ends the range where the library is built with ASHLAR_NVTX
  ~NvtxRange();
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;
};

/// A mark where an allocation failed for want of memory, with the bytes that were requested.
void mark_out_of_memory(Bytes requested) noexcept;

}  // namespace ashlar::inline v0::cache
