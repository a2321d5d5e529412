// The order of what a stream captures, as its graph has it.
//
// Purpose: Device::capture_mark() and capture_covers() by the driver's calls.
// Thread safety: as PrimaryContext.
// Source: "CUDA Driver API", cuStreamGetCaptureInfo, cuStreamUpdateCaptureDependencies.
#pragma once

#include <ashlar/cuda/primary_context.h>
#include <ashlar/device/device.h>

namespace ashlar::inline v0::cuda {

/// Puts an empty node behind what the stream has captured, and what it captures next behind that. Errors as
/// Device::capture_mark().
Result<device::CaptureMark> mark_capture(PrimaryContext& context, StreamPointer stream) noexcept;
/// Does everything that the stream captures from now on come after the mark? Answers and errors as
/// Device::capture_covers(). Walks back over the graph, with two calls for each node.
Status covers_mark(PrimaryContext& context, StreamPointer stream,
                   device::CaptureMark mark) noexcept;

}  // namespace ashlar::inline v0::cuda
