// Compares what the library declares of the CUDA driver (cuda/driver_abi.h, driver_table.h) with the toolkit's cuda.h: compiled
// where that is found, and wrong where it does not compile.
#include <cstddef>
#include <utility>

#include <cuda.h>
#include <cudaTypedefs.h>

#include <ashlar/cuda/driver_table.h>

#include "props/cuda/abi_compare.h"

namespace ashlar::cuda {
namespace {

static_assert(sizeof(CallResult) == sizeof(CUresult));
static_assert(sizeof(DeviceNumber) == sizeof(CUdevice));
static_assert(sizeof(DevicePointer) == sizeof(CUdeviceptr));
static_assert(sizeof(MemoryHandle) == sizeof(CUmemGenericAllocationHandle));

using props::AreAlike;

ASHLAR_SAME_VALUE(kSuccess, CUDA_SUCCESS);
ASHLAR_SAME_VALUE(kErrorInvalidValue, CUDA_ERROR_INVALID_VALUE);
ASHLAR_SAME_VALUE(kErrorOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
ASHLAR_SAME_VALUE(kErrorDeinitialized, CUDA_ERROR_DEINITIALIZED);
ASHLAR_SAME_VALUE(kErrorNoDevice, CUDA_ERROR_NO_DEVICE);
ASHLAR_SAME_VALUE(kErrorInvalidDevice, CUDA_ERROR_INVALID_DEVICE);
ASHLAR_SAME_VALUE(kErrorInvalidContext, CUDA_ERROR_INVALID_CONTEXT);
ASHLAR_SAME_VALUE(kErrorEccUncorrectable, CUDA_ERROR_ECC_UNCORRECTABLE);
ASHLAR_SAME_VALUE(kErrorPeerUnsupported, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
ASHLAR_SAME_VALUE(kErrorTooManyPeers, CUDA_ERROR_TOO_MANY_PEERS);
ASHLAR_SAME_VALUE(kErrorPeerAlreadyEnabled, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
ASHLAR_SAME_VALUE(kErrorNotPermitted, CUDA_ERROR_NOT_PERMITTED);
ASHLAR_SAME_VALUE(kErrorNvlinkUncorrectable, CUDA_ERROR_NVLINK_UNCORRECTABLE);
ASHLAR_SAME_VALUE(kErrorContained, CUDA_ERROR_CONTAINED);
ASHLAR_SAME_VALUE(kErrorInvalidHandle, CUDA_ERROR_INVALID_HANDLE);
ASHLAR_SAME_VALUE(kErrorNotReady, CUDA_ERROR_NOT_READY);
ASHLAR_SAME_VALUE(kErrorIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS);
ASHLAR_SAME_VALUE(kErrorLaunchTimeout, CUDA_ERROR_LAUNCH_TIMEOUT);
ASHLAR_SAME_VALUE(kErrorContextIsDestroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED);
ASHLAR_SAME_VALUE(kErrorAssert, CUDA_ERROR_ASSERT);
ASHLAR_SAME_VALUE(kErrorAlreadyRegistered, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
ASHLAR_SAME_VALUE(kErrorNotRegistered, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
ASHLAR_SAME_VALUE(kErrorHardwareStack, CUDA_ERROR_HARDWARE_STACK_ERROR);
ASHLAR_SAME_VALUE(kErrorIllegalInstruction, CUDA_ERROR_ILLEGAL_INSTRUCTION);
ASHLAR_SAME_VALUE(kErrorMisalignedAddress, CUDA_ERROR_MISALIGNED_ADDRESS);
ASHLAR_SAME_VALUE(kErrorInvalidAddressSpace, CUDA_ERROR_INVALID_ADDRESS_SPACE);
ASHLAR_SAME_VALUE(kErrorInvalidPc, CUDA_ERROR_INVALID_PC);
ASHLAR_SAME_VALUE(kErrorLaunchFailed, CUDA_ERROR_LAUNCH_FAILED);
ASHLAR_SAME_VALUE(kErrorTensorMemoryLeak, CUDA_ERROR_TENSOR_MEMORY_LEAK);
ASHLAR_SAME_VALUE(kErrorDeviceUnavailable, CUDA_ERROR_DEVICE_UNAVAILABLE);
ASHLAR_SAME_VALUE(kErrorSystemNotReady, CUDA_ERROR_SYSTEM_NOT_READY);
ASHLAR_SAME_VALUE(kErrorDriverMismatch, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
ASHLAR_SAME_VALUE(kErrorNotCompatible, CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE);
ASHLAR_SAME_VALUE(kErrorClientTerminated, CUDA_ERROR_MPS_CLIENT_TERMINATED);
ASHLAR_SAME_VALUE(kErrorExternalDevice, CUDA_ERROR_EXTERNAL_DEVICE);
ASHLAR_SAME_VALUE(kErrorNotSupported, CUDA_ERROR_NOT_SUPPORTED);
ASHLAR_SAME_VALUE(kErrorCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
ASHLAR_SAME_VALUE(kErrorCaptureInvalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
ASHLAR_SAME_VALUE(kErrorCaptureMerge, CUDA_ERROR_STREAM_CAPTURE_MERGE);
ASHLAR_SAME_VALUE(kErrorCaptureUnmatched, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
ASHLAR_SAME_VALUE(kErrorCaptureUnjoined, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
ASHLAR_SAME_VALUE(kErrorCaptureIsolation, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
ASHLAR_SAME_VALUE(kErrorCaptureImplicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
ASHLAR_SAME_VALUE(kErrorCapturedEvent, CUDA_ERROR_CAPTURED_EVENT);
ASHLAR_SAME_VALUE(kErrorCaptureWrongThread, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
ASHLAR_SAME_VALUE(kHostPortable, CU_MEMHOSTALLOC_PORTABLE);
ASHLAR_SAME_VALUE(kHostPortable, CU_MEMHOSTREGISTER_PORTABLE);
ASHLAR_SAME_VALUE(kEventDisableTiming, CU_EVENT_DISABLE_TIMING);
ASHLAR_SAME_VALUE(kSetDependencies, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
ASHLAR_SAME_VALUE(kGranularityMinimum, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
ASHLAR_SAME_VALUE(kAttributeVirtualMemory, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
ASHLAR_SAME_VALUE(kAttributeDirectRdma,
                  CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
ASHLAR_SAME_VALUE(kAttributeDescriptorHandles,
                  CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
ASHLAR_SAME_VALUE(kAttributeFabricHandles, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED);
ASHLAR_SAME_VALUE(kHandleDescriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
ASHLAR_SAME_VALUE(kHandleFabric, CU_MEM_HANDLE_TYPE_FABRIC);
ASHLAR_SAME_VALUE(kOpenEnablesPeers, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
static_assert(sizeof(IpcHandle) == sizeof(CUipcMemHandle) &&
              sizeof(IpcHandle) == sizeof(CUmemFabricHandle));
static_assert(sizeof(GpuUuid) == sizeof(CUuuid));
ASHLAR_SAME_VALUE(MemoryLocation{}.type, CU_MEM_LOCATION_TYPE_DEVICE);
ASHLAR_SAME_VALUE(MemoryProperties{}.type, CU_MEM_ALLOCATION_TYPE_PINNED);
ASHLAR_SAME_VALUE(MemoryProperties{}.handle_types, CU_MEM_HANDLE_TYPE_NONE);
ASHLAR_SAME_VALUE(PoolProperties{}.type, CU_MEM_ALLOCATION_TYPE_PINNED);
ASHLAR_SAME_VALUE(kAttributeMemoryPools, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
ASHLAR_SAME_VALUE(kPoolAddsWaits, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES);
ASHLAR_SAME_VALUE(kPoolReleaseThreshold, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
ASHLAR_SAME_VALUE(MemoryAccess{}.flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
static_assert(CU_STREAM_CAPTURE_MODE_GLOBAL == 0 && CU_STREAM_CAPTURE_MODE_THREAD_LOCAL == 1 &&
              CU_STREAM_CAPTURE_MODE_RELAXED == 2);
static_assert(CU_STREAM_CAPTURE_STATUS_NONE == 0 && CU_STREAM_CAPTURE_STATUS_ACTIVE == 1 &&
              CU_STREAM_CAPTURE_STATUS_INVALIDATED == 2);

static_assert(sizeof(MemoryLocation) == sizeof(CUmemLocation));
ASHLAR_SAME_FIELD(MemoryLocation, id, CUmemLocation, id);
static_assert(sizeof(MemoryProperties) == sizeof(CUmemAllocationProp));
ASHLAR_SAME_FIELD(MemoryProperties, handle_types, CUmemAllocationProp, requestedHandleTypes);
ASHLAR_SAME_FIELD(MemoryProperties, location, CUmemAllocationProp, location);
ASHLAR_SAME_FIELD(MemoryProperties, win32_meta_data, CUmemAllocationProp, win32HandleMetaData);
ASHLAR_SAME_FIELD(MemoryProperties, compression, CUmemAllocationProp, allocFlags.compressionType);
ASHLAR_SAME_FIELD(MemoryProperties, has_direct_rdma, CUmemAllocationProp,
                  allocFlags.gpuDirectRDMACapable);
ASHLAR_SAME_FIELD(MemoryProperties, usage, CUmemAllocationProp, allocFlags.usage);
static_assert(sizeof(PoolProperties) == sizeof(CUmemPoolProps));
ASHLAR_SAME_FIELD(PoolProperties, handle_types, CUmemPoolProps, handleTypes);
ASHLAR_SAME_FIELD(PoolProperties, location, CUmemPoolProps, location);
ASHLAR_SAME_FIELD(PoolProperties, win32_security_attributes, CUmemPoolProps,
                  win32SecurityAttributes);
ASHLAR_SAME_FIELD(PoolProperties, size_max, CUmemPoolProps, maxSize);
ASHLAR_SAME_FIELD(PoolProperties, usage, CUmemPoolProps, usage);
static_assert(sizeof(MemoryAccess) == sizeof(CUmemAccessDesc));
ASHLAR_SAME_FIELD(MemoryAccess, flags, CUmemAccessDesc, flags);

ASHLAR_SAME_CALL(ContextFunctions, init, cuInit);
ASHLAR_SAME_CALL(ContextFunctions, device_get, cuDeviceGet);
ASHLAR_SAME_CALL(ContextFunctions, device_get_attribute, cuDeviceGetAttribute);
ASHLAR_SAME_CALL(ContextFunctions, primary_retain, cuDevicePrimaryCtxRetain);
ASHLAR_SAME_CALL(ContextFunctions, get_api_version, cuCtxGetApiVersion);
ASHLAR_SAME_CALL(ContextFunctions, primary_release, cuDevicePrimaryCtxRelease);
ASHLAR_SAME_CALL(ContextFunctions, get_current, cuCtxGetCurrent);
ASHLAR_SAME_CALL(ContextFunctions, push_current, cuCtxPushCurrent);
ASHLAR_SAME_CALL(ContextFunctions, pop_current, cuCtxPopCurrent);
ASHLAR_SAME_CALL(ContextFunctions, synchronize, cuCtxSynchronize);
ASHLAR_SAME_CALL(MemoryFunctions, get_info, cuMemGetInfo);
ASHLAR_SAME_CALL(MemoryFunctions, alloc, cuMemAlloc);
ASHLAR_SAME_CALL(MemoryFunctions, free, cuMemFree);
ASHLAR_SAME_CALL(MemoryFunctions, host_alloc, cuMemHostAlloc);
ASHLAR_SAME_CALL(MemoryFunctions, free_host, cuMemFreeHost);
ASHLAR_SAME_CALL(MemoryFunctions, host_register, cuMemHostRegister);
ASHLAR_SAME_CALL(MemoryFunctions, host_unregister, cuMemHostUnregister);
ASHLAR_SAME_CALL(StreamFunctions, wait_event, cuStreamWaitEvent);
ASHLAR_SAME_CALL(StreamFunctions, is_capturing, cuStreamIsCapturing);
ASHLAR_SAME_CALL(StreamFunctions, exchange_capture_mode, cuThreadExchangeStreamCaptureMode);
ASHLAR_SAME_CALL(StreamFunctions, event_create, cuEventCreate);
ASHLAR_SAME_CALL(StreamFunctions, event_destroy, cuEventDestroy);
ASHLAR_SAME_CALL(StreamFunctions, event_record, cuEventRecord);
ASHLAR_SAME_CALL(StreamFunctions, event_query, cuEventQuery);
ASHLAR_SAME_CALL(StreamFunctions, event_synchronize, cuEventSynchronize);
ASHLAR_SAME_CALL(StreamFunctions, get_id, cuStreamGetId);
ASHLAR_SAME_CALL(PageFunctions, get_granularity, cuMemGetAllocationGranularity);
ASHLAR_SAME_CALL(PageFunctions, address_reserve, cuMemAddressReserve);
ASHLAR_SAME_CALL(PageFunctions, address_free, cuMemAddressFree);
ASHLAR_SAME_CALL(PageFunctions, create, cuMemCreate);
ASHLAR_SAME_CALL(PageFunctions, release, cuMemRelease);
ASHLAR_SAME_CALL(PageFunctions, map, cuMemMap);
ASHLAR_SAME_CALL(PageFunctions, unmap, cuMemUnmap);
ASHLAR_SAME_CALL(PageFunctions, set_access, cuMemSetAccess);
ASHLAR_SAME_CALL(ShareFunctions, get_uuid, cuDeviceGetUuid);
ASHLAR_SAME_CALL(ShareFunctions, segment_export, cuIpcGetMemHandle);
ASHLAR_SAME_CALL(ShareFunctions, segment_open, cuIpcOpenMemHandle);
ASHLAR_SAME_CALL(ShareFunctions, segment_close, cuIpcCloseMemHandle);
ASHLAR_SAME_CALL(ShareFunctions, page_properties, cuMemGetAllocationPropertiesFromHandle);
ASHLAR_SAME_CALL(ShareFunctions, page_export, cuMemExportToShareableHandle);
ASHLAR_SAME_CALL(ShareFunctions, page_import, cuMemImportFromShareableHandle);
ASHLAR_SAME_CALL(PeerFunctions, can_access, cuDeviceCanAccessPeer);
ASHLAR_SAME_CALL(PeerFunctions, enable, cuCtxEnablePeerAccess);
ASHLAR_SAME_CALL(PeerFunctions, copy, cuMemcpyAsync);
ASHLAR_SAME_CALL(PeerFunctions, copy_peer, cuMemcpyPeerAsync);
ASHLAR_SAME_CALL(PoolFunctions, create, cuMemPoolCreate);
ASHLAR_SAME_CALL(PoolFunctions, destroy, cuMemPoolDestroy);
ASHLAR_SAME_CALL(PoolFunctions, set_attribute, cuMemPoolSetAttribute);
ASHLAR_SAME_CALL(PoolFunctions, trim_to, cuMemPoolTrimTo);
ASHLAR_SAME_CALL(PoolFunctions, alloc, cuMemAllocFromPoolAsync);
ASHLAR_SAME_CALL(PoolFunctions, free, cuMemFreeAsync);
ASHLAR_SAME_CALL(CaptureFunctions, add_empty_node, cuGraphAddEmptyNode);
// cuda.h declares a newer form of these; the one that is asked for stands in cudaTypedefs.h.
#define ASHLAR_SAME_FORM(Group, ours, Theirs) \
  static_assert(AreAlike<decltype(Group::ours), Theirs>::value(), #Theirs)
ASHLAR_SAME_FORM(CaptureFunctions, get_info, PFN_cuStreamGetCaptureInfo_v11030);
ASHLAR_SAME_FORM(CaptureFunctions, update_dependencies,
                 PFN_cuStreamUpdateCaptureDependencies_v11030);
ASHLAR_SAME_FORM(CaptureFunctions, node_get_dependencies, PFN_cuGraphNodeGetDependencies_v10000);

}  // namespace
}  // namespace ashlar::cuda
