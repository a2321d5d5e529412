// A memory pool of each device's as an allocator, as RMM's cuda_async_memory_resource has it.
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "props/audit/cuda_calls.h"

namespace {

/// cudaMemPoolProps.
struct PoolProperties {
  int type = 1;
  int handle_types = 0;
  int location_type = 1;
  int device = 0;
  void* security = nullptr;
  std::size_t size_max = 0;
  unsigned char rest[56] = {};
};

std::mutex lock;
std::map<int, void*> pools;
std::set<void*> live;
std::vector<void*> refused;  ///< blocks whose free the driver refused

void* pool_of(int device) {
  const std::lock_guard guard(lock);
  void*& pool = pools[device];
  if (pool != nullptr) return pool;
  PoolProperties properties;
  properties.device = device;
  constexpr int kReleaseThreshold = 4;
  std::uint64_t threshold = 8 << 20;
  if (cudaMemPoolCreate(&pool, &properties) == 0)
    cudaMemPoolSetAttribute(pool, kReleaseThreshold, &threshold);
  return pool;
}

}  // namespace

extern "C" void* audit_alloc(std::size_t size, int device, void* stream) {
  void* block = nullptr;
  cudaSetDevice(device);
  if (cudaMallocFromPoolAsync(&block, size, pool_of(device), stream) != 0) return nullptr;
  const std::lock_guard guard(lock);
  live.insert(block);
  return block;
}

extern "C" void audit_free(void* block, std::size_t, int device, void* stream) {
  const std::lock_guard guard(lock);
  if (live.erase(block) == 0) return;  // freed before
  cudaSetDevice(device);
  if (cudaFreeAsync(block, stream) != 0) refused.push_back(block);
}

extern "C" void audit_empty_cache() {
  const std::lock_guard guard(lock);
  for (void* const block : refused) cudaFree(block);
  refused.clear();
  for (const auto& [device, pool] : pools) cudaMemPoolTrimTo(pool, 0);
}
