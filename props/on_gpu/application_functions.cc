#include "props/on_gpu/application_functions.h"

#include <ashlar/cuda/driver_lookup.h>

namespace ashlar::props {

Status ApplicationFunctions::load(const char* library) noexcept {
  cuda::DriverLookup in;
  if (const Status found = in.open(library); !found.is_ok()) return found;
  if (const Status found = cuda_backend::load_work_functions(library, &work); !found.is_ok())
    return found;
  in.need(device_get_count, 2000, "the CUDA driver lacks cuDeviceGetCount");
  in.need(device_get_name, 2000, "the CUDA driver lacks cuDeviceGetName");
  in.need(launch_host_func, 10000, "the CUDA driver lacks cuLaunchHostFunc");
  in.need(write_value, 11070, "the CUDA driver lacks cuStreamWriteValue64");
  in.need(wait_value, 11070, "the CUDA driver lacks cuStreamWaitValue64");
  in.need(begin_capture, 10010, "the CUDA driver lacks cuStreamBeginCapture");
  in.need(end_capture, 10000, "the CUDA driver lacks cuStreamEndCapture");
  in.need(instantiate, 11040, "the CUDA driver lacks cuGraphInstantiateWithFlags");
  in.need(graph_launch, 10000, "the CUDA driver lacks cuGraphLaunch");
  in.need(graph_destroy, 10000, "the CUDA driver lacks cuGraphDestroy");
  in.need(exec_destroy, 10000, "the CUDA driver lacks cuGraphExecDestroy");
  return in.status();
}

}  // namespace ashlar::props
