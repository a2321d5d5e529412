// NullDevice: a device that costs nothing and never runs out, to time an allocator alone.
//
// Purpose: addresses come from a counter, and every call succeeds except those of virtual memory, which give
// kUnsupported. It checks nothing: trace runs and benchmarks use it to time an allocator that ran on a
// checked device before.
// Thread safety: every member from any thread (atomic counters).
#pragma once

#include <atomic>

#include <ashlar/device/immediate_device.h>

namespace ashlar::tool {

class NullDevice : public device::ImmediateDevice {
 public:
  explicit NullDevice(DeviceId id = DeviceId{0}) : ImmediateDevice(id) {}

  Result<Address> segment_alloc(Bytes size) noexcept override {
    const std::uint64_t span = (size.count() + kSpacing - 1) / kSpacing * kSpacing;
    return Address{next_address_.fetch_add(span, std::memory_order_relaxed)};
  }
  Status segment_free(Address) noexcept override { return Status::ok(); }
  Result<device::MemoryInfo> memory_info() noexcept override {
    return device::MemoryInfo{kMemory, kMemory};
  }
  Result<Address> pinned_alloc(Bytes size) noexcept override { return segment_alloc(size); }
  Status pinned_free(Address) noexcept override { return Status::ok(); }

 private:
  static constexpr std::uint64_t kSpacing = std::uint64_t{2} << 20;
  static constexpr Bytes kMemory{std::uint64_t{1} << 50};

  std::atomic<std::uint64_t> next_address_{std::uint64_t{1} << 40};
};

}  // namespace ashlar::tool
