// Plain types from and to the allocator's: see cache_subject.h.
#include "props/adapters/caching_allocator_subject.h"

#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

namespace ashlar::props {

namespace {

// Statistics are read after every call, so they are carried over as bytes: both sides hold the same
// words in the same order.
static_assert(std::is_trivially_copyable_v<cache::DeviceStats> &&
              std::is_trivially_copyable_v<spec::CacheStats>);
static_assert(sizeof(cache::DeviceStats) == sizeof(spec::CacheStats) &&
              sizeof(cache::Stat) == sizeof(spec::CacheStat));
static_assert(cache::kStatPools == spec::kCachePools);
static_assert(offsetof(cache::Stat, current) == offsetof(spec::CacheStat, current) &&
              offsetof(cache::Stat, peak) == offsetof(spec::CacheStat, peak) &&
              offsetof(cache::Stat, increased) == offsetof(spec::CacheStat, increased) &&
              offsetof(cache::Stat, decreased) == offsetof(spec::CacheStat, decreased));
constexpr bool stands_at(std::size_t offset, spec::CacheFigure figure) {
  return offset == sizeof(cache::StatByPool) * static_cast<std::size_t>(figure);
}
static_assert(offsetof(spec::CacheStats, figure) == 0);
static_assert(stands_at(offsetof(cache::DeviceStats, allocations),
                        spec::CacheFigure::kAllocations));
static_assert(stands_at(offsetof(cache::DeviceStats, segments), spec::CacheFigure::kSegments));
static_assert(stands_at(offsetof(cache::DeviceStats, active), spec::CacheFigure::kActive));
static_assert(stands_at(offsetof(cache::DeviceStats, inactive_splits),
                        spec::CacheFigure::kInactiveSplits));
static_assert(stands_at(offsetof(cache::DeviceStats, allocated_bytes),
                        spec::CacheFigure::kAllocatedBytes));
static_assert(stands_at(offsetof(cache::DeviceStats, reserved_bytes),
                        spec::CacheFigure::kReservedBytes));
static_assert(stands_at(offsetof(cache::DeviceStats, active_bytes),
                        spec::CacheFigure::kActiveBytes));
static_assert(stands_at(offsetof(cache::DeviceStats, inactive_split_bytes),
                        spec::CacheFigure::kInactiveSplitBytes));
static_assert(stands_at(offsetof(cache::DeviceStats, requested_bytes),
                        spec::CacheFigure::kRequestedBytes));
static_assert(offsetof(cache::DeviceStats, oversize_allocations) ==
              offsetof(spec::CacheStats, oversize_allocations));
static_assert(offsetof(cache::DeviceStats, oversize_segments) ==
              offsetof(spec::CacheStats, oversize_segments));
static_assert(offsetof(cache::DeviceStats, alloc_retries) ==
              offsetof(spec::CacheStats, alloc_retries));
static_assert(offsetof(cache::DeviceStats, ooms) == offsetof(spec::CacheStats, ooms));
static_assert(offsetof(cache::DeviceStats, waits) == offsetof(spec::CacheStats, waits));
static_assert(offsetof(cache::DeviceStats, steals) == offsetof(spec::CacheStats, steals));
static_assert(offsetof(cache::DeviceStats, device_calls) ==
              offsetof(spec::CacheStats, device_calls));

// So are snapshots, as runs of blocks and of segments.
static_assert(std::is_trivially_copyable_v<cache::SnapshotBlock> &&
              sizeof(cache::SnapshotBlock) == sizeof(spec::CacheBlock));
static_assert(offsetof(cache::SnapshotBlock, address) == offsetof(spec::CacheBlock, address) &&
              offsetof(cache::SnapshotBlock, size) == offsetof(spec::CacheBlock, size) &&
              offsetof(cache::SnapshotBlock, requested) == offsetof(spec::CacheBlock, requested) &&
              offsetof(cache::SnapshotBlock, stream) == offsetof(spec::CacheBlock, stream) &&
              offsetof(cache::SnapshotBlock, other_uses) ==
                  offsetof(spec::CacheBlock, other_uses) &&
              offsetof(cache::SnapshotBlock, state) == offsetof(spec::CacheBlock, state));
constexpr bool is_same(BlockState state, spec::CacheState other) {
  return static_cast<unsigned>(state) == static_cast<unsigned>(other);
}
static_assert(sizeof(BlockState) == sizeof(spec::CacheState) &&
              is_same(BlockState::kFree, spec::CacheState::kFree) &&
              is_same(BlockState::kLive, spec::CacheState::kLive) &&
              is_same(BlockState::kPending, spec::CacheState::kPending) &&
              is_same(BlockState::kInTransfer, spec::CacheState::kInTransfer));
static_assert(std::is_trivially_copyable_v<cache::SnapshotSegment> &&
              sizeof(cache::SnapshotSegment) == sizeof(spec::CacheSegment));
static_assert(offsetof(cache::SnapshotSegment, base) == offsetof(spec::CacheSegment, base) &&
              offsetof(cache::SnapshotSegment, size) == offsetof(spec::CacheSegment, size) &&
              offsetof(cache::SnapshotSegment, stream) == offsetof(spec::CacheSegment, stream) &&
              offsetof(cache::SnapshotSegment, ordinal) == offsetof(spec::CacheSegment, ordinal) &&
              offsetof(cache::SnapshotSegment, block_first) ==
                  offsetof(spec::CacheSegment, block_first) &&
              offsetof(cache::SnapshotSegment, block_count) ==
                  offsetof(spec::CacheSegment, block_count) &&
              offsetof(cache::SnapshotSegment, is_small) == offsetof(spec::CacheSegment, is_small));

template <class From, class To>
void carry_over(const std::vector<From>& from, std::vector<To>* to) {
  to->resize(from.size());
  if (!from.empty())
    std::memcpy(static_cast<void*>(to->data()), from.data(), from.size() * sizeof(From));
}

spec::CacheShortage plain(const cache::OutOfMemory& account) {
  spec::CacheShortage shortage;
  shortage.requested = account.requested.count();
  shortage.rounded = account.rounded.count();
  shortage.segment = account.segment.count();
  shortage.limit = account.limit.count();
  shortage.reserved = account.reserved.count();
  shortage.allocated = account.allocated.count();
  shortage.pending = account.pending.count();
  shortage.in_transfer = account.in_transfer.count();
  shortage.free_cached = account.free_cached.count();
  shortage.largest_free = account.largest_free.count();
  shortage.wait_ran_out = account.wait_ran_out;
  shortage.capturing = account.capturing;
  return shortage;
}

spec::CacheSettings plain(const cache::Config& config) {
  spec::CacheSettings settings;
  settings.granule = config.granule.count();
  settings.small_request_max = config.small_request_max.count();
  settings.small_segment = config.small_segment.count();
  settings.large_request_min = config.large_request_min.count();
  settings.large_segment = config.large_segment.count();
  settings.segment_round = config.segment_round.count();
  settings.max_split_size = config.max_split_size.count();
  settings.max_non_split_rounding = config.max_non_split_rounding.count();
  settings.roundup_divisions = config.roundup_divisions;
  settings.memory_fraction = config.memory_fraction;
  settings.reuse = static_cast<spec::CacheReuse>(config.reuse);
  settings.wait_ms = config.wait_ms;
  return settings;
}

class Adapter final : public spec::CacheSubject {
 public:
  explicit Adapter(cache::CachingAllocator& allocator) : allocator_(allocator) {}
  explicit Adapter(std::unique_ptr<cache::CachingAllocator> owned)
      : owned_(std::move(owned)), allocator_(*owned_) {}

