// Compares what the runtime's face declares (spec/cuda_face/runtime_abi.h) with the toolkit's cuda_runtime_api.h: compiled where
// that is found, and wrong where it does not compile.
#include <cuda_runtime_api.h>

#include "props/cuda/abi_compare.h"
#include "spec/cuda_face/face_pools.h"
#include "spec/cuda_face/runtime_abi.h"

namespace ashlar::spec {
namespace {

static_assert(sizeof(cuda_runtime::CallResult) == sizeof(cudaError_t));
static_assert(sizeof(int) == sizeof(cudaStreamCaptureStatus));
static_assert(sizeof(int) == sizeof(cudaStreamCaptureMode));

ASHLAR_SAME_VALUE(cuda::kSuccess, cudaSuccess);
ASHLAR_SAME_VALUE(cuda::kErrorInvalidValue, cudaErrorInvalidValue);
ASHLAR_SAME_VALUE(cuda::kErrorOutOfMemory, cudaErrorMemoryAllocation);
ASHLAR_SAME_VALUE(cuda::kErrorDeinitialized, cudaErrorCudartUnloading);
ASHLAR_SAME_VALUE(cuda::kErrorNoDevice, cudaErrorNoDevice);
ASHLAR_SAME_VALUE(cuda::kErrorInvalidDevice, cudaErrorInvalidDevice);
ASHLAR_SAME_VALUE(cuda::kErrorInvalidHandle, cudaErrorInvalidResourceHandle);
ASHLAR_SAME_VALUE(cuda::kErrorNotReady, cudaErrorNotReady);
ASHLAR_SAME_VALUE(cuda::kErrorAlreadyRegistered, cudaErrorHostMemoryAlreadyRegistered);
ASHLAR_SAME_VALUE(cuda::kErrorNotRegistered, cudaErrorHostMemoryNotRegistered);
ASHLAR_SAME_VALUE(cuda::kErrorLaunchFailed, cudaErrorLaunchFailure);
ASHLAR_SAME_VALUE(cuda::kErrorNotSupported, cudaErrorNotSupported);
ASHLAR_SAME_VALUE(cuda::kErrorCaptureUnsupported, cudaErrorStreamCaptureUnsupported);
ASHLAR_SAME_VALUE(cuda::kErrorCaptureInvalidated, cudaErrorStreamCaptureInvalidated);
ASHLAR_SAME_VALUE(cuda_runtime::kCaptureUnmatched, cudaErrorStreamCaptureUnmatched);
ASHLAR_SAME_VALUE(cuda::kErrorCaptureImplicit, cudaErrorStreamCaptureImplicit);
ASHLAR_SAME_VALUE(cuda::kErrorCapturedEvent, cudaErrorCapturedEvent);
ASHLAR_SAME_VALUE(cuda::kErrorCaptureWrongThread, cudaErrorStreamCaptureWrongThread);
ASHLAR_SAME_VALUE(cuda_runtime::kUnknown, cudaErrorUnknown);
ASHLAR_SAME_VALUE(cuda_runtime::kStreamNonBlocking, cudaStreamNonBlocking);
ASHLAR_SAME_VALUE(cuda_runtime::kEventFlagsMax, cudaEventBlockingSync | cudaEventDisableTiming);
ASHLAR_SAME_VALUE(cuda_runtime::kHostAllocFlagsMax,
                  cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined);
ASHLAR_SAME_VALUE(cuda_runtime::kHostToHost, cudaMemcpyHostToHost);
ASHLAR_SAME_VALUE(cuda_runtime::kHostToDevice, cudaMemcpyHostToDevice);
ASHLAR_SAME_VALUE(cuda_runtime::kDeviceToHost, cudaMemcpyDeviceToHost);
ASHLAR_SAME_VALUE(cuda_runtime::kDeviceToDevice, cudaMemcpyDeviceToDevice);
ASHLAR_SAME_VALUE(cuda_runtime::kCopyDefault, cudaMemcpyDefault);
static_assert(cudaStreamCaptureModeGlobal == 0 && cudaStreamCaptureModeThreadLocal == 1 &&
              cudaStreamCaptureModeRelaxed == 2);
static_assert(cudaStreamCaptureStatusNone == 0 && cudaStreamCaptureStatusActive == 1 &&
              cudaStreamCaptureStatusInvalidated == 2);
static_assert(cudaDevAttrMaxThreadsPerBlock == 1 && cudaDevAttrWarpSize == 10 &&
              cudaDevAttrMultiProcessorCount == 16 && cudaDevAttrIntegrated == 18 &&
              cudaDevAttrCanMapHostMemory == 19 && cudaDevAttrUnifiedAddressing == 41 &&
              cudaDevAttrComputeCapabilityMajor == 75 && cudaDevAttrComputeCapabilityMinor == 76 &&
              cudaDevAttrMemoryPoolsSupported == 115);

ASHLAR_SAME_VALUE(cuda::kPoolReleaseThreshold, cudaMemPoolAttrReleaseThreshold);
ASHLAR_SAME_VALUE(cuda_face::kPoolReusesAlongEvents, cudaMemPoolReuseFollowEventDependencies);
ASHLAR_SAME_VALUE(cuda_face::kPoolReusesComplete, cudaMemPoolReuseAllowOpportunistic);
ASHLAR_SAME_VALUE(cuda::kPoolAddsWaits, cudaMemPoolReuseAllowInternalDependencies);
ASHLAR_SAME_VALUE(cuda_face::kPoolReservedBytes, cudaMemPoolAttrReservedMemCurrent);
ASHLAR_SAME_VALUE(cuda_face::kPoolReservedBytesPeak, cudaMemPoolAttrReservedMemHigh);
ASHLAR_SAME_VALUE(cuda_face::kPoolUsedBytes, cudaMemPoolAttrUsedMemCurrent);
ASHLAR_SAME_VALUE(cuda_face::kPoolUsedBytesPeak, cudaMemPoolAttrUsedMemHigh);
static_assert(sizeof(cuda::PoolProperties) == sizeof(cudaMemPoolProps));
ASHLAR_SAME_FIELD(cuda::PoolProperties, type, cudaMemPoolProps, allocType);
ASHLAR_SAME_FIELD(cuda::PoolProperties, location, cudaMemPoolProps, location);
ASHLAR_SAME_FIELD(cuda::PoolProperties, size_max, cudaMemPoolProps, maxSize);

#define ASHLAR_SAME_RUNTIME(name) \
  static_assert(props::AreAlike<decltype(&cuda_runtime::name), decltype(&::name)>::value(), #name)
ASHLAR_SAME_RUNTIME(cudaGetLastError);
ASHLAR_SAME_RUNTIME(cudaPeekAtLastError);
ASHLAR_SAME_RUNTIME(cudaGetErrorName);
ASHLAR_SAME_RUNTIME(cudaGetErrorString);
ASHLAR_SAME_RUNTIME(cudaGetDeviceCount);
ASHLAR_SAME_RUNTIME(cudaGetDevice);
ASHLAR_SAME_RUNTIME(cudaSetDevice);
ASHLAR_SAME_RUNTIME(cudaDeviceSynchronize);
ASHLAR_SAME_RUNTIME(cudaDeviceGetAttribute);
ASHLAR_SAME_RUNTIME(cudaDriverGetVersion);
ASHLAR_SAME_RUNTIME(cudaRuntimeGetVersion);
ASHLAR_SAME_RUNTIME(cudaMalloc);
ASHLAR_SAME_RUNTIME(cudaFree);
ASHLAR_SAME_RUNTIME(cudaMallocHost);
ASHLAR_SAME_RUNTIME(cudaHostAlloc);
ASHLAR_SAME_RUNTIME(cudaFreeHost);
ASHLAR_SAME_RUNTIME(cudaHostRegister);
ASHLAR_SAME_RUNTIME(cudaHostUnregister);
ASHLAR_SAME_RUNTIME(cudaMemGetInfo);
ASHLAR_SAME_RUNTIME(cudaMallocAsync);
ASHLAR_SAME_RUNTIME(cudaFreeAsync);
ASHLAR_SAME_RUNTIME(cudaDeviceGetDefaultMemPool);
ASHLAR_SAME_RUNTIME(cudaDeviceGetMemPool);
ASHLAR_SAME_RUNTIME(cudaDeviceSetMemPool);
ASHLAR_SAME_RUNTIME(cudaMemPoolCreate);
ASHLAR_SAME_RUNTIME(cudaMemPoolDestroy);
ASHLAR_SAME_RUNTIME(cudaMemPoolSetAttribute);
ASHLAR_SAME_RUNTIME(cudaMemPoolGetAttribute);
ASHLAR_SAME_RUNTIME(cudaMemPoolTrimTo);
ASHLAR_SAME_RUNTIME(cudaMallocFromPoolAsync);
ASHLAR_SAME_RUNTIME(cudaMemcpy);
ASHLAR_SAME_RUNTIME(cudaMemcpyAsync);
ASHLAR_SAME_RUNTIME(cudaMemset);
ASHLAR_SAME_RUNTIME(cudaMemsetAsync);
ASHLAR_SAME_RUNTIME(cudaStreamCreate);
ASHLAR_SAME_RUNTIME(cudaStreamCreateWithFlags);
ASHLAR_SAME_RUNTIME(cudaStreamCreateWithPriority);
ASHLAR_SAME_RUNTIME(cudaStreamDestroy);
ASHLAR_SAME_RUNTIME(cudaStreamQuery);
ASHLAR_SAME_RUNTIME(cudaStreamSynchronize);
ASHLAR_SAME_RUNTIME(cudaStreamWaitEvent);
ASHLAR_SAME_RUNTIME(cudaStreamGetId);
ASHLAR_SAME_RUNTIME(cudaStreamIsCapturing);
ASHLAR_SAME_RUNTIME(cudaStreamBeginCapture);
ASHLAR_SAME_RUNTIME(cudaStreamEndCapture);
ASHLAR_SAME_RUNTIME(cudaGraphDestroy);
ASHLAR_SAME_RUNTIME(cudaThreadExchangeStreamCaptureMode);
ASHLAR_SAME_RUNTIME(cudaEventCreate);
ASHLAR_SAME_RUNTIME(cudaEventCreateWithFlags);
ASHLAR_SAME_RUNTIME(cudaEventDestroy);
ASHLAR_SAME_RUNTIME(cudaEventRecord);
ASHLAR_SAME_RUNTIME(cudaEventRecordWithFlags);
ASHLAR_SAME_RUNTIME(cudaEventQuery);
ASHLAR_SAME_RUNTIME(cudaEventSynchronize);

}  // namespace
}  // namespace ashlar::spec
