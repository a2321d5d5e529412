// The functions of CUDA's runtime that the suites' allocators call. The process that loads them has the functions.
//
// Thread safety: the functions'.
// Source: "CUDA Runtime API", version 13.0.
#pragma once

#include <cstddef>

extern "C" int cudaMalloc(void** block, std::size_t size);
extern "C" int cudaFree(void* block);
extern "C" int cudaSetDevice(int device);
extern "C" int cudaGetLastError();
extern "C" int cudaMallocAsync(void** block, std::size_t size, void* stream);
extern "C" int cudaFreeAsync(void* block, void* stream);
extern "C" int cudaMemPoolCreate(void** pool, const void* properties);
extern "C" int cudaMemPoolSetAttribute(void* pool, int attribute, void* value);
extern "C" int cudaMemPoolTrimTo(void* pool, std::size_t keep);
extern "C" int cudaMallocFromPoolAsync(void** block, std::size_t size, void* pool, void* stream);
extern "C" int cudaStreamSynchronize(void* stream);
extern "C" int cudaStreamWaitEvent(void* stream, void* event, unsigned flags);
extern "C" int cudaEventCreateWithFlags(void** event, unsigned flags);
extern "C" int cudaEventDestroy(void* event);
extern "C" int cudaEventRecord(void* event, void* stream);
extern "C" int cudaEventQuery(void* event);
extern "C" int cudaThreadExchangeStreamCaptureMode(int* mode);

namespace ashlar::audited {

inline constexpr unsigned kNoTiming = 2;  ///< cudaEventDisableTiming

/// Growth is permitted while other streams capture, as long as one lives.
class CaptureRelaxer {
 public:
  CaptureRelaxer() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~CaptureRelaxer() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  CaptureRelaxer(const CaptureRelaxer&) = delete;
  CaptureRelaxer& operator=(const CaptureRelaxer&) = delete;

 private:
  int mode_ = 2;  // cudaStreamCaptureModeRelaxed
};

}  // namespace ashlar::audited
