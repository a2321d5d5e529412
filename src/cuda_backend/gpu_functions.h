// The functions that the backend calls besides those of src/ashlar/cuda: of the CUDA driver and of cuBLAS, both
// found at run time.
//
// Purpose: a program with this backend starts without a driver, and runs without cuBLAS by its own kernels.
// Thread safety: a filled table is read only; the functions may be called from any thread, those of one cuBLAS
// handle from one thread at a time.
// Source: "CUDA Driver API", version 13.0, chapter 7; "cuBLAS", version 13.0, chapter 2. Where the toolkit is at
// hand, props/cuda/gpu_functions_check.cc compares values and signatures with its headers.
#pragma once

#include <cstddef>

#include <ashlar/base/status.h>
#include <ashlar/cuda/driver_abi.h>

namespace ashlar::cuda_backend {

using cuda::CallResult;
using cuda::DevicePointer;
using cuda::Kernel;
using cuda::Module;
using cuda::StreamPointer;

inline constexpr CallResult kErrorInvalidImage = 200;    ///< CUDA_ERROR_INVALID_IMAGE
inline constexpr CallResult kErrorNoBinaryForGpu = 209;  ///< CUDA_ERROR_NO_BINARY_FOR_GPU
inline constexpr CallResult kErrorInvalidPtx = 218;      ///< CUDA_ERROR_INVALID_PTX
inline constexpr CallResult kErrorUnsupportedPtx = 222;  ///< CUDA_ERROR_UNSUPPORTED_PTX_VERSION
inline constexpr CallResult kErrorNotFound = 500;        ///< CUDA_ERROR_NOT_FOUND
inline constexpr unsigned kStreamNonBlocking = 1;        ///< CU_STREAM_NON_BLOCKING

/// Streams, copies, modules and launches (7.10, 7.13, 7.19, 7.23), named as the driver's.
struct WorkFunctions {
  CallResult (*stream_create)(StreamPointer* stream, unsigned flags) = nullptr;
  CallResult (*stream_destroy)(StreamPointer stream) = nullptr;
  CallResult (*stream_synchronize)(StreamPointer stream) = nullptr;
  CallResult (*memcpy_async)(DevicePointer to, DevicePointer from, std::size_t bytes,
                             StreamPointer stream) = nullptr;
  CallResult (*module_load_data)(Module* module, const void* image) = nullptr;
  CallResult (*module_unload)(Module module) = nullptr;
  CallResult (*module_get_function)(Kernel* kernel, Module module, const char* name) = nullptr;
  CallResult (*launch_kernel)(Kernel kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                              unsigned block_x, unsigned block_y, unsigned block_z,
                              unsigned shared_bytes, StreamPointer stream, void** parameters,
                              void** extra) = nullptr;
};

/// Fills the table from that library (null: the program itself). Errors as cuda::load_driver().
Status load_work_functions(const char* library, WorkFunctions* functions) noexcept;

/// Why the driver loads no kernels of this build, with its number where people look for it: kUnsupported.
Status no_kernels(CallResult answer) noexcept;

using BlasResult = int;    ///< cublasStatus_t
using BlasHandle = void*;  ///< cublasHandle_t

inline constexpr BlasResult kBlasAllocFailed = 3;  ///< CUBLAS_STATUS_ALLOC_FAILED
inline constexpr int kBlasAsItIs = 0;              ///< CUBLAS_OP_N
inline constexpr int kBlasTransposed = 1;          ///< CUBLAS_OP_T

/// cuBLAS: its handle, and products of matrices of floats in column order.
struct BlasFunctions {
  BlasResult (*create)(BlasHandle* handle) = nullptr;
  BlasResult (*destroy)(BlasHandle handle) = nullptr;
  BlasResult (*set_stream)(BlasHandle handle, StreamPointer stream) = nullptr;
  BlasResult (*set_workspace)(BlasHandle handle, void* workspace, std::size_t bytes) = nullptr;
  BlasResult (*sgemm_batched)(BlasHandle handle, int a_as, int b_as, int m, int n, int k,
                              const float* alpha, const float* a, int a_leading, long long a_stride,
                              const float* b, int b_leading, long long b_stride, const float* beta,
                              float* c, int c_leading, long long c_stride, int batch) = nullptr;

  bool is_there() const noexcept { return sgemm_batched != nullptr; }
};

/// Where cuBLAS is on Linux, the newest first.
inline constexpr const char* kBlasLibraries[] = {"libcublas.so.13", "libcublas.so.12",
                                                 "libcublas.so"};
/// The functions of that library (null: the program itself), all or none.
BlasFunctions load_blas(const char* library) noexcept;

}  // namespace ashlar::cuda_backend
