// One device's cache without its front door, on a simulated device that tells which segments it is
// asked to take back: for tests of the cache's parts.
//
// Thread safety: none.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ashlar/cache/device_cache.h>
#include <ashlar/cache/hit_inl.h>
#include <ashlar/device/forwarding_device.h>

#include "props/adapters/in_segments.h"
#include "spec/gpu/sim_gpu.h"

namespace ashlar {

/// Asks the test before a segment goes back.
class ReturnsDevice final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  std::function<Status(Address)> on_free;

  Status segment_free(Address base) noexcept override {
    if (on_free) {
      if (const Status refused = on_free(base); !refused.is_ok()) return refused;
    }
    return ForwardingDevice::segment_free(base);
  }
};

/// A device's cache and the state that the devices of an allocator share.
class CacheParts {
 public:
  explicit CacheParts(Bytes capacity, const std::string& conf = "wait_ms:never") {
    spec::SimGpuOptions options;
    options.capacities = {capacity};
    gpu_ = std::make_unique<spec::SimGpu>(options);
    device_ = std::make_unique<ReturnsDevice>(gpu_->device(0));
    shared_ = std::make_unique<cache::SharedState>(props::config_in_segments(conf));
    caches_[0] = std::make_unique<cache::DeviceCache>(*device_, *shared_);
    shared_->caches = caches_;
  }
  ~CacheParts() {
    device_->on_free = nullptr;
    cache().settle(cache().has_unfinished());
    cache().give_everything_back();
    cache().uses().events().clear();
  }
  CacheParts(const CacheParts&) = delete;
  CacheParts& operator=(const CacheParts&) = delete;

  spec::SimGpu& gpu() { return *gpu_; }
  ReturnsDevice& device() { return *device_; }
  cache::SharedState& shared() { return *shared_; }
  cache::DeviceCache& cache() { return *caches_[0]; }
  Stream stream() { return gpu_->create_stream(DeviceId{0}).value(); }
  cache::StreamHeap& heap(const Stream& of) { return *cache().heap_of(of).value(); }
  Address allocate(Bytes size, const Stream& on) {
    return cache().allocate(size, on, nullptr).value_or(Address{});
  }
  void free(Address address) {
    EXPECT_TRUE(cache::DeviceCache::free(shared_->pages.find(address), address).is_ok());
  }
  void free(Address address, const Stream& used_on) {
    EXPECT_TRUE(
        cache::DeviceCache::free_used_on(shared_->pages.find(address), address, heap(used_on))
            .is_ok());
  }
  void record_use(Address address, const Stream& user) {
    EXPECT_TRUE(
        cache::DeviceCache::record_use(shared_->pages.find(address), address, heap(user)).is_ok());
  }

 private:
  std::unique_ptr<spec::SimGpu> gpu_;
  std::unique_ptr<ReturnsDevice> device_;
  std::unique_ptr<cache::SharedState> shared_;
  std::unique_ptr<cache::DeviceCache> caches_[1];
};

}  // namespace ashlar
