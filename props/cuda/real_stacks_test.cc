// The stacks of a program in a snapshot of its GPU's memory, over the CUDA path: an allocator over CudaDevice with
// ready-made call stacks, its snapshot written in PyTorch's format and read back.
//
// Imitates: a program that asks which of its functions holds the memory. The driver's functions are a simulated GPU's
// (spec/cuda_face). Does not prove: anything of a real driver, nor that PyTorch's viewer shows it (read_back_test.sh).
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <ashlar/ashlar.h>
#include <ashlar/cuda/cuda_device.h>
#include <ashlar/exchange.h>

#include "spec/cuda_face/cuda_face.h"
#include "spec/gpu/sim_gpu.h"

namespace ashlar {
namespace {

namespace face = spec::cuda_face;
constexpr DeviceId kDevice{0};

[[gnu::noinline]] Address weights_of_a_layer(CachingAllocator& allocator, const Stream& stream) {
  const Result<Address> got = allocator.allocate(3_MiB, stream);
  EXPECT_TRUE(got.is_ok());
  return got.value_or(Address{});
}
[[gnu::noinline]] Address scratch_of_a_step(CachingAllocator& allocator, const Stream& stream) {
  const Result<Address> got = allocator.allocate(2_MiB, stream);
  EXPECT_TRUE(got.is_ok());
  return got.value_or(Address{});
}

class RealStacksTest : public ::testing::Test {
 protected:
  RealStacksTest() {
    spec::SimGpuOptions options;
    options.capacities = {64_MiB};
    gpu_ = std::make_unique<spec::SimGpu>(options);
    face::attach(gpu_.get());
    device_ = cuda::CudaDevice::open(0, kDevice, nullptr).value();
    device::Device* devices[] = {device_.get()};
    allocator_ = CachingAllocator::create(devices, Config{}).value();
    stream_ = gpu_->create_stream(kDevice).value();
    EXPECT_TRUE(
        start_history(*allocator_, kDevice, {.recorder = &stacks_, .has_free_contexts = true})
            .is_ok());
  }
  ~RealStacksTest() override {
    allocator_.reset();
    device_.reset();
    face::attach(nullptr);
  }
  /// The snapshot as PyTorch's format has it.
  nlohmann::json exported() {
    HistorySnapshot record;
    EXPECT_TRUE(history_snapshot(*allocator_, kDevice, &record).is_ok());
    exchange::TorchSnapshotOptions options;
    options.frames = stacks_.frames();
    options.format = exchange::TorchFormat::kJson;
    std::string text;
    EXPECT_TRUE(
        exchange::write_torch_snapshot({{kDevice, &record}}, options, exchange::string_sink(&text))
            .is_ok());
    return nlohmann::json::parse(text);
  }

  exchange::StackContexts stacks_;
  std::unique_ptr<spec::SimGpu> gpu_;
  std::unique_ptr<cuda::CudaDevice> device_;
  std::unique_ptr<CachingAllocator> allocator_;
  Stream stream_;
};

/// Is a frame's function one whose name has that part?
bool has_frame(const nlohmann::json& frames, const std::string& part) {
  for (const nlohmann::json& frame : frames) {
    if (frame.at("name").get<std::string>().find(part) != std::string::npos) return true;
  }
  return false;
}

TEST_F(RealStacksTest, ABlockShowsTheFunctionThatAllocatedIt) {
  const Address weights = weights_of_a_layer(*allocator_, stream_);
  const Address scratch = scratch_of_a_step(*allocator_, stream_);
  EXPECT_TRUE(allocator_->free(scratch).is_ok());
  const nlohmann::json snapshot = exported();
  unsigned live = 0;
  for (const nlohmann::json& segment : snapshot.at("segments")) {
    for (const nlohmann::json& block : segment.at("blocks")) {
      if (block.at("state") != "active_allocated") continue;
      ++live;
      EXPECT_EQ(block.at("address").get<std::uint64_t>(), weights.value());
      EXPECT_TRUE(has_frame(block.at("frames"), "weights_of_a_layer")) << block;
      EXPECT_FALSE(has_frame(block.at("frames"), "scratch_of_a_step"));
      EXPECT_TRUE(has_frame(block.at("frames"), "TestBody")) << "and who called it";
      const std::string file = block.at("frames").at(0).at("filename");
      EXPECT_NE(file.find("cuda_snapshot_test+0x"), std::string::npos) << file;
    }
  }
  EXPECT_EQ(live, 1u);
}

TEST_F(RealStacksTest, EachEventOfTheHistoryShowsItsOwnStack) {
  const Address scratch = scratch_of_a_step(*allocator_, stream_);
  EXPECT_TRUE(allocator_->free(scratch).is_ok());
  const nlohmann::json snapshot = exported();
  unsigned allocations = 0, frees = 0;
  for (const nlohmann::json& event : snapshot.at("device_traces").at(0)) {
    const std::string action = event.at("action");
    if (action != "alloc" && action != "free_requested" && action != "segment_alloc" &&
        action != "segment_map")
      continue;
    const bool is_free = action == "free_requested";
    EXPECT_EQ(has_frame(event.at("frames"), "scratch_of_a_step"), !is_free) << event;
    EXPECT_TRUE(has_frame(event.at("frames"), "EachEventOfTheHistory")) << event;
    allocations += action == "alloc";
    frees += is_free;
  }
  EXPECT_EQ(allocations, 1u);
  EXPECT_EQ(frees, 1u);
}

}  // namespace
}  // namespace ashlar
