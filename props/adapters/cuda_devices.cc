#include "props/adapters/cuda_devices.h"

#include <utility>

#include <ashlar/cuda/cuda_device.h>
#include <ashlar/device/forwarding_device.h>

#include "props/adapters/sim_clock.h"
#include "spec/cuda_face/cuda_face.h"

namespace ashlar::props {
namespace {

/// The driver's functions act on that machine as long as this lives.
struct FaceOverMachine {
  explicit FaceOverMachine(spec::SimGpu& gpu) : clock(gpu) { spec::cuda_face::attach(&gpu); }
  ~FaceOverMachine() { spec::cuda_face::attach(nullptr); }
  FaceOverMachine(const FaceOverMachine&) = delete;
  FaceOverMachine& operator=(const FaceOverMachine&) = delete;

  SimClock clock;
};

class DeviceByDriver final : public device::ForwardingDevice {
 public:
  DeviceByDriver(std::shared_ptr<FaceOverMachine> face, std::unique_ptr<cuda::CudaDevice> cuda,
                 device::Device& simulated)
      : ForwardingDevice(*cuda),
        face_(std::move(face)),
        cuda_(std::move(cuda)),
        simulated_(simulated) {}
  Status synchronize_for(std::uint32_t timeout_ms) noexcept override {
    return simulated_.synchronize_for(timeout_ms);
  }

 private:
  const std::shared_ptr<FaceOverMachine> face_;
  const std::unique_ptr<cuda::CudaDevice> cuda_;
  device::Device& simulated_;
};

}  // namespace

spec::MachineDevices cuda_devices() {
  return [](spec::SimGpu& gpu) {
    const auto face = std::make_shared<FaceOverMachine>(gpu);
    std::vector<std::unique_ptr<device::Device>> made;
    made.reserve(gpu.device_count());
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(gpu.device_count()); ++i) {
      auto opened = cuda::CudaDevice::open(i, DeviceId{i}, nullptr, &face->clock);
      made.push_back(
          std::make_unique<DeviceByDriver>(face, std::move(opened).value(), gpu.device(i)));
    }
    return made;
  };
}

}  // namespace ashlar::props
