// The part of the CUDA runtime's binary interface that runs over the simulated GPU: its functions, constants and answers.
//
// Purpose: a program that links these functions and exports its symbols (ENABLE_EXPORTS) is its own libcudart, for any library
// that it loads. The sources of the face never see the toolkit's headers: what is declared here are facts of a stable
// interface. Each function has CUDA's name in a namespace of ours, so that props/cuda/runtime_abi_check.cc can compare both
// in one source, and CUDA's symbol by its label, without C++'s mangling.
// Thread safety: any thread. Each call acts on the calling thread's device, which is 0 until cudaSetDevice; a call about a
// stream, an event or memory that came from here acts on the device where that was made.
//
// A handle is the machine's, as in the driver's functions (cuda_face.h). Misuse is reported by the machine.
// Source: "CUDA Runtime API", version 13.0, chapters 6.1 (devices), 6.3 (errors), 6.4 (streams), 6.5 (events), 6.9 (memory), 6.11
// (stream ordered memory allocator), 6.36 (graphs).
#pragma once

#include <cstddef>

#include <ashlar/cuda/driver_abi.h>

/// The runtime's functions. Their answers (cudaError_t) have the driver's numbers.
namespace ashlar::spec {
namespace [[gnu::visibility("default")]] cuda_runtime {

using cuda::CallResult;
using cuda::EventPointer;
using cuda::Graph;
using cuda::MemoryPool;
using cuda::PoolProperties;
using cuda::StreamPointer;

inline constexpr CallResult kCaptureUnmatched = 903;  ///< cudaErrorStreamCaptureUnmatched
inline constexpr CallResult kUnknown = 999;           ///< cudaErrorUnknown
inline constexpr int kRuntimeVersion = 13000;
inline constexpr unsigned kStreamNonBlocking = 1;  ///< cudaStreamNonBlocking
inline constexpr unsigned kEventFlagsMax = 3;  ///< cudaEventBlockingSync | cudaEventDisableTiming
inline constexpr unsigned kHostAllocFlagsMax = 7;  ///< portable, mapped, write-combined
inline constexpr int kHostToHost = 0;              ///< cudaMemcpyHostToHost, and so on
inline constexpr int kHostToDevice = 1;
inline constexpr int kDeviceToHost = 2;
inline constexpr int kDeviceToDevice = 3;
inline constexpr int kCopyDefault = 4;

// Errors. They do not change the thread's last error, but for cudaGetLastError, which clears it.
CallResult cudaGetLastError() asm("cudaGetLastError");
CallResult cudaPeekAtLastError() asm("cudaPeekAtLastError");
const char* cudaGetErrorName(CallResult error) asm("cudaGetErrorName");
const char* cudaGetErrorString(CallResult error) asm("cudaGetErrorString");

// Devices.
CallResult cudaGetDeviceCount(int* count) asm("cudaGetDeviceCount");
CallResult cudaGetDevice(int* device) asm("cudaGetDevice");
CallResult cudaSetDevice(int device) asm("cudaSetDevice");
CallResult cudaDeviceSynchronize() asm("cudaDeviceSynchronize");
CallResult cudaDeviceGetAttribute(int* value, int which, int device) asm("cudaDeviceGetAttribute");
CallResult cudaDriverGetVersion(int* version) asm("cudaDriverGetVersion");
CallResult cudaRuntimeGetVersion(int* version) asm("cudaRuntimeGetVersion");

// Memory.
CallResult cudaMalloc(void** base, std::size_t size) asm("cudaMalloc");
CallResult cudaFree(void* base) asm("cudaFree");
CallResult cudaMallocHost(void** base, std::size_t size) asm("cudaMallocHost");
CallResult cudaHostAlloc(void** base, std::size_t size, unsigned flags) asm("cudaHostAlloc");
CallResult cudaFreeHost(void* base) asm("cudaFreeHost");
CallResult cudaHostRegister(void* base, std::size_t size, unsigned flags) asm("cudaHostRegister");
CallResult cudaHostUnregister(void* base) asm("cudaHostUnregister");
CallResult cudaMemGetInfo(std::size_t* free, std::size_t* total) asm("cudaMemGetInfo");
CallResult cudaMallocAsync(void** base, std::size_t size,
                           StreamPointer stream) asm("cudaMallocAsync");
CallResult cudaFreeAsync(void* base, StreamPointer stream) asm("cudaFreeAsync");

// Pools of stream-ordered memory, without access by peers and handles of other processes.
CallResult cudaDeviceGetDefaultMemPool(MemoryPool* pool,
                                       int device) asm("cudaDeviceGetDefaultMemPool");
CallResult cudaDeviceGetMemPool(MemoryPool* pool, int device) asm("cudaDeviceGetMemPool");
CallResult cudaDeviceSetMemPool(int device, MemoryPool pool) asm("cudaDeviceSetMemPool");
CallResult cudaMemPoolCreate(MemoryPool* pool,
                             const PoolProperties* properties) asm("cudaMemPoolCreate");
CallResult cudaMemPoolDestroy(MemoryPool pool) asm("cudaMemPoolDestroy");
CallResult cudaMemPoolSetAttribute(MemoryPool pool, int attribute,
                                   void* value) asm("cudaMemPoolSetAttribute");
CallResult cudaMemPoolGetAttribute(MemoryPool pool, int attribute,
                                   void* value) asm("cudaMemPoolGetAttribute");
CallResult cudaMemPoolTrimTo(MemoryPool pool, std::size_t keep) asm("cudaMemPoolTrimTo");
CallResult cudaMallocFromPoolAsync(void** base, std::size_t size, MemoryPool pool,
                                   StreamPointer stream) asm("cudaMallocFromPoolAsync");

// Copies.
CallResult cudaMemcpy(void* to, const void* from, std::size_t size, int kind) asm("cudaMemcpy");
CallResult cudaMemcpyAsync(void* to, const void* from, std::size_t size, int kind,
                           StreamPointer stream) asm("cudaMemcpyAsync");
CallResult cudaMemset(void* at, int value, std::size_t size) asm("cudaMemset");
CallResult cudaMemsetAsync(void* at, int value, std::size_t size,
                           StreamPointer stream) asm("cudaMemsetAsync");

// Streams.
CallResult cudaStreamCreate(StreamPointer* stream) asm("cudaStreamCreate");
CallResult cudaStreamCreateWithFlags(StreamPointer* stream,
                                     unsigned flags) asm("cudaStreamCreateWithFlags");
CallResult cudaStreamCreateWithPriority(StreamPointer* stream, unsigned flags,
                                        int priority) asm("cudaStreamCreateWithPriority");
CallResult cudaStreamDestroy(StreamPointer stream) asm("cudaStreamDestroy");
CallResult cudaStreamQuery(StreamPointer stream) asm("cudaStreamQuery");
CallResult cudaStreamSynchronize(StreamPointer stream) asm("cudaStreamSynchronize");
CallResult cudaStreamWaitEvent(StreamPointer stream, EventPointer event,
                               unsigned flags) asm("cudaStreamWaitEvent");
CallResult cudaStreamGetId(StreamPointer stream, unsigned long long* id) asm("cudaStreamGetId");

// Captures.
CallResult cudaStreamIsCapturing(StreamPointer stream, int* status) asm("cudaStreamIsCapturing");
CallResult cudaStreamBeginCapture(StreamPointer stream, int mode) asm("cudaStreamBeginCapture");
CallResult cudaStreamEndCapture(StreamPointer stream, Graph* graph) asm("cudaStreamEndCapture");
CallResult cudaGraphDestroy(Graph graph) asm("cudaGraphDestroy");
CallResult cudaThreadExchangeStreamCaptureMode(int* mode) asm(
    "cudaThreadExchangeStreamCaptureMode");

// Events.
CallResult cudaEventCreate(EventPointer* event) asm("cudaEventCreate");
CallResult cudaEventCreateWithFlags(EventPointer* event,
                                    unsigned flags) asm("cudaEventCreateWithFlags");
CallResult cudaEventDestroy(EventPointer event) asm("cudaEventDestroy");
CallResult cudaEventRecord(EventPointer event, StreamPointer stream) asm("cudaEventRecord");
CallResult cudaEventRecordWithFlags(EventPointer event, StreamPointer stream,
                                    unsigned flags) asm("cudaEventRecordWithFlags");
CallResult cudaEventQuery(EventPointer event) asm("cudaEventQuery");
CallResult cudaEventSynchronize(EventPointer event) asm("cudaEventSynchronize");

}  // namespace cuda_runtime
}  // namespace ashlar::spec
