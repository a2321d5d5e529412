// The allocators of a GPU that replay a trace beside each other: Ashlar's, and the driver's two.
//
// Thread safety: one thread, in whose context the session is. bench/adapters/adapter.h says what an adapter is;
// here free() is told the stream as well, and an allocation for which the GPU lacks memory is the handle that names no block.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ashlar/cache/caching_allocator.h>
#include <ashlar/cuda/driver_lookup.h>
#include <ashlar/cuda/driver_table.h>

#include "bench/adapters/adapter.h"
#include "props/on_gpu/gpu_session.h"

namespace ashlar::bench {

/// The driver's functions of memory: the library's own table of them, and the two that it does not call. Source: "CUDA Driver API",
/// version 13.0, chapters 7.13 and 7.15.
struct DriverMemory {
  cuda::DriverTable driver;
  cuda::CallResult (*alloc_async)(cuda::DevicePointer* base, std::size_t size,
                                  cuda::StreamPointer stream) = nullptr;
  cuda::CallResult (*default_pool)(cuda::MemoryPool* pool, cuda::DeviceNumber device) = nullptr;

  Status load(const char* library) {
    if (const Status loaded = cuda::load_driver(library, &driver); !loaded.is_ok()) return loaded;
    if (!driver.has_stream_memory())
      return {Code::kUnsupported, "the CUDA driver has no memory pools"};
    cuda::DriverLookup in;
    if (const Status opened = in.open(library); !opened.is_ok()) return opened;
    in.need(alloc_async, 11020, "the CUDA driver lacks cuMemAllocAsync");
    in.need(default_pool, 11020, "the CUDA driver lacks cuDeviceGetDefaultMemPool");
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
    if (got.code() == Code::kOutOfMemory) return Handle();
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

/// Is the memory there? The driver may have too little; any other refusal ends the run.
inline bool is_given(const char* adapter, cuda::CallResult answer) {
  if (answer != cuda::kSuccess && answer != cuda::kErrorOutOfMemory) give_up(adapter, "refused");
  return answer == cuda::kSuccess;
}

struct MemAlloc {
  static constexpr const char* kName = "cuMemAlloc";
  using Handle = cuda::DevicePointer;

  explicit MemAlloc(GpuForBench& gpu) : memory(gpu.memory) {}
  Handle allocate(std::uint64_t bytes, unsigned) {
    Handle made = 0;
    return is_given(kName, memory.driver.memory.alloc(&made, bytes)) ? made : 0;
  }
  void free(Handle handle, unsigned) {
    if (memory.driver.memory.free(handle) != cuda::kSuccess) give_up(kName, "refused");
  }

  const DriverMemory& memory;
};

/// With all that is freed kept in the driver's pool, as frameworks set it.
struct MemAllocAsync {
  static constexpr const char* kName = "cuMemAllocAsync";
  using Handle = cuda::DevicePointer;

  explicit MemAllocAsync(GpuForBench& gpu) : memory(gpu.memory), streams(gpu.streams) {
    set_threshold(~std::uint64_t{0});
  }
  ~MemAllocAsync() { set_threshold(0); }
  MemAllocAsync(const MemAllocAsync&) = delete;
  MemAllocAsync& operator=(const MemAllocAsync&) = delete;

  Handle allocate(std::uint64_t bytes, unsigned stream) {
    Handle made = 0;
    return is_given(kName, memory.alloc_async(&made, bytes, pointer_of(stream))) ? made : 0;
  }
  void free(Handle handle, unsigned stream) {
    if (memory.driver.pools.free(handle, pointer_of(stream)) != cuda::kSuccess)
      give_up(kName, "refused");
  }
  cuda::StreamPointer pointer_of(unsigned stream) const {
    return reinterpret_cast<cuda::StreamPointer>(streams[stream].handle.value());
  }
  void set_threshold(std::uint64_t bytes) {
    cuda::MemoryPool pool = nullptr;
    if (memory.default_pool(&pool, 0) != cuda::kSuccess ||
        memory.driver.pools.set_attribute(pool, cuda::kPoolReleaseThreshold, &bytes) !=
            cuda::kSuccess)
      give_up(kName, "its pool cannot be set");
  }

  const DriverMemory& memory;
  const std::vector<Stream>& streams;
};

}  // namespace ashlar::bench
