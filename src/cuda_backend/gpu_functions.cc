#include "src/cuda_backend/gpu_functions.h"

#include <dlfcn.h>

#include <ashlar/cuda/driver_lookup.h>

namespace ashlar::cuda_backend {

Status load_work_functions(const char* library, WorkFunctions* functions) noexcept {
  cuda::DriverLookup in;
  if (const Status opened = in.open(library); !opened.is_ok()) return opened;
  WorkFunctions found;
  in.need(found.stream_create, 2000, "the CUDA driver lacks cuStreamCreate");
  in.need(found.stream_destroy, 4000, "the CUDA driver lacks cuStreamDestroy");
  in.need(found.stream_synchronize, 2000, "the CUDA driver lacks cuStreamSynchronize");
  in.need(found.memcpy_async, 4000, "the CUDA driver lacks cuMemcpyAsync");
  in.need(found.module_load_data, 2000, "the CUDA driver lacks cuModuleLoadData");
  in.need(found.module_unload, 2000, "the CUDA driver lacks cuModuleUnload");
  in.need(found.module_get_function, 2000, "the CUDA driver lacks cuModuleGetFunction");
  in.need(found.launch_kernel, 4000, "the CUDA driver lacks cuLaunchKernel");
  if (in.status().is_ok()) *functions = found;
  return in.status();
}

Status no_kernels(CallResult answer) noexcept {
  switch (answer) {
    case kErrorInvalidImage:
      return {Code::kUnsupported,
              "the GPU cannot run the kernels of this build: the driver cannot read them (CUDA "
              "error 200)"};
    case kErrorNoBinaryForGpu:
      return {
          Code::kUnsupported,
          "the GPU cannot run the kernels of this build: none is for this GPU (CUDA error 209)"};
    case kErrorInvalidPtx:
      return {Code::kUnsupported,
              "the GPU cannot run the kernels of this build: the driver cannot compile them (CUDA "
              "error 218)"};
    case kErrorUnsupportedPtx:
      return {Code::kUnsupported,
              "the GPU cannot run the kernels of this build: the driver is older than the compiler "
              "of their portable code (CUDA error 222)"};
    case kErrorNotFound:
      return {Code::kUnsupported,
              "the GPU cannot run the kernels of this build: one is missing (CUDA error 500)"};
    default: return {Code::kUnsupported, "the GPU cannot run the kernels of this build"};
  }
}

BlasFunctions load_blas(const char* library) noexcept {
  BlasFunctions found;
  // The library stays loaded, as the driver does.
  void* const loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) return found;
  const auto find = [loaded]<class Function>(Function*& into, const char* name) {
    into = reinterpret_cast<Function*>(dlsym(loaded, name));
    return into != nullptr;
  };
  // The last one is found only if all others are (BlasFunctions::is_there).
  static_cast<void>(find(found.create, "cublasCreate_v2") &&
                    find(found.destroy, "cublasDestroy_v2") &&
                    find(found.set_stream, "cublasSetStream_v2") &&
                    find(found.set_workspace, "cublasSetWorkspace_v2") &&
                    find(found.sgemm_batched, "cublasSgemmStridedBatched"));
  return found;
}

}  // namespace ashlar::cuda_backend
