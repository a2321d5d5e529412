#include "bench/adapters/cuda_runtime.h"

#include <atomic>

#include <cuda_runtime_api.h>

#include "bench/adapters/spin.h"

namespace {
constexpr std::uintptr_t kSpacing = std::uintptr_t{2} << 20;
std::atomic<std::uintptr_t> next_address{std::uintptr_t{1} << 40};
std::atomic<std::uintptr_t> next_event{1};
std::atomic<std::uint64_t> growth_bytes{UINT64_MAX};
std::atomic<std::uint32_t> growth_microseconds{0};
}  // namespace

namespace ashlar::bench {
void set_cuda_growth_cost(std::uint64_t bytes, std::uint32_t microseconds) {
  growth_bytes = bytes;
  growth_microseconds = microseconds;
}
}  // namespace ashlar::bench

extern "C" {

cudaError_t CUDARTAPI cudaMalloc(void** p, size_t bytes) {
  if (bytes >= growth_bytes.load(std::memory_order_relaxed)) {
    ashlar::bench::spin_for(growth_microseconds.load(std::memory_order_relaxed));
  }
  const std::uintptr_t span = (bytes + kSpacing - 1) / kSpacing * kSpacing;
  *p = reinterpret_cast<void*>(next_address.fetch_add(span, std::memory_order_relaxed));
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaFree(void*) { return cudaSuccess; }
cudaError_t CUDARTAPI cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaSetDevice(int) { return cudaSuccess; }
cudaError_t CUDARTAPI cudaGetLastError(void) { return cudaSuccess; }
cudaError_t CUDARTAPI cudaPeekAtLastError(void) { return cudaSuccess; }
const char* CUDARTAPI cudaGetErrorString(cudaError_t) { return "an error"; }
cudaError_t CUDARTAPI cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(next_event.fetch_add(1, std::memory_order_relaxed));
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t CUDARTAPI cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t CUDARTAPI cudaEventQuery(cudaEvent_t) { return cudaSuccess; }

}  // extern "C"
