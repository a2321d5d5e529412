// The backend's kernels and the canary for a simulated GPU: what the GPU's own source computes, unit by unit, on the host.
//
// Thread safety: before the first launch.
#pragma once

namespace ashlar::props {

/// The face's modules have the kernels of device_kernels.cu and canary_kernels.cu from now on. The threads of the former run
/// backwards in every second launch.
void provide_simulated_kernels();

}  // namespace ashlar::props
