#include "bench/driver/cuda_driver.h"

#include <dlfcn.h>

namespace ashlar::bench {
namespace {

/// Looks functions up, and keeps the name of the first that is missing.
struct Lookup {
  template <class Function>
  void optional(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library, name));
  }
  template <class Function>
  void required(Function& function, const char* name) {
    optional(function, name);
    if (function == nullptr && missing.empty()) missing = name;
  }

  void* library;
  std::string missing;
};

// The names are those of the versions that cuda.h declares; it hides them behind macros.
void find_memory(Lookup& in, CudaDriver& cu) {
  in.required(cu.mem_get_info, "cuMemGetInfo_v2");
  in.required(cu.mem_alloc, "cuMemAlloc_v2");
  in.required(cu.mem_free, "cuMemFree_v2");
  in.required(cu.mem_host_alloc, "cuMemHostAlloc");
  in.required(cu.mem_free_host, "cuMemFreeHost");
  in.required(cu.mem_host_get_device_pointer, "cuMemHostGetDevicePointer_v2");
  in.required(cu.memcpy_to_host, "cuMemcpyDtoH_v2");
  in.required(cu.memset_d32_async, "cuMemsetD32Async");
  in.required(cu.mem_get_granularity, "cuMemGetAllocationGranularity");
  in.required(cu.mem_create, "cuMemCreate");
  in.required(cu.mem_release, "cuMemRelease");
  in.required(cu.mem_map, "cuMemMap");
  in.required(cu.mem_unmap, "cuMemUnmap");
  in.required(cu.mem_set_access, "cuMemSetAccess");
  in.required(cu.mem_get_access, "cuMemGetAccess");
  in.required(cu.mem_address_reserve, "cuMemAddressReserve");
  in.required(cu.mem_address_free, "cuMemAddressFree");
}

void find_streams(Lookup& in, CudaDriver& cu) {
  in.required(cu.stream_create, "cuStreamCreate");
  in.required(cu.stream_destroy, "cuStreamDestroy_v2");
  in.required(cu.stream_synchronize, "cuStreamSynchronize");
  in.required(cu.stream_query, "cuStreamQuery");
  in.required(cu.stream_wait_event, "cuStreamWaitEvent");
  in.required(cu.stream_get_id, "cuStreamGetId");
  in.required(cu.stream_is_capturing, "cuStreamIsCapturing");
  in.required(cu.stream_begin_capture, "cuStreamBeginCapture_v2");
  in.required(cu.stream_end_capture, "cuStreamEndCapture");
  in.required(cu.stream_get_capture_info, "cuStreamGetCaptureInfo_v3");
  in.required(cu.exchange_capture_mode, "cuThreadExchangeStreamCaptureMode");
  in.required(cu.event_create, "cuEventCreate");
  in.required(cu.event_destroy, "cuEventDestroy_v2");
  in.required(cu.event_record, "cuEventRecord");
  in.required(cu.event_query, "cuEventQuery");
  in.required(cu.event_synchronize, "cuEventSynchronize");
}

void find_kernels_and_graphs(Lookup& in, CudaDriver& cu) {
  in.required(cu.module_load_data, "cuModuleLoadData");
  in.required(cu.module_get_function, "cuModuleGetFunction");
  in.required(cu.launch_kernel, "cuLaunchKernel");
  in.required(cu.launch_host_func, "cuLaunchHostFunc");
  in.required(cu.graph_create, "cuGraphCreate");
  in.required(cu.graph_destroy, "cuGraphDestroy");
  in.required(cu.graph_instantiate, "cuGraphInstantiateWithFlags");
  in.required(cu.graph_launch, "cuGraphLaunch");
  in.required(cu.graph_exec_destroy, "cuGraphExecDestroy");
  in.required(cu.graph_add_empty_node, "cuGraphAddEmptyNode");
  in.optional(cu.graph_add_node, "cuGraphAddNode_v2");
  in.optional(cu.graph_conditional_handle_create, "cuGraphConditionalHandleCreate");
  in.optional(cu.stream_begin_capture_to_graph, "cuStreamBeginCaptureToGraph");
}

}  // namespace

std::string load_cuda_driver(const char* library, CudaDriver* cu) {
  void* const opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) return std::string("no libcuda found: ") + dlerror();
  Lookup in{opened, {}};
  in.required(cu->init, "cuInit");
  in.required(cu->driver_get_version, "cuDriverGetVersion");
  in.required(cu->get_error_name, "cuGetErrorName");
  in.required(cu->device_get, "cuDeviceGet");
  in.required(cu->device_get_name, "cuDeviceGetName");
  in.required(cu->primary_ctx_retain, "cuDevicePrimaryCtxRetain");
  in.required(cu->ctx_set_current, "cuCtxSetCurrent");
  in.required(cu->ctx_synchronize, "cuCtxSynchronize");
  find_memory(in, *cu);
  find_streams(in, *cu);
  find_kernels_and_graphs(in, *cu);
  if (!in.missing.empty()) return "this libcuda is too old: it has no " + in.missing;
  return "";
}

}  // namespace ashlar::bench