  spec::CacheSettings settings() const override { return plain(allocator_.config()); }
  Result<Address> allocate(Bytes size, const Stream& stream,
                           spec::CacheShortage* shortage) override {
    cache::OutOfMemory account;
    const Result<Address> got = allocator_.allocate(size, stream, &account);
    if (got.code() == Code::kOutOfMemory) *shortage = plain(account);
    return got;
  }
  Status free(Address address) override { return allocator_.free(address); }
  Status free_on(Address address, const Stream& stream) override {
    return allocator_.free(address, stream);
  }
  Status record_use(Address address, const Stream& stream) override {
    return allocator_.record_use(address, stream);
  }
  Status retire_stream(const Stream& stream) override { return allocator_.retire_stream(stream); }
  Status begin_capture(const Stream& stream) override { return allocator_.begin_capture(stream); }
  Status end_capture(const Stream& stream) override { return allocator_.end_capture(stream); }
  Status trim(DeviceId device) override { return allocator_.trim(device); }
  Status set_memory_limit(DeviceId device, Bytes limit) override {
    return allocator_.set_memory_limit(device, limit);
  }
  Status reset_peak_stats(DeviceId device) override { return allocator_.reset_peak_stats(device); }
  Result<spec::CacheInfo> info(Address address) override {
    const Result<cache::AllocationInfo> got = allocator_.info(address);
    if (!got.is_ok()) return got.status();
    const cache::AllocationInfo& info = got.value();
    return spec::CacheInfo{info.size.count(), info.requested.count(), info.segment.value(),
                           info.segment_size.count(), info.stream.id.value()};
  }
  Result<Bytes> largest_free_block(const Stream& stream) override {
    return allocator_.largest_free_block(stream);
  }
  Status stats(DeviceId device, spec::CacheStats* out) override;
  Status snapshot(DeviceId device, spec::CacheSnapshot* out) override;
  const char* validate() override { return allocator_.validate(); }
  void add_free_memory_callback(std::function<void(DeviceId)> callback) override {
    allocator_.add_free_memory_callback(std::move(callback));
  }
  void add_out_of_memory_observer(
      std::function<void(const spec::CacheShortage&)> observer) override {
    allocator_.add_out_of_memory_observer(
        [observer = std::move(observer)](const cache::OutOfMemory& account) {
          observer(plain(account));
        });
  }

