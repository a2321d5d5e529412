// Memory pools of the driver's interface: each is a stream_pool.h, which keeps what is freed, or gives it back when the host waits
// for work, as its release threshold says. Each device has one of its own, its default pool.
//
// Thread safety: any thread.
#include <algorithm>
#include <memory>
#include <vector>

#include <ashlar/base/mutex.h>

#include "spec/cuda_face/face_calls.h"
#include "spec/gpu/stream_pool.h"

namespace ashlar::spec::cuda_face {
namespace {

struct Pool {
  std::int32_t device = 0;
  bool is_default = false;    ///< its device's
  bool is_destroyed = false;  ///< what is allocated from it stays
  bool keeps = false;         ///< its release threshold is above everything
  StreamPool memory;
};
struct Pools {
  Mutex lock;
  std::uint64_t attachment ASHLAR_GUARDED_BY(lock) = 0;
  std::vector<std::unique_ptr<Pool>> all ASHLAR_GUARDED_BY(lock);
};
Pools pools;

Pool* pool_at(MemoryPool pool) { return reinterpret_cast<Pool*>(pool); }

/// Calls of every pool of the machine that is attached, until one answers true.
template <class Call>
bool any_pool(Call&& call) {
  const MutexGuard guard(pools.lock);
  if (pools.attachment != attachment()) return false;
  return std::any_of(pools.all.begin(), pools.all.end(),
                     [&](const std::unique_ptr<Pool>& each) { return call(*each); });
}

/// A new pool of that device.
Pool* add_pool(std::int32_t device) ASHLAR_REQUIRES(pools.lock) {
  if (pools.attachment != attachment()) pools.all.clear();
  pools.attachment = attachment();
  pools.all.push_back(std::make_unique<Pool>());
  pools.all.back()->device = device;
  return pools.all.back().get();
}

Pool* default_pool(std::int32_t device) {
  const MutexGuard guard(pools.lock);
  for (const std::unique_ptr<Pool>& each : pools.all) {
    if (pools.attachment == attachment() && each->is_default && each->device == device)
      return each.get();
  }
  Pool* const made_now = add_pool(device);
  made_now->is_default = true;
  return made_now;
}

CallResult device_get_default_mem_pool(MemoryPool* pool, DeviceNumber device) {
  return on_current([&](device::Device&) {
    if (device < 0 || static_cast<std::uint32_t>(device) >= machine()->device_count())
      return CallResult{kErrorInvalidDevice};
    *pool = reinterpret_cast<MemoryPool>(default_pool(device));
    return CallResult{kSuccess};
  });
}

CallResult pool_create(MemoryPool* pool, const PoolProperties* properties) {
  if (properties->type != PoolProperties{}.type || properties->handle_types != 0 ||
      properties->location.type != MemoryLocation{}.type)
    return kErrorInvalidValue;
  return on_current([&](device::Device&) {
    const MutexGuard guard(pools.lock);
    *pool = reinterpret_cast<MemoryPool>(add_pool(properties->location.id));
    return CallResult{kSuccess};
  });
}

CallResult pool_destroy(MemoryPool pool) {
  return on_current([&](device::Device&) {
    pool_at(pool)->memory.trim(Bytes{});
    pool_at(pool)->is_destroyed = true;
    return CallResult{kSuccess};
  });
}

CallResult pool_set_attribute(MemoryPool pool, int attribute, void* value) {
  const std::uint64_t threshold = *static_cast<const std::uint64_t*>(value);
  const bool keeps = threshold == ~std::uint64_t{0};
  return on_current([&](device::Device&) {
    // Of thresholds between nothing and everything there are none here.
    if (pool == nullptr || attribute != kPoolReleaseThreshold || (!keeps && threshold != 0))
      return CallResult{kErrorInvalidValue};
    pool_at(pool)->keeps = keeps;
    return CallResult{kSuccess};
  });
}

CallResult pool_trim_to(MemoryPool pool, std::size_t keep) {
  return on_current([&](device::Device&) {
    pool_at(pool)->memory.trim(Bytes{keep});
    return CallResult{kSuccess};
  });
}

CallResult mem_alloc_from_pool_async(DevicePointer* base, std::size_t size, MemoryPool pool,
                                     StreamPointer stream) {
  return on_current([&](device::Device& on) {
    if (size == 0 || pool_at(pool)->is_destroyed) return CallResult{kErrorInvalidValue};
    const Result<Stream> asked = stream_outside_captures(on, handle_of(stream));
    if (!asked.is_ok()) return result_of(asked.status());
    device::Device& of_pool = machine()->device(pool_at(pool)->device);
    return store(base, pool_at(pool)->memory.allocate(of_pool, Bytes{size}, asked.value()));
  });
}

CallResult mem_alloc_async(DevicePointer* base, std::size_t size, StreamPointer stream) {
  if (contexts().empty()) return kErrorInvalidContext;
  auto* const pool = reinterpret_cast<MemoryPool>(default_pool(current_device()));
  return mem_alloc_from_pool_async(base, size, pool, stream);
}

CallResult mem_free_async(DevicePointer base, StreamPointer stream) {
  return on_current([&](device::Device& on) {
    const Result<Stream> asked = stream_outside_captures(on, handle_of(stream));
    if (!asked.is_ok()) return result_of(asked.status());
    Status freed{Code::kInvalidArgument, "memory of no pool"};
    any_pool([&](Pool& each) {
      freed = each.memory.free_behind(on, Address{base}, asked.value());
      return freed.code() != Code::kInvalidArgument;
    });
    return result_of(freed);
  });
}

}  // namespace

std::size_t live_pools() {
  const MutexGuard guard(pools.lock);
  if (pools.attachment != attachment()) return 0;
  return static_cast<std::size_t>(std::count_if(
      pools.all.begin(), pools.all.end(),
      [](const std::unique_ptr<Pool>& each) { return !each->is_default && !each->is_destroyed; }));
}

bool free_from_pools(Address base, Status* freed) {
  return any_pool([&](Pool& each) {
    *freed = each.memory.free_now(base);
    return freed->code() != Code::kInvalidArgument;
  });
}

void trim_at_synchronization() {
  any_pool([](Pool& each) {
    if (!each.keeps) each.memory.trim(Bytes{});
    return false;
  });
}

std::span<const FaceFunction> pool_functions() {
  static const FaceFunction kFunctions[] = {
      {"cuMemPoolCreate", 11020, pointer_of(pool_create)},
      {"cuMemPoolDestroy", 11020, pointer_of(pool_destroy)},
      {"cuMemPoolSetAttribute", 11020, pointer_of(pool_set_attribute)},
      {"cuMemPoolTrimTo", 11020, pointer_of(pool_trim_to)},
      {"cuMemAllocFromPoolAsync", 11020, pointer_of(mem_alloc_from_pool_async)},
      {"cuDeviceGetDefaultMemPool", 11020, pointer_of(device_get_default_mem_pool)},
      {"cuMemAllocAsync", 11020, pointer_of(mem_alloc_async)},
      {"cuMemFreeAsync", 11020, pointer_of(mem_free_async)},
  };
  return kFunctions;
}

}  // namespace ashlar::spec::cuda_face
