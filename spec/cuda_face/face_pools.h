// Memory pools of the CUDA face, as the driver's and the runtime's interface have them, on the thread's current context.
//
// A pool that is none, is another machine's, or was destroyed is kErrorInvalidValue.
// Thread safety: any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "spec/cuda_face/cuda_face.h"

namespace ashlar::spec::cuda_face {

// CUmemPool_attribute, and the runtime's cudaMemPoolAttr, beside kPoolAddsWaits and kPoolReleaseThreshold. What pools reuse is an int
// that is 0 or 1; the others are 64 bits, and a peak may be set to 0 alone, which has it begin anew.
inline constexpr int kPoolReusesAlongEvents = 1;  ///< kept, and not modelled, as kPoolAddsWaits
inline constexpr int kPoolReusesComplete = 2;     ///< "opportunistic"
inline constexpr int kPoolReservedBytes = 5;
inline constexpr int kPoolReservedBytesPeak = 6;
inline constexpr int kPoolUsedBytes = 7;
inline constexpr int kPoolUsedBytesPeak = 8;

cuda::CallResult device_get_default_mem_pool(cuda::MemoryPool* pool, cuda::DeviceNumber device);
/// The pool of mem_alloc_async() there: the default one, until another is set.
cuda::CallResult device_get_mem_pool(cuda::MemoryPool* pool, cuda::DeviceNumber device);
cuda::CallResult device_set_mem_pool(cuda::DeviceNumber device, cuda::MemoryPool pool);

cuda::CallResult pool_create(cuda::MemoryPool* pool, const cuda::PoolProperties* properties);
/// What is allocated from it stays until it is freed. A default pool cannot be destroyed.
cuda::CallResult pool_destroy(cuda::MemoryPool pool);
cuda::CallResult pool_set_attribute(cuda::MemoryPool pool, int attribute, void* value);
cuda::CallResult pool_get_attribute(cuda::MemoryPool pool, int attribute, void* value);
cuda::CallResult pool_trim_to(cuda::MemoryPool pool, std::size_t keep);

cuda::CallResult mem_alloc_from_pool_async(cuda::DevicePointer* base, std::size_t size,
                                           cuda::MemoryPool pool, cuda::StreamPointer stream);
cuda::CallResult mem_alloc_async(cuda::DevicePointer* base, std::size_t size,
                                 cuda::StreamPointer stream);
cuda::CallResult mem_free_async(cuda::DevicePointer base, cuda::StreamPointer stream);

/// The device whose memory the pool has; -1: it is no pool.
std::int32_t device_of(cuda::MemoryPool pool);

}  // namespace ashlar::spec::cuda_face
