// The part of the CUDA driver's binary interface that the library uses: types, constants, answers.
//
// Purpose: the library builds on machines without CUDA's toolkit, and finds the driver at run time. What is declared
// here are facts of a stable interface, under names of our own; beside each stands the driver's. Where the toolkit is
// at hand, props/cuda/driver_abi_check.cc compares every size, offset and value with its cuda.h.
// Thread safety: plain types.
//
// Source: "CUDA Driver API", version 13.0, chapter 6 ("Data types used by CUDA driver").
#pragma once

#include <cstddef>
#include <cstdint>

namespace ashlar::inline v0::cuda {

using CallResult = int;                          ///< CUresult
using DeviceNumber = int;                        ///< CUdevice
using DevicePointer = std::uint64_t;             ///< CUdeviceptr
using MemoryHandle = std::uint64_t;              ///< CUmemGenericAllocationHandle
using Context = struct ContextTag*;              ///< CUcontext
using StreamPointer = struct StreamPointerTag*;  ///< CUstream
using EventPointer = struct EventPointerTag*;    ///< CUevent
using Graph = struct GraphTag*;                  ///< CUgraph
using GraphExec = struct GraphExecTag*;          ///< CUgraphExec
using GraphNode = struct GraphNodeTag*;          ///< CUgraphNode
using Module = struct ModuleTag*;                ///< CUmodule
using Kernel = struct KernelTag*;                ///< CUfunction
using MemoryPool = struct MemoryPoolTag*;        ///< CUmemoryPool

/// The answers that are told apart (CUresult).
enum : CallResult {
  kSuccess = 0,                     ///< CUDA_SUCCESS
  kErrorInvalidValue = 1,           ///< CUDA_ERROR_INVALID_VALUE
  kErrorOutOfMemory = 2,            ///< CUDA_ERROR_OUT_OF_MEMORY
  kErrorDeinitialized = 4,          ///< CUDA_ERROR_DEINITIALIZED
  kErrorDeviceUnavailable = 46,     ///< CUDA_ERROR_DEVICE_UNAVAILABLE
  kErrorNoDevice = 100,             ///< CUDA_ERROR_NO_DEVICE
  kErrorInvalidDevice = 101,        ///< CUDA_ERROR_INVALID_DEVICE
  kErrorInvalidContext = 201,       ///< CUDA_ERROR_INVALID_CONTEXT
  kErrorEccUncorrectable = 214,     ///< CUDA_ERROR_ECC_UNCORRECTABLE
  kErrorPeerUnsupported = 217,      ///< CUDA_ERROR_PEER_ACCESS_UNSUPPORTED
  kErrorNvlinkUncorrectable = 220,  ///< CUDA_ERROR_NVLINK_UNCORRECTABLE
  kErrorContained = 226,            ///< CUDA_ERROR_CONTAINED
  kErrorInvalidHandle = 400,        ///< CUDA_ERROR_INVALID_HANDLE
  kErrorNotReady = 600,             ///< CUDA_ERROR_NOT_READY
  kErrorIllegalAddress = 700,       ///< CUDA_ERROR_ILLEGAL_ADDRESS
  kErrorLaunchTimeout = 702,        ///< CUDA_ERROR_LAUNCH_TIMEOUT
  kErrorPeerAlreadyEnabled = 704,   ///< CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
  kErrorContextIsDestroyed = 709,   ///< CUDA_ERROR_CONTEXT_IS_DESTROYED
  kErrorAssert = 710,               ///< CUDA_ERROR_ASSERT
  kErrorTooManyPeers = 711,         ///< CUDA_ERROR_TOO_MANY_PEERS
  kErrorAlreadyRegistered = 712,    ///< CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
  kErrorNotRegistered = 713,        ///< CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED
  kErrorHardwareStack = 714,        ///< CUDA_ERROR_HARDWARE_STACK_ERROR
  kErrorIllegalInstruction = 715,   ///< CUDA_ERROR_ILLEGAL_INSTRUCTION
  kErrorMisalignedAddress = 716,    ///< CUDA_ERROR_MISALIGNED_ADDRESS
  kErrorInvalidAddressSpace = 717,  ///< CUDA_ERROR_INVALID_ADDRESS_SPACE
  kErrorInvalidPc = 718,            ///< CUDA_ERROR_INVALID_PC
  kErrorLaunchFailed = 719,         ///< CUDA_ERROR_LAUNCH_FAILED
  kErrorTensorMemoryLeak = 721,     ///< CUDA_ERROR_TENSOR_MEMORY_LEAK
  kErrorNotPermitted = 800,         ///< CUDA_ERROR_NOT_PERMITTED
  kErrorNotSupported = 801,         ///< CUDA_ERROR_NOT_SUPPORTED
  kErrorSystemNotReady = 802,       ///< CUDA_ERROR_SYSTEM_NOT_READY
  kErrorDriverMismatch = 803,       ///< CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
  kErrorNotCompatible = 804,        ///< CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE
  kErrorClientTerminated = 810,     ///< CUDA_ERROR_MPS_CLIENT_TERMINATED
  kErrorCaptureUnsupported = 900,   ///< CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
  kErrorCaptureInvalidated = 901,   ///< CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
  kErrorCaptureMerge = 902,         ///< CUDA_ERROR_STREAM_CAPTURE_MERGE
  kErrorCaptureUnmatched = 903,     ///< CUDA_ERROR_STREAM_CAPTURE_UNMATCHED
  kErrorCaptureUnjoined = 904,      ///< CUDA_ERROR_STREAM_CAPTURE_UNJOINED
  kErrorCaptureIsolation = 905,     ///< CUDA_ERROR_STREAM_CAPTURE_ISOLATION
  kErrorCaptureImplicit = 906,      ///< CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
  kErrorCapturedEvent = 907,        ///< CUDA_ERROR_CAPTURED_EVENT
  kErrorCaptureWrongThread = 908,   ///< CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD
  kErrorExternalDevice = 911,       ///< CUDA_ERROR_EXTERNAL_DEVICE
};

inline constexpr unsigned kHostPortable =
    1;  ///< CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTREGISTER_PORTABLE
inline constexpr unsigned kEventDisableTiming = 2;  ///< CU_EVENT_DISABLE_TIMING
inline constexpr unsigned kSetDependencies = 1;     ///< CU_STREAM_SET_CAPTURE_DEPENDENCIES
inline constexpr int kGranularityMinimum = 0;       ///< CU_MEM_ALLOC_GRANULARITY_MINIMUM
inline constexpr int kAttributeVirtualMemory =
    102;  ///< CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
inline constexpr int kAttributeDirectRdma =
    110;  ///< CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED
inline constexpr int kAttributeDescriptorHandles =
    103;  ///< CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED
inline constexpr int kAttributeFabricHandles =
    128;                                     ///< CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED
inline constexpr int kHandleDescriptor = 1;  ///< CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
inline constexpr int kHandleFabric = 8;      ///< CU_MEM_HANDLE_TYPE_FABRIC
inline constexpr unsigned kOpenEnablesPeers = 1;   ///< CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
inline constexpr int kAttributeMemoryPools = 115;  ///< CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED
inline constexpr int kPoolAddsWaits = 3;  ///< CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES
inline constexpr int kPoolReleaseThreshold = 4;       ///< CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
inline constexpr std::uint64_t kStreamLegacy = 1;     ///< CU_STREAM_LEGACY
inline constexpr std::uint64_t kStreamPerThread = 2;  ///< CU_STREAM_PER_THREAD

/// CUipcMemHandle, CUmemFabricHandle: memory, as other processes take it.
struct IpcHandle {
  unsigned char bytes[64] = {};
};

/// CUuuid: a GPU's name in every process.
struct GpuUuid {
  unsigned char bytes[16] = {};
};

/// CUmemLocation: where memory is.
struct MemoryLocation {
  int type = 1;  ///< CU_MEM_LOCATION_TYPE_DEVICE
  int id = 0;    ///< the device's number
};

/// CUmemAllocationProp: what physical memory is wanted.
struct MemoryProperties {
  int type = 1;          ///< CU_MEM_ALLOCATION_TYPE_PINNED
  int handle_types = 0;  ///< CU_MEM_HANDLE_TYPE_NONE: not exported
  MemoryLocation location;
  void* win32_meta_data = nullptr;
  unsigned char compression = 0;
  unsigned char has_direct_rdma = 0;  ///< gpuDirectRDMACapable
  unsigned short usage = 0;
  unsigned char reserved[4] = {};
};

/// CUmemAccessDesc: who may access it, and how.
struct MemoryAccess {
  MemoryLocation location;
  int flags = 3;  ///< CU_MEM_ACCESS_FLAGS_PROT_READWRITE
};

/// CUmemPoolProps: what memory a pool has.
struct PoolProperties {
  int type = 1;          ///< CU_MEM_ALLOCATION_TYPE_PINNED
  int handle_types = 0;  ///< CU_MEM_HANDLE_TYPE_NONE: not exported
  MemoryLocation location;
  void* win32_security_attributes = nullptr;
  std::size_t size_max = 0;  ///< maxSize; 0: the driver's own
  unsigned short usage = 0;
  unsigned char reserved[54] = {};
};

}  // namespace ashlar::inline v0::cuda
