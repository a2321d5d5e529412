// The allocators of a GPU that replay a trace beside each other: Ashlar's, and the driver's two.
//
// Thread safety: one thread, in whose context the session is. bench/adapters/adapter.h says what an adapter is.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ashlar/cache/caching_allocator.h>
#include <ashlar/cuda/driver_lookup.h>

#include "bench/adapters/adapter.h"
#include "props/on_gpu/gpu_session.h"

namespace ashlar::bench {

/// The driver's functions of memory. Source: "CUDA Driver API", version 13.0, chapters 7.13 and 7.15.
struct DriverMemory {
  using CallResult = cuda::CallResult;
  using Pool = struct MemoryPoolTag*;

  CallResult (*alloc)(cuda::DevicePointer* base, std::size_t size) = nullptr;
  CallResult (*free)(cuda::DevicePointer base) = nullptr;
  CallResult (*alloc_async)(cuda::DevicePointer* base, std::size_t size,
                            cuda::StreamPointer stream) = nullptr;
  CallResult (*free_async)(cuda::DevicePointer base, cuda::StreamPointer stream) = nullptr;
  CallResult (*default_pool)(Pool* pool, cuda::DeviceNumber device) = nullptr;
  CallResult (*set_pool_attribute)(Pool pool, int attribute, void* value) = nullptr;

  Status load(const char* library) {
    cuda::DriverLookup in;
    if (const Status opened = in.open(library); !opened.is_ok()) return opened;
    in.need(alloc, 3020, "the CUDA driver lacks cuMemAlloc");
    in.need(free, 3020, "the CUDA driver lacks cuMemFree");
    in.need(alloc_async, 11020, "the CUDA driver lacks cuMemAllocAsync");
    in.need(free_async, 11020, "the CUDA driver lacks cuMemFreeAsync");
    in.need(default_pool, 11020, "the CUDA driver lacks cuDeviceGetDefaultMemPool");
    in.need(set_pool_attribute, 11020, "the CUDA driver lacks cuMemPoolSetAttribute");
    return in.status();
  }
};

/// What all of them are given.
struct GpuForBench {
  props::GpuSession& session;
  DriverMemory memory;
  std::vector<Stream> streams;  ///< kStreamsMax of them
};

struct AshlarOnGpu {
  static constexpr const char* kName = "ashlar";
  using Handle = Address;

  explicit AshlarOnGpu(GpuForBench& gpu) : streams(gpu.streams) {
    device::Device* const devices[] = {&gpu.session.device()};
    auto made = cache::CachingAllocator::create(devices, cache::Config{});
    if (!made.is_ok()) give_up(kName, made.status().why());
    allocator = std::move(made).value();
  }
  Handle allocate(std::uint64_t bytes, unsigned stream) {
    const Result<Address> got = allocator->allocate(Bytes{bytes}, streams[stream]);
    if (!got.is_ok()) give_up(kName, got.status().why());
    return got.value();
  }
  void free(Handle handle, unsigned) {
    const Status status = allocator->free(handle);
    if (!status.is_ok()) give_up(kName, status.why());
  }

  std::unique_ptr<cache::CachingAllocator> allocator;
  const std::vector<Stream>& streams;
};

struct MemAlloc {
  static constexpr const char* kName = "cuMemAlloc";
  using Handle = cuda::DevicePointer;

  explicit MemAlloc(GpuForBench& gpu) : memory(gpu.memory) {}
  Handle allocate(std::uint64_t bytes, unsigned) {
    Handle made = 0;
    if (memory.alloc(&made, bytes) != cuda::kSuccess) give_up(kName, "refused");
    return made;
  }
  void free(Handle handle, unsigned) {
    if (memory.free(handle) != cuda::kSuccess) give_up(kName, "refused");
  }

  const DriverMemory& memory;
};

/// With all that is freed kept in the driver's pool, as frameworks set it.
struct MemAllocAsync {
  static constexpr const char* kName = "cuMemAllocAsync";
  using Handle = cuda::DevicePointer;
  static constexpr int kReleaseThreshold = 4;  // CU_MEMPOOL_ATTR_RELEASE_THRESHOLD

  explicit MemAllocAsync(GpuForBench& gpu) : memory(gpu.memory), streams(gpu.streams) {
    set_threshold(~std::uint64_t{0});
  }
  ~MemAllocAsync() { set_threshold(0); }
  MemAllocAsync(const MemAllocAsync&) = delete;
  MemAllocAsync& operator=(const MemAllocAsync&) = delete;

  Handle allocate(std::uint64_t bytes, unsigned stream) {
    Handle made = 0;
    if (memory.alloc_async(&made, bytes, pointer_of(stream)) != cuda::kSuccess)
      give_up(kName, "refused");
    return made;
  }
  void free(Handle handle, unsigned stream) {
    if (memory.free_async(handle, pointer_of(stream)) != cuda::kSuccess) give_up(kName, "refused");
  }
  cuda::StreamPointer pointer_of(unsigned stream) const {
    return reinterpret_cast<cuda::StreamPointer>(streams[stream].handle.value());
  }
  void set_threshold(std::uint64_t bytes) {
    DriverMemory::Pool pool = nullptr;
    if (memory.default_pool(&pool, 0) != cuda::kSuccess ||
        memory.set_pool_attribute(pool, kReleaseThreshold, &bytes) != cuda::kSuccess)
      give_up(kName, "its pool cannot be set");
  }

  const DriverMemory& memory;
  const std::vector<Stream>& streams;
};

}  // namespace ashlar::bench
