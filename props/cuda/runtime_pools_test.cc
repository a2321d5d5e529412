// Memory pools that a program makes, by the runtime's functions and the driver's (spec/cuda_face/face_pools.cc): what each keeps,
// counts and refuses, and which pool an allocation is of.
//
// Imitates: cudaMemPoolCreate and its neighbours as their documentation describes them, without access by peers and handles of
// other processes. Does not prove: that a driver's pool places memory so.
#include <cstdint>

#include "props/cuda/runtime_machine.h"
#include "spec/cuda_face/face_pools.h"

namespace ashlar {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace): the answers
namespace rt = spec::cuda_runtime;
namespace face = spec::cuda_face;

constexpr std::size_t kMiB = 1 << 20;

class CudaRuntimePools : public props::RuntimeMachine {
 protected:
  MemoryPool make(int device = 0, std::size_t size_max = 0) {
    PoolProperties properties;
    properties.location.id = device;
    properties.size_max = size_max;
    MemoryPool pool = nullptr;
    EXPECT_EQ(rt::cudaMemPoolCreate(&pool, &properties), kSuccess);
    return pool;
  }
  static void set(MemoryPool pool, int attribute, std::uint64_t value) {
    EXPECT_EQ(rt::cudaMemPoolSetAttribute(pool, attribute, &value), kSuccess);
  }
  static std::uint64_t get(MemoryPool pool, int attribute) {
    std::uint64_t value = 0;
    EXPECT_EQ(rt::cudaMemPoolGetAttribute(pool, attribute, &value), kSuccess);
    return value;
  }
  static void* take(MemoryPool pool, StreamPointer on, std::size_t size = kMiB) {
    void* made = nullptr;
    EXPECT_EQ(rt::cudaMallocFromPoolAsync(&made, size, pool, on), kSuccess);
    return made;
  }
  static void give(void* memory, StreamPointer on) {
    EXPECT_EQ(rt::cudaFreeAsync(memory, on), kSuccess);
  }
  /// All work ends, without a synchronisation that a pool would see.
  void end_work() { EXPECT_EQ(gpu_.drain_all().code(), Code::kOk); }
};

TEST_F(CudaRuntimePools, WhatOnePoolFreedIsNotAnothers) {
  const StreamPointer on = stream();
  const MemoryPool first = make();
  const MemoryPool second = make();
  set(first, kPoolReleaseThreshold, ~std::uint64_t{0});
  void* const at = take(first, on);
  give(at, on);
  EXPECT_NE(take(second, on), at);
  EXPECT_EQ(take(first, on), at);
  void* of_default = nullptr;
  give(at, on);
  EXPECT_EQ(rt::cudaMallocAsync(&of_default, kMiB, on), kSuccess);
  EXPECT_NE(of_default, at);
}

TEST_F(CudaRuntimePools, ASynchronisationLeavesAsMuchAsTheThreshold) {
  const StreamPointer on = stream();
  const MemoryPool pool = make();
  void* const blocks[] = {take(pool, on), take(pool, on), take(pool, on)};
  for (void* const block : blocks) give(block, on);
  set(pool, kPoolReleaseThreshold, kMiB + 1);
  EXPECT_EQ(get(pool, kPoolReleaseThreshold), kMiB + 1);
  EXPECT_EQ(rt::cudaStreamSynchronize(on), kSuccess);
  EXPECT_EQ(segments(), 1u) << "two would be more than the threshold";
  EXPECT_EQ(rt::cudaMemPoolTrimTo(pool, kMiB), kSuccess);
  EXPECT_EQ(segments(), 1u);
  EXPECT_EQ(rt::cudaMemPoolTrimTo(pool, kMiB - 1), kSuccess);
  EXPECT_EQ(segments(), 0u);
}

TEST_F(CudaRuntimePools, APoolCountsWhatIsUsedAndWhatItHas) {
  const StreamPointer on = stream();
  const MemoryPool pool = make();
  void* const small = take(pool, on, kMiB);
  void* const large = take(pool, on, 3 * kMiB);
  give(large, on);
  EXPECT_EQ(get(pool, face::kPoolUsedBytes), kMiB);
  EXPECT_EQ(get(pool, face::kPoolUsedBytesPeak), 4 * kMiB);
  EXPECT_EQ(get(pool, face::kPoolReservedBytes), 4 * kMiB);
  end_work();
  EXPECT_EQ(rt::cudaMemPoolTrimTo(pool, 0), kSuccess);
  EXPECT_EQ(get(pool, face::kPoolReservedBytes), kMiB);
  EXPECT_EQ(get(pool, face::kPoolReservedBytesPeak), 4 * kMiB);
  set(pool, face::kPoolReservedBytesPeak, 0);
  EXPECT_EQ(get(pool, face::kPoolReservedBytesPeak), kMiB);
  EXPECT_EQ(get(pool, face::kPoolUsedBytesPeak), 4 * kMiB);
  set(pool, face::kPoolUsedBytesPeak, 0);
  EXPECT_EQ(get(pool, face::kPoolUsedBytesPeak), kMiB);
  EXPECT_EQ(rt::cudaFree(small), kSuccess);
  EXPECT_EQ(get(pool, face::kPoolUsedBytes), 0u);
  EXPECT_EQ(get(pool, face::kPoolReservedBytes), 0u);
  EXPECT_EQ(get(pool, face::kPoolUsedBytesPeak), kMiB);
}

