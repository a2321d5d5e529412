// Stream-ordered memory of the runtime: the pools that the driver's functions have too (face_pools.h).
//
// A stream that captures is refused with cudaErrorNotSupported, for graphs here have no nodes of memory.
// Thread safety: any thread.
#include "spec/cuda_face/face_pools.h"

#include "spec/cuda_face/runtime_calls.h"

namespace ashlar::spec::cuda_runtime {
namespace {

/// An allocation by take(base), of a pool of that device.
template <class Take>
CallResult allocate(void** base, std::size_t size, int device, StreamPointer stream, Take&& take) {
  if (base == nullptr) return answer(kErrorInvalidValue);
  return on_device(device_of(stream), [&](device::Device&) {
    *base = nullptr;
    if (size == 0) return CallResult{kSuccess};
    DevicePointer made = 0;
    const CallResult result = take(&made);
    if (result != kSuccess) return result;
    *base = Address{made}.pointer();
    keep_device(*base, device);
    return result;
  });
}

/// The call, where what it writes has a place.
template <class Call>
CallResult where(const void* place, Call&& call) {
  if (place == nullptr) return answer(kErrorInvalidValue);
  return on_thread_device([&](device::Device&) { return call(); });
}

}  // namespace

void trim_pools() { cuda_face::trim_at_synchronization(); }

bool free_from_pool(void* base) {
  Status freed;
  if (!cuda_face::free_from_pools(Address::of(base), &freed) || !freed.is_ok()) return false;
  forget_device(base);
  return true;
}

CallResult cudaMallocAsync(void** base, std::size_t size, StreamPointer stream) {
  return allocate(base, size, device_of(stream), stream, [&](DevicePointer* made) {
    return cuda_face::mem_alloc_async(made, size, stream);
  });
}

CallResult cudaMallocFromPoolAsync(void** base, std::size_t size, MemoryPool pool,
                                   StreamPointer stream) {
  const int device = cuda_face::device_of(pool);
  if (device < 0) return answer(kErrorInvalidValue);
  return allocate(base, size, device, stream, [&](DevicePointer* made) {
    return cuda_face::mem_alloc_from_pool_async(made, size, pool, stream);
  });
}

CallResult cudaFreeAsync(void* base, StreamPointer stream) {
  if (base == nullptr) return kSuccess;
  return on_device(device_of(stream), [&](device::Device&) {
    const CallResult freed = cuda_face::mem_free_async(Address::of(base).value(), stream);
    if (freed == kSuccess) forget_device(base);
    return freed;
  });
}

CallResult cudaDeviceGetDefaultMemPool(MemoryPool* pool, int device) {
  return where(pool, [&] { return cuda_face::device_get_default_mem_pool(pool, device); });
}

CallResult cudaDeviceGetMemPool(MemoryPool* pool, int device) {
  return where(pool, [&] { return cuda_face::device_get_mem_pool(pool, device); });
}

CallResult cudaDeviceSetMemPool(int device, MemoryPool pool) {
  return where(pool, [&] { return cuda_face::device_set_mem_pool(device, pool); });
}

CallResult cudaMemPoolCreate(MemoryPool* pool, const PoolProperties* properties) {
  if (properties == nullptr) return answer(kErrorInvalidValue);
  return where(pool, [&] { return cuda_face::pool_create(pool, properties); });
}

CallResult cudaMemPoolDestroy(MemoryPool pool) {
  return where(pool, [&] { return cuda_face::pool_destroy(pool); });
}

CallResult cudaMemPoolSetAttribute(MemoryPool pool, int attribute, void* value) {
  return where(value, [&] { return cuda_face::pool_set_attribute(pool, attribute, value); });
}

CallResult cudaMemPoolGetAttribute(MemoryPool pool, int attribute, void* value) {
  return where(value, [&] { return cuda_face::pool_get_attribute(pool, attribute, value); });
}

CallResult cudaMemPoolTrimTo(MemoryPool pool, std::size_t keep) {
  return where(pool, [&] { return cuda_face::pool_trim_to(pool, keep); });
}

}  // namespace ashlar::spec::cuda_runtime
