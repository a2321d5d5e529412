// SimClock: a simulated machine's time, for CudaDevices over it: a wait lets the machine's work go on.
//
// Thread safety: any thread.
#pragma once

#include <ashlar/cuda/host_clock.h>

#include "spec/gpu/sim_gpu.h"

namespace ashlar::props {

class SimClock final : public cuda::HostClock {
 public:
  /// `gpu` must outlive this.
  explicit SimClock(spec::SimGpu& gpu) : gpu_(gpu) {}
  std::uint64_t now_ns() noexcept override { return gpu_.device().now_ns(); }
  void sleep_ns(std::uint64_t duration_ns) noexcept override { gpu_.sleep_ns(duration_ns); }

 private:
  spec::SimGpu& gpu_;
};

}  // namespace ashlar::props
