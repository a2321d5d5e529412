// What makes a Config consistent.
//
// Thread safety: a pure function.
#include <ashlar/base/checked.h>
#include <ashlar/cache/config.h>
#include <ashlar/cache/config_limits.h>
#include <ashlar/cache/page_map.h>

namespace ashlar::inline v0::cache {
namespace {

constexpr Bytes kGranuleMin{16};
constexpr Bytes kGranuleMax = 64_KiB;

bool is_first_growth(Bytes size) {
  return size == 0_B || (size >= kSegmentBytesMin && size <= kFirstGrowthMax);
}

/// The settings of heaps of pages.
Status check_pages(const Config& c) {
  constexpr Code kBad = Code::kInvalidArgument;
  const bool is_native = c.backend == AllocatorBackend::kNative;
  const bool caches = c.caches && is_native;
  ASHLAR_REQUIRE(is_native || c.backing != Backing::kPages, kBad,
                 "backing:pages: not with backend:cudaMallocAsync, whose memory has no pages");
  ASHLAR_REQUIRE(caches || c.backing != Backing::kPages, kBad,
                 "backing:pages: not with cache:off, whose memory comes in segments");
  const bool has_segments = !caches || c.backing == Backing::kSegments ||
                            (c.backing == Backing::kAuto && c.max_split_size != Bytes::max());
  ASHLAR_REQUIRE(
      !has_segments || c.move != Move::kEager, kBad,
      "move: eager moves pages, but backing:segments, max_split_size_mb or cache:off means none");
  ASHLAR_REQUIRE(!has_segments || c.first_growth == Bytes{}, kBad,
                 "first_growth_mb: comes before pages, but backing:segments, max_split_size_mb or "
                 "cache:off means none");
  ASHLAR_REQUIRE(!has_segments || c.page_handles_max == 0, kBad,
                 "page_handles_max: limits pages, but backing:segments, max_split_size_mb or "
                 "cache:off means none");
  // The free memory of a paged segment is one block and soon longer than any such limit.
  ASHLAR_REQUIRE(c.backing != Backing::kPages || c.max_split_size == Bytes::max(), kBad,
                 "max_split_size_mb: not with backing:pages, whose free blocks are of any size");
  ASHLAR_REQUIRE(is_first_growth(c.first_growth), kBad,
                 "first_growth_mb: must be 0, or from 2 to 512");
  ASHLAR_REQUIRE(c.place_context >= 1 && c.place_context <= kPlaceContextMax, kBad,
                 "place_context: must be from 1 to 64");
  return Status::ok();
}

}  // namespace

Status check_config(const Config& c) {
  constexpr Code kBad = Code::kInvalidArgument;
  const auto is_size = [&c](Bytes size) {
    return size > 0_B && size <= kConfigBytesMax && size % c.granule == 0;
  };
  ASHLAR_REQUIRE(
      is_power_of_two(c.granule.count()) && c.granule >= kGranuleMin && c.granule <= kGranuleMax,
      kBad, "granule: must be a power of two from 16 to 65536");
  ASHLAR_REQUIRE(is_size(c.small_request_max), kBad,
                 "small_request_kb: must be a positive multiple of the granule");
  ASHLAR_REQUIRE(is_size(c.small_segment), kBad,
                 "small_segment_mb: must be a positive multiple of the granule");
  ASHLAR_REQUIRE(is_size(c.large_request_min), kBad,
                 "large_request_mb: must be a positive multiple of the granule");
  ASHLAR_REQUIRE(is_size(c.large_segment), kBad,
                 "large_segment_mb: must be a positive multiple of the granule");
  ASHLAR_REQUIRE(is_size(c.segment_round), kBad,
                 "round_segment_mb: must be a positive multiple of the granule");
  // The page map has room for two segments a page, so none may be shorter than a page.
  ASHLAR_REQUIRE(c.small_segment >= kSegmentBytesMin, kBad,
                 "small_segment_mb: must be at least 2 MiB");
  ASHLAR_REQUIRE(c.large_segment >= kSegmentBytesMin, kBad,
                 "large_segment_mb: must be at least 2 MiB");
  ASHLAR_REQUIRE(c.segment_round >= kSegmentBytesMin, kBad,
                 "round_segment_mb: must be at least 2 MiB");
  ASHLAR_REQUIRE(c.small_request_max <= c.small_segment, kBad,
                 "small_request_kb: must fit into small_segment_mb");
  ASHLAR_REQUIRE(c.large_request_min >= c.small_request_max, kBad,
                 "large_request_mb: must not be below small_request_kb");
  ASHLAR_REQUIRE(c.large_request_min <= c.large_segment, kBad,
                 "large_request_mb: must fit into large_segment_mb");
  ASHLAR_REQUIRE(c.max_split_size == Bytes::max() || c.max_split_size > c.large_segment, kBad,
                 "max_split_size_mb: must be more than large_segment_mb, which is 20 unless set");
  // The free block of a small segment would be too large for every small request (fit_end).
  ASHLAR_REQUIRE(c.max_split_size == Bytes::max() || c.max_split_size > c.small_segment, kBad,
                 "max_split_size_mb: must be more than small_segment_mb");
  ASHLAR_REQUIRE(
      c.max_non_split_rounding >= c.large_segment && c.max_non_split_rounding <= kConfigBytesMax,
      kBad, "max_non_split_rounding_mb: must be at least large_segment_mb, which is 20 unless set");
  for (const std::uint32_t divisions : c.roundup_divisions) {
    ASHLAR_REQUIRE(
        divisions == 0 || (is_power_of_two(divisions) && divisions <= kRoundupDivisionsMax), kBad,
        "roundup_power2_divisions: must be 0 or a power of two up to 1024");
  }
  ASHLAR_REQUIRE(c.memory_fraction > 0 && c.memory_fraction <= 1, kBad,
                 "per_process_memory_fraction: must be in (0, 1]");
  ASHLAR_REQUIRE(c.collection_threshold >= 0 && c.collection_threshold < 1, kBad,
                 "garbage_collection_threshold: must be in [0, 1)");
  ASHLAR_REQUIRE(c.caches || c.backend == AllocatorBackend::kNative, kBad,
                 "cache:off: not with backend:cudaMallocAsync, whose pool keeps freed memory");
  if (const Status pages = check_pages(c); !pages.is_ok()) return pages;
  ASHLAR_REQUIRE(c.headroom <= kConfigBytesMax, kBad, "headroom_mb: must be at most 1 PiB");
  ASHLAR_REQUIRE(
      c.reuse == Reuse::kOwn || c.reuse == Reuse::kCompleted || c.reuse == Reuse::kOrdered, kBad,
      "reuse: must be own, completed or ordered");
  return Status::ok();
}

}  // namespace ashlar::inline v0::cache
