// The caches of a few devices without their front door, on simulated devices whose answers a test
// writes: for tests that count a part's device calls one by one.
//
// Thread safety: none but the hooks', which their writer sees to.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ashlar/cache/hit_inl.h>
#include <ashlar/device/forwarding_device.h>

#include "props/adapters/cache_peer.h"
#include "props/adapters/in_segments.h"
#include "spec/gpu/sim_gpu.h"

namespace ashlar {

/// Answers what the hooks say; where one is empty, or says ok, the simulated device is asked.
class ScriptedDevice final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  std::function<Status()> on_create;
  std::function<Status(EventHandle)> on_query;
  std::function<Status(EventHandle)> on_destroy;
  std::function<Status(StreamHandle)> on_record;
  std::function<Result<Stream>(StreamHandle)> on_identify;
  std::function<Status(EventHandle, std::uint32_t timeout_ms)> on_wait;
  std::function<Status(std::uint32_t timeout_ms)> on_synchronize;  ///< with a time limit
  std::optional<std::uint64_t> clock_ns;  ///< in place of the simulated device's clock

  Result<EventHandle> event_create() noexcept override {
    const Status planted = on_create ? on_create() : Status::ok();
    return planted.is_ok() ? ForwardingDevice::event_create() : Result<EventHandle>(planted);
  }
  Status event_query(EventHandle event) noexcept override {
    const Status planted = on_query ? on_query(event) : Status::ok();
    return planted.is_ok() ? ForwardingDevice::event_query(event) : planted;
  }
  Status event_destroy(EventHandle event) noexcept override {
    const Status planted = on_destroy ? on_destroy(event) : Status::ok();
    return planted.is_ok() ? ForwardingDevice::event_destroy(event) : planted;
  }
  Status event_record(EventHandle event, StreamHandle stream) noexcept override {
    const Status planted = on_record ? on_record(stream) : Status::ok();
    return planted.is_ok() ? ForwardingDevice::event_record(event, stream) : planted;
  }
  Result<Stream> identify(StreamHandle handle) noexcept override {
    return on_identify ? on_identify(handle) : ForwardingDevice::identify(handle);
  }
  Status event_synchronize(EventHandle event, std::uint32_t timeout_ms) noexcept override {
    const Status planted = on_wait ? on_wait(event, timeout_ms) : Status::ok();
    return planted.is_ok() ? ForwardingDevice::event_synchronize(event, timeout_ms) : planted;
  }
  Status synchronize_for(std::uint32_t timeout_ms) noexcept override {
    const Status planted = on_synchronize ? on_synchronize(timeout_ms) : Status::ok();
    return planted.is_ok() ? ForwardingDevice::synchronize_for(timeout_ms) : planted;
  }
  std::uint64_t now_ns() const noexcept override {
    return clock_ns ? *clock_ns : ForwardingDevice::now_ns();
  }
  void clear() {
    on_create = {}, on_query = {}, on_destroy = {}, on_record = {}, on_identify = {};
    on_wait = {}, on_synchronize = {}, clock_ns = {};
  }
};

class ScriptedParts {
 public:
  explicit ScriptedParts(std::size_t devices = 1, const std::string& conf = "wait_ms:never") {
    spec::SimGpuOptions options;
    options.capacities.assign(devices, 256_MiB);
    gpu_ = std::make_unique<spec::SimGpu>(options);
    shared_ = std::make_unique<cache::SharedState>(props::config_in_segments(conf));
    EXPECT_TRUE(shared_->unrecorded.make(devices));
    for (std::size_t i = 0; i < devices; ++i) {
      devices_.push_back(
          std::make_unique<ScriptedDevice>(gpu_->device(static_cast<std::int32_t>(i))));
      caches_.push_back(std::make_unique<cache::DeviceCache>(*devices_[i], *shared_));
    }
    shared_->caches = caches_.data();
  }
  ~ScriptedParts() {
    for (auto& device : devices_) device->clear();
    for (auto& each : caches_) each->settle(each->has_unfinished());
    for (auto& each : caches_) each->give_everything_back();
    for (auto& each : caches_) each->uses().events().clear();
  }
  ScriptedParts(const ScriptedParts&) = delete;
  ScriptedParts& operator=(const ScriptedParts&) = delete;

  spec::SimGpu& gpu() { return *gpu_; }
  ScriptedDevice& device(std::size_t i = 0) { return *devices_[i]; }
  cache::SharedState& shared() { return *shared_; }
  cache::DeviceCache& cache(std::size_t i = 0) { return *caches_[i]; }
  cache::UseTracker& uses(std::size_t i = 0) { return cache(i).uses(); }
  Stream stream(std::int32_t device = 0) { return gpu_->create_stream(DeviceId{device}).value(); }
  /// A stream of that device whose work ends when the flag is raised.
  Stream busy_stream(spec::HostFlag flag, std::int32_t device = 0) {
    const Stream busy = stream(device);
    EXPECT_TRUE(gpu_->host_function(busy, flag).is_ok());
    return busy;
  }
  cache::StreamHeap& heap(const Stream& of) {
    return *caches_[static_cast<std::size_t>(of.device.value())]->heap_of(of).value();
  }
  cache::PageMap::Found found(Address address) { return shared_->pages.find(address); }
  Address allocate(Bytes size, const Stream& on) {
    return caches_[static_cast<std::size_t>(on.device.value())]
        ->allocate(size, on, nullptr)
        .value_or(Address{});
  }
  void free(Address address) {
    EXPECT_TRUE(cache::DeviceCache::free(found(address), address).is_ok());
  }
  void free(Address address, const Stream& used_on) {
    EXPECT_TRUE(cache::DeviceCache::free_used_on(found(address), address, heap(used_on)).is_ok());
  }
  void record_use(Address address, const Stream& user) {
    EXPECT_TRUE(cache::DeviceCache::record_use(found(address), address, heap(user)).is_ok());
  }
  std::uint64_t calls(device::CallKind kind, std::size_t i = 0) {
    return cache(i).driver().calls(kind);
  }
  void expect_valid() {
    for (auto& each : caches_) ASSERT_STREQ(each->validate(), nullptr);
  }

 private:
  std::unique_ptr<spec::SimGpu> gpu_;
  std::vector<std::unique_ptr<ScriptedDevice>> devices_;
  std::unique_ptr<cache::SharedState> shared_;
  std::vector<std::unique_ptr<cache::DeviceCache>> caches_;
};

}  // namespace ashlar
