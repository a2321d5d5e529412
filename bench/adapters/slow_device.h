// SlowDevice: NullDevice whose large growth takes as long as a real driver's.
//
// Thread safety: every member from any thread; the cost is set before.
#pragma once

#include "bench/adapters/spin.h"
#include "src/tool/null_device.h"

namespace ashlar::bench {

class SlowDevice : public tool::NullDevice {
 public:
  /// A segment of at least kGrowth takes that long. cudaMalloc of 1 GiB takes milliseconds.
  static constexpr Bytes kGrowth{std::uint64_t{1} << 30};
  static constexpr std::uint32_t kMicroseconds = 3000;

  Result<Address> segment_alloc(Bytes size) noexcept override {
    if (size >= kGrowth) spin_for(kMicroseconds);
    return NullDevice::segment_alloc(size);
  }
};

}  // namespace ashlar::bench
