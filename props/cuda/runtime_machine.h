// A simulated machine of two GPUs with the runtime's functions over it, for the suites of these.
//
// Thread safety: as the functions.
#pragma once

#include <gtest/gtest.h>

#include "spec/cuda_face/cuda_face.h"
#include "spec/cuda_face/runtime_abi.h"
#include "spec/gpu/sim_gpu.h"

namespace ashlar::props {

class RuntimeMachine : public ::testing::Test {
 protected:
  RuntimeMachine() : gpu_(options()) { spec::cuda_face::attach(&gpu_); }
  ~RuntimeMachine() override { spec::cuda_face::attach(nullptr); }
  static spec::SimGpuOptions options() {
    spec::SimGpuOptions options;
    options.capacities = {64_MiB, 64_MiB};
    return options;
  }

  void* allocate(std::size_t size = 1 << 20) {
    void* made = nullptr;
    EXPECT_EQ(spec::cuda_runtime::cudaMalloc(&made, size), 0);
    return made;
  }
  cuda::StreamPointer stream(unsigned flags = 1) {
    cuda::StreamPointer made = nullptr;
    EXPECT_EQ(spec::cuda_runtime::cudaStreamCreateWithFlags(&made, flags), 0);
    return made;
  }
  cuda::EventPointer event() {
    cuda::EventPointer made = nullptr;
    EXPECT_EQ(spec::cuda_runtime::cudaEventCreateWithFlags(&made, 2), 0);
    return made;
  }
  /// Work of the stream, that is pending until something waits for it.
  void work(cuda::StreamPointer on, void* at, std::size_t size = 512) {
    EXPECT_EQ(spec::cuda_runtime::cudaMemsetAsync(at, 0, size, on), 0);
  }
  /// The memory that the devices hold.
  std::uint64_t segments() const { return gpu_.ledger().segments.count; }

  spec::SimGpu gpu_;
};

}  // namespace ashlar::props
