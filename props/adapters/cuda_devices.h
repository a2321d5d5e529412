// CUDA devices for the lockstep: the driver's functions over the simulated machine (spec/cuda_face), called by CudaDevice.
//
// Thread safety: one machine at a time in a process, because the driver's functions act on one.
#pragma once

#include "spec/lockstep/cache_lockstep.h"

namespace ashlar::props {

/// For spec::set_usual_devices(). The program must export its symbols (ENABLE_EXPORTS): it is its own libcuda. What the driver
/// has no call for, a synchronisation with a limit, is the simulated device's.
spec::MachineDevices cuda_devices();

}  // namespace ashlar::props
