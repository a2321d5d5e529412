// Memory pools of the driver's interface: each is a stream_pool.h, with a release threshold that keeps what is freed.
//
// Thread safety: any thread.
#include <algorithm>
#include <memory>
#include <vector>

#include <ashlar/base/mutex.h>

#include "spec/cuda_face/face_calls.h"
#include "spec/cuda_face/stream_pool.h"

namespace ashlar::spec::cuda_face {
namespace {

struct Pool {
  std::int32_t device = 0;
  bool is_destroyed = false;  ///< what is allocated from it stays
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
  return std::any_of(pools.all.begin(), pools.all.end(),
                     [&](const std::unique_ptr<Pool>& each) { return call(*each); });
}

CallResult pool_create(MemoryPool* pool, const PoolProperties* properties) {
  if (properties->type != PoolProperties{}.type || properties->handle_types != 0 ||
      properties->location.type != MemoryLocation{}.type)
    return kErrorInvalidValue;
  return on_current([&](device::Device&) {
    const MutexGuard guard(pools.lock);
    if (pools.attachment != attachment()) pools.all.clear();
    pools.attachment = attachment();
    pools.all.push_back(std::make_unique<Pool>());
    pools.all.back()->device = properties->location.id;
    *pool = reinterpret_cast<MemoryPool>(pools.all.back().get());
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
  const bool keeps = *static_cast<const std::uint64_t*>(value) == ~std::uint64_t{0};
  return on_current([&](device::Device&) {
    const bool is_known = pool != nullptr && attribute == kPoolReleaseThreshold && keeps;
    return is_known ? CallResult{kSuccess} : CallResult{kErrorInvalidValue};
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

bool free_from_pools(Address base, Status* freed) {
  return any_pool([&](Pool& each) {
    *freed = each.memory.free_now(base);
    return freed->code() != Code::kInvalidArgument;
  });
}

std::span<const FaceFunction> pool_functions() {
  static const FaceFunction kFunctions[] = {
      {"cuMemPoolCreate", 11020, pointer_of(pool_create)},
      {"cuMemPoolDestroy", 11020, pointer_of(pool_destroy)},
      {"cuMemPoolSetAttribute", 11020, pointer_of(pool_set_attribute)},
      {"cuMemPoolTrimTo", 11020, pointer_of(pool_trim_to)},
      {"cuMemAllocFromPoolAsync", 11020, pointer_of(mem_alloc_from_pool_async)},
      {"cuMemFreeAsync", 11020, pointer_of(mem_free_async)},
  };
  return kFunctions;
}

}  // namespace ashlar::spec::cuda_face
