// Memory pools of the CUDA face: each is a stream_pool.h, which gives back what is freed and done when the host has waited for
// work, but for as many bytes as its release threshold says. Each device has one of its own, its default pool.
#include "spec/cuda_face/face_pools.h"

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
  bool is_current = false;    ///< its device's pool, in place of the default one
  bool is_destroyed = false;  ///< what is allocated from it stays
  std::uint64_t release_threshold = 0;
  bool follows_events = true;
  bool adds_waits = true;
  StreamPool::Limits limits;
  StreamPool memory;
};
struct Pools {
  Mutex lock;
  std::uint64_t attachment ASHLAR_GUARDED_BY(lock) = 0;
  std::vector<std::unique_ptr<Pool>> all ASHLAR_GUARDED_BY(lock);
};
Pools pools;

MemoryPool pointer_to(Pool* pool) { return reinterpret_cast<MemoryPool>(pool); }

/// The first pool of the machine that is attached of which call(pool) is true; null if there is none.
template <class Call>
Pool* find_pool(Call&& call) ASHLAR_REQUIRES(pools.lock) {
  if (pools.attachment != attachment()) return nullptr;
  const auto found = std::find_if(pools.all.begin(), pools.all.end(),
                                  [&](const std::unique_ptr<Pool>& each) { return call(*each); });
  return found == pools.all.end() ? nullptr : found->get();
}

Pool* pool_at(MemoryPool pool) {
  const MutexGuard guard(pools.lock);
  return find_pool([&](Pool& each) { return pointer_to(&each) == pool && !each.is_destroyed; });
}

/// Makes the call on the pool, with a device's context current.
template <class Call>
CallResult on_pool(MemoryPool handle, Call&& call) {
  return on_current([&](device::Device& on) {
    Pool* const pool = pool_at(handle);
    return pool == nullptr ? CallResult{kErrorInvalidValue} : call(*pool, on);
  });
}

/// A new pool of that device.
Pool* add_pool(std::int32_t device) ASHLAR_REQUIRES(pools.lock) {
  if (pools.attachment != attachment()) pools.all.clear();
  pools.attachment = attachment();
  pools.all.push_back(std::make_unique<Pool>());
  pools.all.back()->device = device;
  return pools.all.back().get();
}

Pool* default_pool(std::int32_t device) ASHLAR_REQUIRES(pools.lock) {
  Pool* pool = find_pool([&](Pool& each) { return each.is_default && each.device == device; });
  if (pool == nullptr) pool = add_pool(device);
  pool->is_default = true;
  return pool;
}

Pool* current_pool(std::int32_t device) ASHLAR_REQUIRES(pools.lock) {
  Pool* const set = find_pool([&](Pool& each) { return each.is_current && each.device == device; });
  return set != nullptr ? set : default_pool(device);
}

bool is_device(DeviceNumber device) {
  return device >= 0 && static_cast<std::uint32_t>(device) < machine()->device_count();
}

CallResult allocate(DevicePointer* base, std::size_t size, Pool& pool, device::Device& on,
                    StreamPointer stream) {
  const Result<Stream> asked = stream_outside_captures(on, handle_of(stream));
  if (!asked.is_ok()) return result_of(asked.status());
  StreamPool::Limits limits;
  {
    const MutexGuard guard(pools.lock);
    limits = pool.limits;
  }
  device::Device& of_pool = machine()->device(DeviceId{pool.device});
  return store(base, pool.memory.allocate(of_pool, Bytes{size}, asked.value(), limits));
}

}  // namespace

CallResult device_get_default_mem_pool(MemoryPool* pool, DeviceNumber device) {
  return on_current([&](device::Device&) {
    if (!is_device(device)) return CallResult{kErrorInvalidDevice};
    const MutexGuard guard(pools.lock);
    *pool = pointer_to(default_pool(device));
    return CallResult{kSuccess};
  });
}

CallResult device_get_mem_pool(MemoryPool* pool, DeviceNumber device) {
  return on_current([&](device::Device&) {
    if (!is_device(device)) return CallResult{kErrorInvalidDevice};
    const MutexGuard guard(pools.lock);
    *pool = pointer_to(current_pool(device));
    return CallResult{kSuccess};
  });
}

