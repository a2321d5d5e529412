// The calls pass through; the types are the same on both sides.
#include "props/adapters/caching_allocator_subject.h"

#include <utility>

#include <ashlar/cache/history_calls.h>

namespace ashlar::props {

namespace {

class Adapter final : public spec::CacheSubject {
 public:
  explicit Adapter(cache::CachingAllocator& allocator) : allocator_(allocator) {}
  explicit Adapter(std::unique_ptr<cache::CachingAllocator> owned)
      : owned_(std::move(owned)), allocator_(*owned_) {}

  cache::CachingAllocator& allocator() const { return allocator_; }
  cache::Config config() const override { return allocator_.config(); }
  Result<Address> allocate(Bytes size, const Stream& stream, cache::OutOfMemory* account) override {
    return allocator_.allocate(size, stream, account);
  }
  Status free(Address address) override { return allocator_.free(address); }
  Status free_on(Address address, const Stream& stream) override {
    return allocator_.free(address, stream);
  }
  Status record_use(Address address, const Stream& stream) override {
    return allocator_.record_use(address, stream);
  }
  Result<cache::PinnedRange> pin(Address address) override { return allocator_.pin(address); }
  Status unpin(const cache::PinnedRange& range) override { return allocator_.unpin(range); }
  Result<std::uint64_t> backing_generation(Address address) override {
    return allocator_.backing_generation(address);
  }
  Status retire_stream(const Stream& stream) override { return allocator_.retire_stream(stream); }
  Status begin_capture(const Stream& stream) override { return allocator_.begin_capture(stream); }
  Status end_capture(const Stream& stream) override { return allocator_.end_capture(stream); }
  Status begin_body(const Stream& stream, const Stream& parent) override {
    return allocator_.begin_body(stream, parent);
  }
  Status create_pool(DeviceId device, MemoryPoolId pool,
                     const MemoryPoolOptions& options) override {
    return allocator_.create_pool(device, pool, options);
  }
  Status begin_pool(DeviceId device, MemoryPoolId pool, StreamFilter filter) override {
    return allocator_.begin_pool(device, pool, std::move(filter));
  }
  Status end_pool(DeviceId device, MemoryPoolId pool) override {
    return allocator_.end_pool(device, pool);
  }
  Status retain_pool(DeviceId device, MemoryPoolId pool) override {
    return allocator_.retain_pool(device, pool);
  }
  Status release_pool(DeviceId device, MemoryPoolId pool) override {
    return allocator_.release_pool(device, pool);
  }
  Result<cache::PoolCheckpoint> checkpoint_pool(DeviceId device, MemoryPoolId pool) override {
    return allocator_.checkpoint_pool(device, pool);
  }
  Status restore_pool(const cache::PoolCheckpoint& to, cache::RestoredPool* out) override {
    return allocator_.restore_pool(to, out);
  }
  Status trim(DeviceId device) override { return allocator_.trim(device); }
  Status set_memory_limit(DeviceId device, Bytes limit) override {
    return allocator_.set_memory_limit(device, limit);
  }
  Status process_events(DeviceId device) override {
    return cache::process_events(allocator_, device);
  }
  Status set_history(DeviceId device, const cache::HistoryOptions* options) override {
    return options != nullptr ? cache::start_history(allocator_, device, *options)
                              : cache::stop_history(allocator_, device);
  }
  Status annotate(DeviceId device, std::string_view text) override {
    return cache::annotate(allocator_, device, text);
  }
  Status read_history(DeviceId device, std::uint64_t first, cache::History* out) override {
    return cache::read_history(allocator_, device, first, out);
  }
  Status history_snapshot(DeviceId device, cache::HistorySnapshot* out) override {
    return cache::history_snapshot(allocator_, device, out);
  }
  Status make_room(DeviceId device, Bytes free) override {
    return allocator_.make_room(device, free);
  }
  Status reset_peak_stats(DeviceId device) override { return allocator_.reset_peak_stats(device); }
  Status reset_accumulated_stats(DeviceId device) override {
    return allocator_.reset_accumulated_stats(device);
  }
  Result<spec::CacheInfo> info(Address address) override {
    const Result<cache::AllocationInfo> got = allocator_.info(address);
    if (!got.is_ok()) return got.status();
    const cache::AllocationInfo& info = got.value();
    return spec::CacheInfo{info.size, info.requested, info.segment, info.segment_size,
                           info.stream.id};
  }
  Result<Bytes> largest_free_block(const Stream& stream) override {
    return allocator_.largest_free_block(stream);
  }
  Status stats(DeviceId device, cache::DeviceStats* out) override {
    return allocator_.stats(device, out);
  }
  Status snapshot(DeviceId device, cache::Snapshot* out) override {
    return allocator_.snapshot(device, out);
  }
  const char* validate() override { return allocator_.validate(); }
  void add_free_memory_callback(std::function<void(DeviceId)> callback) override {
    allocator_.add_free_memory_callback(std::move(callback));
  }
  void add_out_of_memory_observer(
      std::function<void(const cache::OutOfMemory&)> observer) override {
    allocator_.add_out_of_memory_observer(std::move(observer));
  }
  void add_mapping_observer(std::function<void(const cache::MappingEvent&)> observer) override {
    allocator_.add_mapping_observer(std::move(observer));
  }

 private:
  std::unique_ptr<cache::CachingAllocator> owned_;
  cache::CachingAllocator& allocator_;
};

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

cache::CachingAllocator& allocator_of(spec::CacheSubject& subject) {
  return static_cast<Adapter&>(subject).allocator();
}

std::shared_ptr<spec::CacheSubject> adapt(cache::CachingAllocator& allocator) {
  return std::make_shared<Adapter>(allocator);
}

}  // namespace ashlar::props
