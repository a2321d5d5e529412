// The canary kernel (canary.h): it spins, then it writes or checks. And two that the rules' machine needs: a gate, and a fault.
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

extern "C" __global__ void ashlar_gate(const volatile unsigned* word) {
  constexpr unsigned long long kMinuteNs = 60'000'000'000ull;
  unsigned long long begun = 0, now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begun));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (*word == 0 && now - begun < kMinuteNs);
}

extern "C" __global__ void ashlar_fault() { *reinterpret_cast<volatile unsigned*>(8) = 1; }

}  // namespace ashlar::props
