// CacheSubject: a stream-ordered caching allocator as the specification sees it.
//
// Purpose: spec/ names what it drives by this interface; the adapters are in props/. The types are
// the library's own plain records (configuration, statistics, snapshot, account): the judge reads
// what they say and shares no code with the subject that fills them.
// Thread safety: the subject's; the lockstep driver calls from one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ashlar/base/status.h>
#include <ashlar/base/types.h>
#include <ashlar/cache/config.h>
#include <ashlar/cache/history.h>
#include <ashlar/cache/mapping.h>
#include <ashlar/cache/out_of_memory.h>
#include <ashlar/cache/pool_checkpoint.h>
#include <ashlar/cache/snapshot.h>
#include <ashlar/cache/stats.h>
#include <ashlar/device/device.h>

namespace ashlar::spec {

/// The segment that holds the address, or nullptr. REQUIRES: segments by address, as a snapshot has
/// them.
inline const cache::SnapshotSegment* find_segment(
    const std::vector<cache::SnapshotSegment>& segments, std::uint64_t address) {
  const auto after = std::upper_bound(
      segments.begin(), segments.end(), address,
      [](std::uint64_t a, const cache::SnapshotSegment& each) { return a < each.base.value(); });
  if (after == segments.begin()) return nullptr;
  const cache::SnapshotSegment& segment = *std::prev(after);
  return address - segment.base.value() < segment.size.count() ? &segment : nullptr;
}

/// What the subject knows of a live allocation.
struct CacheInfo {
  Bytes size;
  Bytes requested;
  Address segment;
  Bytes segment_size;
  StreamId stream;
};

/// The subject. Its public contract is the one in the head of src/ashlar/cache/caching_allocator.h.
class CacheSubject {
 public:
  virtual ~CacheSubject() = default;

  virtual cache::Config config() const = 0;
  /// `*account` is filled when the outcome is kOutOfMemory.
  virtual Result<Address> allocate(Bytes size, const Stream& stream,
                                   cache::OutOfMemory* account) = 0;
  virtual Status free(Address address) = 0;
  virtual Status free_on(Address address, const Stream& stream) = 0;
  virtual Status record_use(Address address, const Stream& stream) = 0;
  virtual Result<cache::PinnedRange> pin(Address address) = 0;
  virtual Status unpin(const cache::PinnedRange& range) = 0;
  virtual Result<std::uint64_t> backing_generation(Address address) = 0;
  virtual Status retire_stream(const Stream& stream) = 0;
  virtual Status begin_capture(const Stream& stream) = 0;
  virtual Status end_capture(const Stream& stream) = 0;
  virtual Status begin_body(const Stream& stream, const Stream& parent) = 0;
  virtual Status create_pool(DeviceId device, MemoryPoolId pool,
                             const MemoryPoolOptions& options) = 0;
  virtual Status begin_pool(DeviceId device, MemoryPoolId pool, StreamFilter filter) = 0;
  virtual Status end_pool(DeviceId device, MemoryPoolId pool) = 0;
  virtual Status retain_pool(DeviceId device, MemoryPoolId pool) = 0;
  virtual Status release_pool(DeviceId device, MemoryPoolId pool) = 0;
  virtual Result<cache::PoolCheckpoint> checkpoint_pool(DeviceId device, MemoryPoolId pool) = 0;
  virtual Status restore_pool(const cache::PoolCheckpoint& to, cache::RestoredPool* out) = 0;
  virtual Status trim(DeviceId device) = 0;
  virtual Status set_memory_limit(DeviceId device, Bytes limit) = 0;
  virtual Status make_room(DeviceId device, Bytes free) = 0;
  virtual Status process_events(DeviceId device) = 0;
  virtual Status reset_peak_stats(DeviceId device) = 0;
  virtual Status reset_accumulated_stats(DeviceId device) = 0;
  virtual Result<CacheInfo> info(Address address) = 0;
  virtual Result<Bytes> largest_free_block(const Stream& stream) = 0;
  virtual Status stats(DeviceId device, cache::DeviceStats* out) = 0;
  /// Replaces `*out`, reusing its memory.
  virtual Status snapshot(DeviceId device, cache::Snapshot* out) = 0;
  // Its history.
  /// Begins it; null: ends it.
  virtual Status set_history(DeviceId device, const cache::HistoryOptions* options) = 0;
  virtual Status annotate(DeviceId device, std::string_view text) = 0;
  virtual Status read_history(DeviceId device, std::uint64_t first, cache::History* out) = 0;
  virtual Status history_snapshot(DeviceId device, cache::HistorySnapshot* out) = 0;
  /// The subject's own whole-structure walk: nullptr, or what broke.
  virtual const char* validate() = 0;
  virtual void add_free_memory_callback(std::function<void(DeviceId)> callback) = 0;
  virtual void add_out_of_memory_observer(
      std::function<void(const cache::OutOfMemory&)> observer) = 0;
  virtual void add_mapping_observer(std::function<void(const cache::MappingEvent&)> observer) = 0;
};

/// Makes a subject over those devices with that configuration string; an error when the string is
/// bad.
using CacheFactory = std::function<Result<std::shared_ptr<CacheSubject>>(
    std::span<device::Device* const> devices, const std::string& conf)>;

}  // namespace ashlar::spec