CallResult device_set_mem_pool(DeviceNumber device, MemoryPool pool) {
  return on_pool(pool, [&](Pool& set, device::Device&) {
    if (!is_device(device)) return CallResult{kErrorInvalidDevice};
    if (set.device != device) return CallResult{kErrorInvalidValue};
    const MutexGuard guard(pools.lock);
    current_pool(device)->is_current = false;
    set.is_current = true;
    return CallResult{kSuccess};
  });
}

CallResult pool_create(MemoryPool* pool, const PoolProperties* properties) {
  if (properties->type != PoolProperties{}.type || properties->handle_types != 0 ||
      properties->location.type != MemoryLocation{}.type || properties->usage != 0)
    return kErrorInvalidValue;
  return on_current([&](device::Device&) {
    if (!is_device(properties->location.id)) return CallResult{kErrorInvalidValue};
    const MutexGuard guard(pools.lock);
    Pool* const added = add_pool(properties->location.id);
    if (properties->size_max != 0) added->limits.size_max = Bytes{properties->size_max};
    *pool = pointer_to(added);
    return CallResult{kSuccess};
  });
}

CallResult pool_destroy(MemoryPool pool) {
  return on_pool(pool, [&](Pool& ends, device::Device&) {
    if (ends.is_default) return CallResult{kErrorInvalidValue};
    ends.memory.trim(Bytes{});
    const MutexGuard guard(pools.lock);
    ends.is_destroyed = true;
    ends.is_current = false;
    ends.release_threshold = 0;
    return CallResult{kSuccess};
  });
}

CallResult pool_set_attribute(MemoryPool pool, int attribute, void* value) {
  return on_pool(pool, [&](Pool& of, device::Device&) {
    const bool is_flag = attribute >= kPoolReusesAlongEvents && attribute <= kPoolAddsWaits;
    const int flag = is_flag ? *static_cast<const int*>(value) : 0;
    const std::uint64_t number = is_flag ? 0 : *static_cast<const std::uint64_t*>(value);
    const bool is_peak = attribute == kPoolReservedBytesPeak || attribute == kPoolUsedBytesPeak;
    if ((is_peak && number != 0) || (is_flag && flag != 0 && flag != 1))
      return CallResult{kErrorInvalidValue};
    const MutexGuard guard(pools.lock);
    if (attribute == kPoolReusesComplete) of.limits.reuses_complete = flag != 0;
    else if (attribute == kPoolReleaseThreshold) of.release_threshold = number;
    else if (attribute == kPoolReservedBytesPeak) of.memory.reset_reserved_peak();
    else if (attribute == kPoolUsedBytesPeak) of.memory.reset_used_peak();
    else if (attribute == kPoolReusesAlongEvents) of.follows_events = flag != 0;
    else if (attribute == kPoolAddsWaits) of.adds_waits = flag != 0;
    else return CallResult{kErrorInvalidValue};
    return CallResult{kSuccess};
  });
}

CallResult pool_get_attribute(MemoryPool pool, int attribute, void* value) {
  return on_pool(pool, [&](Pool& of, device::Device&) {
    const MutexGuard guard(pools.lock);
    const StreamPool::Use use = of.memory.use();
    const auto number = [&](std::uint64_t is) { *static_cast<std::uint64_t*>(value) = is; };
    const auto flag = [&](bool is) { *static_cast<int*>(value) = is ? 1 : 0; };
    switch (attribute) {
      case kPoolReusesAlongEvents: flag(of.follows_events); break;
      case kPoolAddsWaits: flag(of.adds_waits); break;
      case kPoolReusesComplete: flag(of.limits.reuses_complete); break;
      case kPoolReleaseThreshold: number(of.release_threshold); break;
      case kPoolReservedBytes: number(use.reserved.count()); break;
      case kPoolReservedBytesPeak: number(use.reserved_peak.count()); break;
      case kPoolUsedBytes: number(use.used.count()); break;
      case kPoolUsedBytesPeak: number(use.used_peak.count()); break;
      default: return CallResult{kErrorInvalidValue};
    }
    return CallResult{kSuccess};
  });
}

