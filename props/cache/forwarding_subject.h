// ForwardingSubject: forwards every call to a real subject. Tests derive from it and break one
// thing.
//
// Thread safety: the inner subject's.
#pragma once

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "props/adapters/caching_allocator_subject.h"
#include "props/adapters/in_segments.h"
#include "spec/lockstep/cache_lockstep.h"

namespace ashlar::props {

class ForwardingSubject : public spec::CacheSubject {
 public:
  ForwardingSubject(std::shared_ptr<spec::CacheSubject> inner,
                    std::span<device::Device* const> devices)
      : inner_(std::move(inner)), devices_(devices.begin(), devices.end()) {}

  cache::Config config() const override { return inner_->config(); }
  Result<Address> allocate(Bytes size, const Stream& stream, cache::OutOfMemory* account) override {
    return inner_->allocate(size, stream, account);
  }
  Status free(Address address) override { return inner_->free(address); }
  Status free_on(Address address, const Stream& stream) override {
    return inner_->free_on(address, stream);
  }
  Status record_use(Address address, const Stream& stream) override {
    return inner_->record_use(address, stream);
  }
  Result<cache::PinnedRange> pin(Address address) override { return inner_->pin(address); }
  Status unpin(const cache::PinnedRange& range) override { return inner_->unpin(range); }
  Result<std::uint64_t> backing_generation(Address address) override {
    return inner_->backing_generation(address);
  }
  Status retire_stream(const Stream& stream) override { return inner_->retire_stream(stream); }
  Status begin_capture(const Stream& stream) override { return inner_->begin_capture(stream); }
  Status end_capture(const Stream& stream) override { return inner_->end_capture(stream); }
  Status begin_body(const Stream& stream, const Stream& parent) override {
    return inner_->begin_body(stream, parent);
  }
  Status create_pool(DeviceId device, MemoryPoolId pool,
                     const MemoryPoolOptions& options) override {
    return inner_->create_pool(device, pool, options);
  }
  Status begin_pool(DeviceId device, MemoryPoolId pool, StreamFilter filter) override {
    return inner_->begin_pool(device, pool, std::move(filter));
  }
  Status end_pool(DeviceId device, MemoryPoolId pool) override {
    return inner_->end_pool(device, pool);
  }
  Status retain_pool(DeviceId device, MemoryPoolId pool) override {
    return inner_->retain_pool(device, pool);
  }
  Status release_pool(DeviceId device, MemoryPoolId pool) override {
    return inner_->release_pool(device, pool);
  }
  Result<cache::PoolCheckpoint> checkpoint_pool(DeviceId device, MemoryPoolId pool) override {
    return inner_->checkpoint_pool(device, pool);
  }
  Status restore_pool(const cache::PoolCheckpoint& to, cache::RestoredPool* out) override {
    return inner_->restore_pool(to, out);
  }
  Status trim(DeviceId device) override { return inner_->trim(device); }
  Status set_memory_limit(DeviceId device, Bytes limit) override {
    return inner_->set_memory_limit(device, limit);
  }
  Status make_room(DeviceId device, Bytes free) override { return inner_->make_room(device, free); }
  Status set_history(DeviceId device, const cache::HistoryOptions* options) override {
    return inner_->set_history(device, options);
  }
  Status annotate(DeviceId device, std::string_view text) override {
    return inner_->annotate(device, text);
  }
  Status read_history(DeviceId device, std::uint64_t first, cache::History* out) override {
    return inner_->read_history(device, first, out);
  }
  Status history_snapshot(DeviceId device, cache::HistorySnapshot* out) override {
    return inner_->history_snapshot(device, out);
  }
  Status process_events(DeviceId device) override { return inner_->process_events(device); }
  Status reset_peak_stats(DeviceId device) override { return inner_->reset_peak_stats(device); }
  Status reset_accumulated_stats(DeviceId device) override {
    std::fill(std::begin(extra_calls_), std::end(extra_calls_), 0);
    return inner_->reset_accumulated_stats(device);
  }
  Result<spec::CacheInfo> info(Address address) override { return inner_->info(address); }
  Result<Bytes> largest_free_block(const Stream& stream) override {
    return inner_->largest_free_block(stream);
  }
  Status stats(DeviceId device, cache::DeviceStats* out) override {
    const Status got = inner_->stats(device, out);
    for (unsigned kind = 0; kind < device::kCallKinds; ++kind)
      out->device_calls[kind] += extra_calls_[kind];
    return got;
  }
  Status snapshot(DeviceId device, cache::Snapshot* out) override {
    return inner_->snapshot(device, out);
  }
  const char* validate() override { return inner_->validate(); }
  void add_free_memory_callback(std::function<void(DeviceId)> callback) override {
    inner_->add_free_memory_callback(std::move(callback));
  }
  void add_out_of_memory_observer(
      std::function<void(const cache::OutOfMemory&)> observer) override {
    inner_->add_out_of_memory_observer(std::move(observer));
  }
  void add_mapping_observer(std::function<void(const cache::MappingEvent&)> observer) override {
    observers_.push_back(observer);
    inner_->add_mapping_observer(std::move(observer));
  }

 protected:
  /// The device, for a call that the broken part makes itself; the statistics count it.
  device::Device& device_for(device::CallKind kind) {
    ++extra_calls_[static_cast<unsigned>(kind)];
    return *devices_[0];
  }
  /// Takes a segment for the broken part, and tells of it.
  void take_segment(Bytes size) {
    const Address base = device_for(device::CallKind::kSegmentAlloc).segment_alloc(size).value();
    for (const auto& observer : observers_)
      observer({DeviceId{0}, cache::MappingChange::kMapped, base, size, 0});
  }

  std::shared_ptr<spec::CacheSubject> inner_;
  std::vector<device::Device*> devices_;
  std::vector<std::function<void(const cache::MappingEvent&)>> observers_;
  std::uint64_t extra_calls_[device::kCallKinds] = {};
};

/// Lockstep over a broken subject. `real_conf`, where given, replaces the configuration that the
/// ops ask for, but for the backing.
template <class Broken>
spec::CacheLockstep::Options broken(const char* real_conf = nullptr) {
  spec::CacheLockstep::Options options;
  options.validate_every = 1;
  options.factory = [real_conf](
                        std::span<device::Device* const> devices,
                        const std::string& conf) -> Result<std::shared_ptr<spec::CacheSubject>> {
    Result<std::shared_ptr<spec::CacheSubject>> inner =
        caching_allocator_factory()(devices, real_conf == nullptr ? conf : in_segments(real_conf));
    if (!inner.is_ok()) return inner.status();
    return std::shared_ptr<spec::CacheSubject>(std::make_shared<Broken>(inner.value(), devices));
  };
  return options;
}

}  // namespace ashlar::props