TEST_F(CudaRuntimePools, WithoutOpportunisticReuseAStreamHasItsOwnFreedMemoryAlone) {
  const StreamPointer on = stream();
  const StreamPointer other = stream();
  const MemoryPool pool = make();
  int is_on = 1;
  EXPECT_EQ(rt::cudaMemPoolGetAttribute(pool, face::kPoolReusesComplete, &is_on), kSuccess);
  EXPECT_EQ(is_on, 1);
  is_on = 0;
  EXPECT_EQ(rt::cudaMemPoolSetAttribute(pool, face::kPoolReusesComplete, &is_on), kSuccess);
  void* const at = take(pool, on);
  give(at, on);
  end_work();
  void* const apart = take(pool, other);
  EXPECT_NE(apart, at);
  EXPECT_EQ(take(pool, on), at);
  is_on = 1;
  EXPECT_EQ(rt::cudaMemPoolSetAttribute(pool, face::kPoolReusesComplete, &is_on), kSuccess);
  give(at, on);
  end_work();
  EXPECT_EQ(take(pool, other), at);
}

TEST_F(CudaRuntimePools, APoolHasNoMoreThanItMay) {
  const StreamPointer on = stream();
  const MemoryPool pool = make(0, 3 * kMiB);
  void* const at = take(pool, on, 2 * kMiB);
  void* refused = nullptr;
  EXPECT_EQ(rt::cudaMallocFromPoolAsync(&refused, kMiB + 1, pool, on), kErrorOutOfMemory);
  EXPECT_EQ(rt::cudaMallocFromPoolAsync(&refused, 4 * kMiB, pool, on), kErrorOutOfMemory);
  EXPECT_EQ(refused, nullptr);
  EXPECT_NE(take(pool, on, kMiB), nullptr) << "all that it may have";
  give(at, on);
  end_work();
  EXPECT_NE(take(pool, on, kMiB + 1), nullptr) << "what is freed makes room";
  EXPECT_EQ(segments(), 2u);
}

TEST_F(CudaRuntimePools, ADestroyedPoolGivesAwayNoMoreAndItsMemoryStays) {
  const StreamPointer on = stream();
  const MemoryPool pool = make();
  set(pool, kPoolReleaseThreshold, ~std::uint64_t{0});
  void* const used = take(pool, on);
  give(take(pool, on, 512), on);
  end_work();
  EXPECT_EQ(face::live_pools(), 1u);
  EXPECT_EQ(rt::cudaMemPoolDestroy(pool), kSuccess);
  EXPECT_EQ(face::live_pools(), 0u);
  EXPECT_EQ(segments(), 1u) << "what was free went with it";
  void* refused = nullptr;
  EXPECT_EQ(rt::cudaMallocFromPoolAsync(&refused, 512, pool, on), kErrorInvalidValue);
  EXPECT_EQ(rt::cudaMemPoolTrimTo(pool, 0), kErrorInvalidValue);
  EXPECT_EQ(rt::cudaMemPoolDestroy(pool), kErrorInvalidValue) << "twice";
  give(used, on);
  EXPECT_EQ(rt::cudaStreamSynchronize(on), kSuccess);
  EXPECT_EQ(segments(), 0u);
  EXPECT_EQ(gpu_.ledger().events.count, 0u);
}

TEST_F(CudaRuntimePools, TheDevicesPoolIsTheOneThatWasSet) {
  const StreamPointer on = stream();
  MemoryPool own = nullptr;
  MemoryPool now = nullptr;
  EXPECT_EQ(rt::cudaDeviceGetDefaultMemPool(&own, 0), kSuccess);
  EXPECT_EQ(rt::cudaDeviceGetMemPool(&now, 0), kSuccess);
  EXPECT_EQ(now, own);
  const MemoryPool pools[] = {make(), make()};
  for (const MemoryPool pool : pools) {
    EXPECT_EQ(rt::cudaDeviceSetMemPool(0, pool), kSuccess);
    EXPECT_EQ(rt::cudaDeviceGetMemPool(&now, 0), kSuccess);
    EXPECT_EQ(now, pool);
    void* at = nullptr;
    EXPECT_EQ(rt::cudaMallocAsync(&at, kMiB, on), kSuccess);
    EXPECT_EQ(get(pool, face::kPoolUsedBytes), kMiB);
  }
  EXPECT_EQ(rt::cudaMemPoolDestroy(pools[1]), kSuccess);
  EXPECT_EQ(rt::cudaDeviceGetMemPool(&now, 0), kSuccess);
  EXPECT_EQ(now, own) << "the default one comes back";
  EXPECT_EQ(rt::cudaDeviceSetMemPool(0, pools[0]), kSuccess);
  EXPECT_EQ(rt::cudaDeviceSetMemPool(0, own), kSuccess);
  EXPECT_EQ(rt::cudaDeviceGetMemPool(&now, 0), kSuccess);
  EXPECT_EQ(now, own);
}

