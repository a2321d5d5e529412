// Launches a node's kernel.
//
// Thread safety: any thread; work is ordered by the stream.
#pragma once

#include <cuda_runtime.h>

#include "src/cuda_backend/device_call.h"

namespace ashlar::cuda_backend {

/// Enqueues the node on the stream. The operands lie in memory that the device reaches, and so does
/// DeviceCall::fault. Errors of the launch.
cudaError_t launch(const DeviceCall& call, cudaStream_t stream);

}  // namespace ashlar::cuda_backend
