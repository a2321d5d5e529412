// Processes of a test, each a machine with devices of its own: a simulated one, or CudaDevices over it.
//
// Purpose: what one exports another opens. Handles are files, so machines in one process are processes to each other.
// Thread safety: one thread.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include <ashlar/ashlar.h>
#include <ashlar/cuda/cuda_device.h>
#include <ashlar/share.h>

#include "props/adapters/sim_clock.h"
#include "spec/cuda_face/cuda_face.h"
#include "spec/gpu/sim_gpu.h"

namespace ashlar::props {

/// How many descriptors this process has open.
inline std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

/// As many descriptors must be open when this ends as when it began. A fixture's first member.
class DescriptorBalance {
 public:
  DescriptorBalance() = default;
  ~DescriptorBalance() { EXPECT_EQ(open_descriptors(), before_) << "D10: descriptors left open"; }
  DescriptorBalance(const DescriptorBalance&) = delete;
  DescriptorBalance& operator=(const DescriptorBalance&) = delete;

 private:
  const std::ptrdiff_t before_ = open_descriptors();
};

class ShareProcess {
 public:
  /// Only one process of a test can be over the CUDA driver's functions.
  explicit ShareProcess(const spec::SimGpuOptions& options = usual(), bool is_cuda = false)
      : gpu_(options), clock_(gpu_), is_cuda_(is_cuda) {
    if (is_cuda) spec::cuda_face::attach(&gpu_);
    for (std::uint32_t i = 0; i < gpu_.device_count(); ++i) {
      const DeviceId id{static_cast<std::int32_t>(i)};
      if (is_cuda) {
        opened_.push_back(cuda::CudaDevice::open(id.value(), id, nullptr, &clock_).value());
        devices_.push_back(opened_.back().get());
      } else {
        devices_.push_back(&gpu_.device(id));
      }
      shareable_.push_back(std::make_unique<share::ShareableDevice>(*devices_.back(), wanted()));
      allocated_from_.push_back(shareable_.back().get());
    }
  }
  ~ShareProcess() {
    allocator_.reset();
    opened_.clear();
    if (is_cuda_) spec::cuda_face::attach(nullptr);
  }
  ShareProcess(const ShareProcess&) = delete;
  ShareProcess& operator=(const ShareProcess&) = delete;

  static spec::SimGpuOptions usual() {
    spec::SimGpuOptions options;
    options.capacities = {1_GiB, 1_GiB};
    return options;
  }
  static device::ShareKind wanted() { return device::ShareKind::kFabric; }
  /// Pages of one kind alone.
  static spec::SimGpuOptions only(device::ShareKind kind) {
    spec::SimGpuOptions options = usual();
    options.share_kinds = 1u << static_cast<unsigned>(kind);
    return options;
  }

  spec::SimGpu& gpu() { return gpu_; }
  device::Device& device(int i = 0) { return *devices_[static_cast<std::size_t>(i)]; }
  const std::vector<device::Device*>& devices() const { return devices_; }
  share::ShareableDevice& shareable(int i = 0) { return *shareable_[static_cast<std::size_t>(i)]; }
  /// Made at the first call.
  CachingAllocator& allocator(const char* settings = "backing:pages") {
    if (allocator_ == nullptr) {
      std::string error;
      const Config config = parse_config(settings, &error).value();
      allocator_ = CachingAllocator::create(allocated_from_, config).value();
    }
    return *allocator_;
  }
  void end_allocator() { allocator_.reset(); }
  Stream stream(int i = 0) {
    return device(i).identify(gpu_.create_stream(DeviceId{i}).value().handle).value();
  }

 private:
  spec::SimGpu gpu_;
  SimClock clock_;
  const bool is_cuda_;
  std::vector<std::unique_ptr<cuda::CudaDevice>> opened_;
  std::vector<device::Device*> devices_;
  std::vector<std::unique_ptr<share::ShareableDevice>> shareable_;
  std::vector<device::Device*> allocated_from_;
  std::unique_ptr<CachingAllocator> allocator_;
};

}  // namespace ashlar::props
