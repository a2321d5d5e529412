// cudaMallocAsync as an allocator.
#include "props/audit/cuda_calls.h"

extern "C" void* audit_alloc(std::size_t size, int device, void* stream) {
  void* block = nullptr;
  cudaSetDevice(device);
  return cudaMallocAsync(&block, size, stream) == 0 ? block : nullptr;
}

extern "C" void audit_free(void* block, std::size_t, int device, void* stream) {
  cudaSetDevice(device);
  cudaFreeAsync(block, stream);
}
