// Compares what the GPU's backend declares of the CUDA driver and of cuBLAS (src/cuda_backend/gpu_functions.h) with the toolkit's
// headers: compiled where those are found, and wrong where it does not compile.
#include <cublas_v2.h>
#include <cuda.h>

#include "props/cuda/abi_compare.h"
#include "props/on_gpu/application_functions.h"
#include "src/cuda_backend/gpu_functions.h"

namespace ashlar::cuda_backend {
namespace {

using props::passed_alike;

static_assert(passed_alike<Module, CUmodule>() && passed_alike<Kernel, CUfunction>());
static_assert(passed_alike<BlasHandle, cublasHandle_t>());
ASHLAR_SAME_VALUE(kStreamNonBlocking, CU_STREAM_NON_BLOCKING);
ASHLAR_SAME_VALUE(kErrorInvalidImage, CUDA_ERROR_INVALID_IMAGE);
ASHLAR_SAME_VALUE(kErrorNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU);
ASHLAR_SAME_VALUE(kErrorInvalidPtx, CUDA_ERROR_INVALID_PTX);
ASHLAR_SAME_VALUE(kErrorUnsupportedPtx, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
ASHLAR_SAME_VALUE(kErrorNotFound, CUDA_ERROR_NOT_FOUND);
ASHLAR_SAME_VALUE(0, CUBLAS_STATUS_SUCCESS);
ASHLAR_SAME_VALUE(kBlasAllocFailed, CUBLAS_STATUS_ALLOC_FAILED);
ASHLAR_SAME_VALUE(kBlasAsItIs, CUBLAS_OP_N);
ASHLAR_SAME_VALUE(kBlasTransposed, CUBLAS_OP_T);

ASHLAR_SAME_CALL(WorkFunctions, stream_create, cuStreamCreate);
ASHLAR_SAME_CALL(WorkFunctions, stream_destroy, cuStreamDestroy);
ASHLAR_SAME_CALL(WorkFunctions, stream_synchronize, cuStreamSynchronize);
ASHLAR_SAME_CALL(WorkFunctions, memcpy_async, cuMemcpyAsync);
ASHLAR_SAME_CALL(WorkFunctions, module_load_data, cuModuleLoadData);
ASHLAR_SAME_CALL(WorkFunctions, module_unload, cuModuleUnload);
ASHLAR_SAME_CALL(WorkFunctions, module_get_function, cuModuleGetFunction);
ASHLAR_SAME_CALL(WorkFunctions, launch_kernel, cuLaunchKernel);
// What the suites on a GPU call beside them.
using props::ApplicationFunctions;
ASHLAR_SAME_CALL(ApplicationFunctions, device_get_count, cuDeviceGetCount);
ASHLAR_SAME_CALL(ApplicationFunctions, device_get_name, cuDeviceGetName);
ASHLAR_SAME_CALL(ApplicationFunctions, launch_host_func, cuLaunchHostFunc);
ASHLAR_SAME_CALL(ApplicationFunctions, write_value, cuStreamWriteValue64);
ASHLAR_SAME_CALL(ApplicationFunctions, wait_value, cuStreamWaitValue64);
ASHLAR_SAME_CALL(ApplicationFunctions, begin_capture, cuStreamBeginCapture);
ASHLAR_SAME_CALL(ApplicationFunctions, end_capture, cuStreamEndCapture);
ASHLAR_SAME_CALL(ApplicationFunctions, instantiate, cuGraphInstantiateWithFlags);
ASHLAR_SAME_CALL(ApplicationFunctions, graph_launch, cuGraphLaunch);
ASHLAR_SAME_CALL(ApplicationFunctions, exec_destroy, cuGraphExecDestroy);
ASHLAR_SAME_CALL(BlasFunctions, create, cublasCreate_v2);
ASHLAR_SAME_CALL(BlasFunctions, destroy, cublasDestroy_v2);
ASHLAR_SAME_CALL(BlasFunctions, set_stream, cublasSetStream_v2);
ASHLAR_SAME_CALL(BlasFunctions, set_workspace, cublasSetWorkspace_v2);
ASHLAR_SAME_CALL(BlasFunctions, sgemm_batched, cublasSgemmStridedBatched);

}  // namespace
}  // namespace ashlar::cuda_backend
