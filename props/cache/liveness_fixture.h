// A simulated device that counts calls and can be told to be stuck, and an allocator on it: for
// tests of progress.
//
// Thread safety: is_stuck, waiting and calls may be used by any thread; the rest by the test's.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>

#include <ashlar/cache/caching_allocator.h>
#include <ashlar/device/forwarding_device.h>

#include "props/adapters/in_segments.h"
#include "spec/gpu/sim_gpu.h"

namespace ashlar {

inline constexpr DeviceId kDevice{0};

inline std::unique_ptr<cache::CachingAllocator> make_allocator(
    std::span<device::Device* const> devices, const char* conf) {
  return cache::CachingAllocator::create(devices, props::config_in_segments(conf)).value();
}
/// Another thread's default stream, on which the calling thread can record no event.
inline Stream stream_of_other_thread(spec::SimGpu& gpu, DeviceId device = kDevice) {
  gpu.act_as_thread(1);
  const Stream elsewhere = gpu.default_stream(device, spec::kPerThreadStream);
  gpu.act_as_thread(2);
  return elsewhere;
}

/// Counts questions about events; waits take real time and end without an answer while `is_stuck`.
class WatchedDevice final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  std::atomic<bool> is_stuck{false};
  std::atomic<unsigned> waiting{0};
  std::atomic<std::uint64_t> calls{0};
  bool refuses_records = false;
  std::function<void()> on_wait;

  Status event_record(EventHandle event, StreamHandle stream) noexcept override {
    if (refuses_records) return {Code::kDriverError, "planted"};
    return ForwardingDevice::event_record(event, stream);
  }
  Status event_synchronize(EventHandle event, std::uint32_t timeout_ms) noexcept override {
    if (on_wait) on_wait();
    if (!is_stuck) return ForwardingDevice::event_synchronize(event, timeout_ms);
    ++waiting;
    std::this_thread::sleep_for(std::chrono::milliseconds(timeout_ms));
    return {Code::kNotReady, "stuck"};
  }
  std::uint64_t now_ns() const noexcept override {
    // While stuck, the host's clock. NOLINTNEXTLINE(bugprone-parent-virtual-call): past the simulated one
    return is_stuck ? Device::now_ns() : ForwardingDevice::now_ns();
  }

 private:
  void on_answer(device::CallKind, Bytes, Code) noexcept override { ++calls; }
};

class LivenessTest : public ::testing::Test {
 protected:
  void make(Bytes capacity, const char* conf = "") {
    allocator_.reset();  // before its device
    spec::SimGpuOptions options;
    options.capacities = {capacity};
    gpu_ = std::make_unique<spec::SimGpu>(options);
    device_ = std::make_unique<WatchedDevice>(gpu_->device(0));
    device::Device* devices[] = {device_.get()};
    allocator_ = make_allocator(devices, conf);
    own_ = stream();
  }
  Stream stream() { return gpu_->create_stream(kDevice).value(); }
  Address allocate(Bytes size, const Stream& on) {
    return allocator_->allocate(size, on).value_or(Address{});
  }
  /// A stream that never finishes what it is given.
  Stream stuck_stream() {
    const Stream stuck = stream();
    EXPECT_TRUE(gpu_->host_function(stuck, gpu_->new_flag()).is_ok());
    return stuck;
  }
  void end(const Stream& stream) {
    EXPECT_TRUE(allocator_->retire_stream(stream).is_ok());
    EXPECT_TRUE(gpu_->destroy_stream(stream).is_ok());
  }
  /// A stream that is made, used in one of four ways, and ended; its work is done in the end.
  void come_and_go(unsigned way) {
    const Stream passing = stream();
    const Address block = allocate(4_KiB, way == 0 ? own_ : passing);
    if (way == 1) {
      EXPECT_TRUE(allocator_->record_use(block, own_).is_ok());
    }
    if (way == 2) end(passing);  // before the free
    EXPECT_TRUE((way == 2 ? allocator_->free(block) : allocator_->free(block, passing)).is_ok());
    if (way != 2) end(passing);
    static_cast<void>(gpu_->drain_all());
  }
  cache::DeviceStats stats() { return allocator_->stats(kDevice).value(); }
  std::uint64_t reserved() { return stats().reserved_bytes[0].current; }

  std::unique_ptr<spec::SimGpu> gpu_;
  std::unique_ptr<WatchedDevice> device_;
  std::unique_ptr<cache::CachingAllocator> allocator_;
  Stream own_;
};

}  // namespace ashlar