 private:
  std::unique_ptr<cache::CachingAllocator> owned_;
  cache::CachingAllocator& allocator_;
  cache::DeviceStats stats_;
  cache::Snapshot snapshot_;
};

Status Adapter::stats(DeviceId device, spec::CacheStats* out) {
  const Status read = allocator_.stats(device, &stats_);
  if (read.is_ok()) std::memcpy(static_cast<void*>(out), &stats_, sizeof *out);
  return read;
}

Status Adapter::snapshot(DeviceId device, spec::CacheSnapshot* out) {
  if (snapshot_.segments.capacity() == 0) {  // room for what most worlds hold
    snapshot_.segments.reserve(16);
    snapshot_.blocks.reserve(64);
  }
  if (const Status taken = allocator_.snapshot(device, &snapshot_); !taken.is_ok()) return taken;
  carry_over(snapshot_.segments, &out->segments);
  carry_over(snapshot_.blocks, &out->blocks);
  return Status::ok();
}

}  // namespace

spec::CacheFactory caching_allocator_factory() {
  return [](std::span<device::Device* const> devices,
            const std::string& conf) -> Result<std::shared_ptr<spec::CacheSubject>> {
    const Result<cache::Config> config = cache::parse_config(conf, nullptr);
    if (!config.is_ok()) return config.status();
    Result<std::unique_ptr<cache::CachingAllocator>> made =
        cache::CachingAllocator::create(devices, config.value());
    if (!made.is_ok()) return made.status();
    return std::shared_ptr<spec::CacheSubject>(std::make_shared<Adapter>(std::move(made).value()));
  };
}

std::shared_ptr<spec::CacheSubject> adapt(cache::CachingAllocator& allocator) {
  return std::make_shared<Adapter>(allocator);
}

}  // namespace ashlar::props
