// The canary kernel (canary.h): it spins, then it writes or checks. canary_kernel.cc launches it.
//
// Thread safety: launches on one stream run in order.
#include <cstdint>

#include "props/on_gpu/canary.h"

namespace ashlar::props {
namespace {

struct AtomicReport {
  __device__ void operator()(CanaryResult* result, std::uint64_t at, std::uint64_t found) const {
    auto* const count = reinterpret_cast<unsigned long long*>(&result->mismatches);
    if (atomicAdd(count, 1ull) != 0) return;
    result->first_at = at;
    result->found = found;
  }
};

}  // namespace

extern "C" __global__ void ashlar_canary(CanaryCall call) {
  const long long begun = clock64();
  while (static_cast<std::uint64_t>(clock64() - begun) < call.spin_ticks) {
  }
  run_canary(call, std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x,
             std::uint64_t{gridDim.x} * blockDim.x, AtomicReport{});
}

}  // namespace ashlar::props
