// Linked into a suite, makes every lockstep of it run over CudaDevice and the driver's functions of the simulated machine.
#include "props/adapters/cuda_devices.h"

namespace {

const bool kIsSet = [] {
  ashlar::spec::set_usual_devices(ashlar::props::cuda_devices());
  return true;
}();

}  // namespace
