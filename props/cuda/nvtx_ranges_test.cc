// The allocator's slow paths as a profiler sees them, over the CUDA path: a library that stands for the profiler
// (nvtx_tool.cc, by NVTX_INJECTION64_PATH), an allocator over CudaDevice and the driver's functions of a simulated GPU.
//
// Imitates: a misses' growth, a wait, a reclaim, an out-of-memory, a trim under a profiler. Does not prove: what
// Nsight Systems shows of them. Exit status 77, which is a skip, where no profiler's library is named.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <ashlar/ashlar.h>

#include "props/adapters/cuda_devices.h"
#include "spec/gpu/sim_gpu.h"

namespace ashlar {
namespace {

constexpr DeviceId kDevice{0};

class NvtxRangesTest : public ::testing::Test {
 protected:
  NvtxRangesTest() {
    void* const tool = ::dlopen(std::getenv("NVTX_INJECTION64_PATH"), RTLD_NOW);
    take_ = reinterpret_cast<const char* (*)()>(::dlsym(tool, "nvtx_tool_take"));
    spec::SimGpuOptions options;
    options.capacities = {64_MiB};
    gpu_ = std::make_unique<spec::SimGpu>(options);
    devices_ = props::cuda_devices()(*gpu_);
    stream_ = gpu_->create_stream(kDevice).value();
  }
  void make(const char* conf) {
    device::Device* devices[] = {devices_[0].get()};
    allocator_ = CachingAllocator::create(devices, parse_config(conf, nullptr).value()).value();
  }
  /// What the profiler has seen since it was last asked.
  std::string seen() {
    std::string lines = take_();
    const std::string domain = "domain ashlar\n";  // in the process's first range
    if (lines.rfind(domain, 0) == 0) lines.erase(0, domain.size());
    return lines;
  }

  const char* (*take_)() = nullptr;
  std::unique_ptr<spec::SimGpu> gpu_;
  std::vector<std::unique_ptr<device::Device>> devices_;
  std::unique_ptr<CachingAllocator> allocator_;
  Stream stream_;
};

TEST_F(NvtxRangesTest, AMissIsARangeAroundItsGrowthAndAHitHasNone) {
  make("backing:segments");
  const Address p = allocator_->allocate(1000_B, stream_).value();
  EXPECT_EQ(seen(), "+miss 1000\n+grow 2097152\n-\n-\n");
  EXPECT_TRUE(allocator_->free(p).is_ok());
  const Address q = allocator_->allocate(1000_B, stream_).value();
  EXPECT_EQ(p, q);
  EXPECT_TRUE(allocator_->free(q).is_ok());
  EXPECT_EQ(seen(), "") << "a hit and a free";
  EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
  const std::string trimmed = seen();
  EXPECT_EQ(trimmed.rfind("+trim 0\n", 0), 0u) << trimmed;
}

TEST_F(NvtxRangesTest, AReclaimItsWaitsAndTheOutOfMemoryAreInTheRangeOfTheMiss) {
  make("backing:segments,wait_ms:20");
  const Stream other = gpu_->create_stream(kDevice).value();
  const Address p = allocator_->allocate(40_MiB, stream_).value();
  EXPECT_TRUE(gpu_->launch(other, std::span<const spec::Touch>{}).is_ok());
  EXPECT_TRUE(allocator_->free(p, other).is_ok());
  seen();
  const Address q = allocator_->allocate(50_MiB, other).value();
  const std::string waited = seen();
  EXPECT_EQ(waited.rfind("+miss 52428800\n+grow 52428800\n-\n+reclaim 52428800\n", 0), 0u)
      << waited;
  EXPECT_NE(waited.find("+wait 0\n-\n"), std::string::npos) << waited;
  EXPECT_TRUE(allocator_->allocate(60_MiB, other).code() == Code::kOutOfMemory);
  EXPECT_NE(seen().find("!out of memory 62914560\n"), std::string::npos);
  EXPECT_TRUE(allocator_->free(q).is_ok());
}

TEST_F(NvtxRangesTest, WithoutACacheWhatGoesBackIsARange) {
  make("cache:off");
  const Address p = allocator_->allocate(512_B, stream_).value();
  EXPECT_EQ(seen(), "+miss 512\n+give back 0\n-\n+grow 512\n-\n-\n");
  EXPECT_TRUE(allocator_->free(p).is_ok());
  EXPECT_EQ(seen(), "+give back 0\n-\n");
}

}  // namespace
}  // namespace ashlar

int main(int argc, char** argv) {
  if (std::getenv("NVTX_INJECTION64_PATH") == nullptr) return 77;
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