CallResult pool_trim_to(MemoryPool pool, std::size_t keep) {
  return on_pool(pool, [&](Pool& of, device::Device&) {
    of.memory.trim(Bytes{keep});
    return CallResult{kSuccess};
  });
}

CallResult mem_alloc_from_pool_async(DevicePointer* base, std::size_t size, MemoryPool pool,
                                     StreamPointer stream) {
  return on_pool(pool, [&](Pool& of, device::Device& on) {
    if (size == 0) return CallResult{kErrorInvalidValue};
    return allocate(base, size, of, on, stream);
  });
}

CallResult mem_alloc_async(DevicePointer* base, std::size_t size, StreamPointer stream) {
  return on_current([&](device::Device& on) {
    if (size == 0) return CallResult{kErrorInvalidValue};
    Pool* pool = nullptr;
    {
      const MutexGuard guard(pools.lock);
      pool = current_pool(on.traits().id.value());
    }
    return allocate(base, size, *pool, on, stream);
  });
}

CallResult mem_free_async(DevicePointer base, StreamPointer stream) {
  return on_current([&](device::Device& on) {
    const Result<Stream> asked = stream_outside_captures(on, handle_of(stream));
    if (!asked.is_ok()) return result_of(asked.status());
    Status freed{Code::kInvalidArgument, "memory of no pool"};
    const MutexGuard guard(pools.lock);
    find_pool([&](Pool& each) {
      freed = each.memory.free_behind(on, Address{base}, asked.value());
      return freed.code() != Code::kInvalidArgument;
    });
    return result_of(freed);
  });
}

std::int32_t device_of(MemoryPool pool) {
  const Pool* const found = pool_at(pool);
  return found == nullptr ? -1 : found->device;
}

std::size_t live_pools() {
  const MutexGuard guard(pools.lock);
  std::size_t live = 0;
  find_pool([&](Pool& each) {
    live += !each.is_default && !each.is_destroyed ? 1 : 0;
    return false;
  });
  return live;
}

bool pools_add_waits() {
  const MutexGuard guard(pools.lock);
  return nullptr != find_pool([](Pool& each) {
           return !each.is_default && !each.is_destroyed && each.adds_waits;
         });
}

bool free_from_pools(Address base, Status* freed) {
  const MutexGuard guard(pools.lock);
  return nullptr != find_pool([&](Pool& each) {
           *freed = each.memory.free_now(base);
           return freed->code() != Code::kInvalidArgument;
         });
}

void trim_at_synchronization() {
  const MutexGuard guard(pools.lock);
  find_pool([](Pool& each) {
    each.memory.trim(Bytes{each.release_threshold});
    return false;
  });
}

std::span<const FaceFunction> pool_functions() {
  static const FaceFunction kFunctions[] = {
      {"cuMemPoolCreate", 11020, pointer_of(pool_create)},
      {"cuMemPoolDestroy", 11020, pointer_of(pool_destroy)},
      {"cuMemPoolSetAttribute", 11020, pointer_of(pool_set_attribute)},
      {"cuMemPoolGetAttribute", 11020, pointer_of(pool_get_attribute)},
      {"cuMemPoolTrimTo", 11020, pointer_of(pool_trim_to)},
      {"cuMemAllocFromPoolAsync", 11020, pointer_of(mem_alloc_from_pool_async)},
      {"cuDeviceGetDefaultMemPool", 11020, pointer_of(device_get_default_mem_pool)},
      {"cuDeviceGetMemPool", 11020, pointer_of(device_get_mem_pool)},
      {"cuDeviceSetMemPool", 11020, pointer_of(device_set_mem_pool)},
      {"cuMemAllocAsync", 11020, pointer_of(mem_alloc_async)},
      {"cuMemFreeAsync", 11020, pointer_of(mem_free_async)},
  };
  return kFunctions;
}

}  // namespace ashlar::spec::cuda_face
