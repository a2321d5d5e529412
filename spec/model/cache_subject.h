// CacheSubject: a stream-ordered caching allocator as the specification sees it.
//
// Purpose: spec/ names what it drives by this interface; adapters live in props/. Everything here
// is plain data, or a type of base/ and device/.
// Thread safety: as the subject's; the lockstep driver calls from one thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <ashlar/base/status.h>
#include <ashlar/base/types.h>
#include <ashlar/device/device.h>

namespace ashlar::spec {

/// May a stream take what another stream's heap holds idle? never / once complete / also behind a
/// wait on the device.
enum class CacheReuse : std::uint8_t { kOwn, kCompleted, kOrdered };

/// The settings a model needs to judge by: rows DEV-1..4, 12 and ours. Sizes in bytes.
struct CacheSettings {
  std::uint64_t granule = 512;
  std::uint64_t small_request_max = 1u << 20;
  std::uint64_t small_segment = 2u << 20;
  std::uint64_t large_request_min = 10u << 20;
  std::uint64_t large_segment = 20u << 20;
  std::uint64_t segment_round = 2u << 20;
  std::uint64_t max_split_size = ~std::uint64_t{0};
  std::uint64_t max_non_split_rounding = 20u << 20;
  std::array<std::uint32_t, 16> roundup_divisions{};
  double memory_fraction = 1.0;
  CacheReuse reuse = CacheReuse::kCompleted;
  std::uint32_t wait_ms = 1000;
};

/// As wide as it is so that a block has no padding: whole runs of them are compared as bytes.
enum class CacheState : std::uint32_t { kFree, kLive, kPending, kInTransfer };

struct CacheBlock {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint64_t requested = 0;
  std::uint64_t stream = 0;  ///< identity
  std::uint32_t other_uses = 0;
  CacheState state = CacheState::kFree;
};
static_assert(std::has_unique_object_representations_v<CacheBlock>);

struct CacheSegment {
  std::uint64_t base = 0;
  std::uint64_t size = 0;
  std::uint64_t stream = 0;  ///< identity of the heap's stream
  std::uint64_t ordinal = 0;
  std::uint32_t block_first = 0;
  std::uint32_t block_count = 0;
  bool is_small = false;
};

/// The segment that holds the address, or nullptr. REQUIRES: segments by address, as a snapshot has
/// them.
inline const CacheSegment* find_segment(const std::vector<CacheSegment>& segments,
                                        std::uint64_t address) {
  const auto after = std::upper_bound(
      segments.begin(), segments.end(), address,
      [](std::uint64_t a, const CacheSegment& segment) { return a < segment.base; });
  if (after == segments.begin()) return nullptr;
  const CacheSegment& segment = *std::prev(after);
  return address - segment.base < segment.size ? &segment : nullptr;
}

struct CacheSnapshot {
  std::vector<CacheSegment> segments;
  std::vector<CacheBlock> blocks;
};

struct CacheStat {
  std::uint64_t current = 0;
  std::uint64_t peak = 0;
  std::uint64_t increased = 0;
  std::uint64_t decreased = 0;
  friend bool operator==(const CacheStat&, const CacheStat&) = default;
};

/// The statistics that exist for all / small / large.
enum class CacheFigure : std::uint8_t {
  kAllocations,
  kSegments,
  kActive,
  kInactiveSplits,
  kAllocatedBytes,
  kReservedBytes,
  kActiveBytes,
  kInactiveSplitBytes,
  kRequestedBytes,
};
inline constexpr unsigned kCacheFigures = 9;
inline constexpr unsigned kCachePools = 3;  ///< all, small, large

struct CacheStats {
  CacheStat figure[kCacheFigures][kCachePools];
  CacheStat oversize_allocations;
  CacheStat oversize_segments;
  std::uint64_t alloc_retries = 0;
  std::uint64_t ooms = 0;
  std::uint64_t waits = 0;
  std::uint64_t steals = 0;
  std::uint64_t device_calls[device::kCallKinds] = {};

  const CacheStat& of(CacheFigure f, unsigned pool = 0) const {
    return figure[static_cast<unsigned>(f)][pool];
  }
  CacheStat& of(CacheFigure f, unsigned pool = 0) { return figure[static_cast<unsigned>(f)][pool]; }
};

/// What an out-of-memory says of itself.
struct CacheShortage {
  std::uint64_t requested = 0;
  std::uint64_t rounded = 0;
  std::uint64_t segment = 0;
  std::uint64_t limit = 0;
  std::uint64_t reserved = 0;
  std::uint64_t allocated = 0;
  std::uint64_t pending = 0;
  std::uint64_t in_transfer = 0;
  std::uint64_t free_cached = 0;
  std::uint64_t largest_free = 0;
  bool wait_ran_out = false;
  bool capturing = false;
};

struct CacheInfo {
  std::uint64_t size = 0;
  std::uint64_t requested = 0;
  std::uint64_t segment = 0;
  std::uint64_t segment_size = 0;
  std::uint64_t stream = 0;
};

/// The subject. Its public contract is the one in the head of src/ashlar/cache/caching_allocator.h.
class CacheSubject {
 public:
  virtual ~CacheSubject() = default;

  virtual CacheSettings settings() const = 0;
  /// `*shortage` is filled when the outcome is kOutOfMemory.
  virtual Result<Address> allocate(Bytes size, const Stream& stream, CacheShortage* shortage) = 0;
  virtual Status free(Address address) = 0;
  virtual Status free_on(Address address, const Stream& stream) = 0;
  virtual Status record_use(Address address, const Stream& stream) = 0;
  virtual Status retire_stream(const Stream& stream) = 0;
  virtual Status begin_capture(const Stream& stream) = 0;
  virtual Status end_capture(const Stream& stream) = 0;
  virtual Status trim(DeviceId device) = 0;
  virtual Status set_memory_limit(DeviceId device, Bytes limit) = 0;
  virtual Status reset_peak_stats(DeviceId device) = 0;
  virtual Result<CacheInfo> info(Address address) = 0;
  virtual Result<Bytes> largest_free_block(const Stream& stream) = 0;
  virtual Status stats(DeviceId device, CacheStats* out) = 0;
  /// Replaces `*out`, reusing its memory.
  virtual Status snapshot(DeviceId device, CacheSnapshot* out) = 0;
  /// The subject's own whole-structure walk: nullptr, or what broke.
  virtual const char* validate() = 0;
  virtual void add_free_memory_callback(std::function<void(DeviceId)> callback) = 0;
  virtual void add_out_of_memory_observer(std::function<void(const CacheShortage&)> observer) = 0;
};

/// Makes a subject over those devices with that configuration string; an error when the string is
/// bad.
using CacheFactory = std::function<Result<std::shared_ptr<CacheSubject>>(
    std::span<device::Device* const> devices, const std::string& conf)>;

}  // namespace ashlar::spec