TEST_F(CudaRuntimePools, MemoryIsOfThePoolsDevice) {
  const MemoryPool there = make(1);
  void* const at = take(there, stream());
  EXPECT_EQ(gpu_.ledger(DeviceId{1}).segments.count, 1u);
  EXPECT_EQ(rt::cudaFree(at), kSuccess);
  EXPECT_EQ(gpu_.ledger(DeviceId{1}).segments.count, 0u);
  EXPECT_EQ(rt::cudaDeviceSetMemPool(0, there), kErrorInvalidValue) << "of another device";
  EXPECT_EQ(rt::cudaDeviceSetMemPool(2, there), kErrorInvalidDevice);
}

TEST_F(CudaRuntimePools, WhatCannotBeIsRefused) {
  PoolProperties properties;
  MemoryPool pool = nullptr;
  EXPECT_EQ(rt::cudaMemPoolCreate(nullptr, &properties), kErrorInvalidValue);
  EXPECT_EQ(rt::cudaMemPoolCreate(&pool, nullptr), kErrorInvalidValue);
  for (int PoolProperties::*const field : {&PoolProperties::type, &PoolProperties::handle_types}) {
    PoolProperties bad = properties;
    bad.*field = 7;
    EXPECT_EQ(rt::cudaMemPoolCreate(&pool, &bad), kErrorInvalidValue);
  }
  properties.location.id = 2;
  EXPECT_EQ(rt::cudaMemPoolCreate(&pool, &properties), kErrorInvalidValue) << "no such device";
  EXPECT_EQ(pool, nullptr);
  EXPECT_EQ(rt::cudaDeviceGetDefaultMemPool(&pool, 2), kErrorInvalidDevice);
  EXPECT_EQ(rt::cudaDeviceGetMemPool(&pool, -1), kErrorInvalidDevice);
  EXPECT_EQ(rt::cudaDeviceGetDefaultMemPool(nullptr, 0), kErrorInvalidValue);
  EXPECT_EQ(rt::cudaDeviceGetDefaultMemPool(&pool, 0), kSuccess);
  EXPECT_EQ(rt::cudaMemPoolDestroy(pool), kErrorInvalidValue) << "a default pool stays";
  std::uint64_t value = 1;
  EXPECT_EQ(rt::cudaMemPoolSetAttribute(pool, face::kPoolUsedBytesPeak, &value),
            kErrorInvalidValue);
  value = 2;
  for (const int attribute : {0, face::kPoolReusesComplete, face::kPoolReservedBytes, 9})
    EXPECT_EQ(rt::cudaMemPoolSetAttribute(pool, attribute, &value), kErrorInvalidValue)
        << attribute;
  for (const int attribute : {0, 9})
    EXPECT_EQ(rt::cudaMemPoolGetAttribute(pool, attribute, &value), kErrorInvalidValue);
  EXPECT_EQ(rt::cudaMemPoolGetAttribute(pool, 4, nullptr), kErrorInvalidValue);
  void* at = nullptr;
  EXPECT_EQ(rt::cudaMallocFromPoolAsync(&at, 512, nullptr, nullptr), kErrorInvalidValue);
  EXPECT_EQ(rt::cudaMallocFromPoolAsync(nullptr, 512, pool, nullptr), kErrorInvalidValue);
  EXPECT_EQ(rt::cudaMallocFromPoolAsync(&at, 0, pool, nullptr), kSuccess);
  EXPECT_EQ(at, nullptr);
  EXPECT_EQ(rt::cudaGetLastError(), kErrorInvalidValue);
}

TEST_F(CudaRuntimePools, AnotherMachinesPoolIsNone) {
  const MemoryPool pool = make();
  spec::SimGpu other(options());
  face::attach(&other);
  void* at = nullptr;
  EXPECT_EQ(rt::cudaMallocFromPoolAsync(&at, 512, pool, nullptr), kErrorInvalidValue);
  EXPECT_EQ(face::live_pools(), 0u);
  face::attach(nullptr);
}

TEST_F(CudaRuntimePools, TheDriversFunctionsAndTheRuntimesHaveTheSamePools) {
  const StreamPointer on = stream();
  MemoryPool pool = nullptr;
  EXPECT_EQ(rt::cudaDeviceGetDefaultMemPool(&pool, 0), kSuccess);
  void* at = nullptr;
  EXPECT_EQ(rt::cudaMallocAsync(&at, kMiB, on), kSuccess);
  face::make_current(0);
  std::uint64_t used = 0;
  EXPECT_EQ(face::pool_get_attribute(pool, face::kPoolUsedBytes, &used), kSuccess);
  EXPECT_EQ(used, kMiB);
  EXPECT_EQ(face::mem_free_async(Address::of(at).value(), on), kSuccess);
  face::make_current(-1);
  EXPECT_EQ(get(pool, face::kPoolUsedBytes), 0u);
}

}  // namespace
}  // namespace ashlar
