// The kernels that nvcc compiles for a GPU, compiled for the host: one lane, every unit, against the reference
// in doubles. So no line of them is first run on a GPU.
//
// Imitates: a GPU's threads in any order: units run backwards for every second graph.
// Does not prove: what lanes of a warp do together; props/on_gpu does, where there is a GPU.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "props/graph/node_runs.h"
#include "src/cpu_backend/conversions.h"
#include "src/cuda_backend/device_fill.h"
#include "src/cuda_backend/device_units.h"

namespace ashlar {
namespace {

using cuda_backend::DeviceCall;
using graph::Graph;
using graph::TensorId;
using props::MadeGraph;

Status compute_on_host(const Graph& graph, TensorId node, const std::vector<Address>& addresses,
                       bool is_backwards) {
  if (!cuda_backend::has_device_kernel(graph, node)) {  // the processor does it
    cpu::CpuBackend processor("cpu", std::make_shared<cpu::HostBuffers>());
    return processor.compute(graph, std::span(&node, 1), addresses);
  }
  int fault = 0;
  const DeviceCall call = cuda_backend::device_call(graph, node, addresses, &fault);
  const std::uint64_t units = units_of(call);
  for (std::uint64_t k = 0; k < units; ++k) {
    const std::uint64_t unit = is_backwards ? units - 1 - k : k;
    if (cuda_backend::is_by_lanes(call.operation)) {
      cuda_backend::compute_by_lanes(call, unit, cuda_backend::OneLane{});
    } else {
      cuda_backend::compute_by_thread(call, unit);
    }
  }
  return fault == 0 ? Status::ok() : Status{Code::kInvalidArgument, "an index is out of range"};
}

TEST(DeviceKernels, ComputeWhatTheReferenceComputes) {
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    const auto data = props::random_bytes(seed + 5000, 64 + seed % 5 * 60);
    props::ByteSource bytes(data);
    const MadeGraph made = make_graph(bytes, {12, false, true});
    const auto compute = [seed](const Graph& graph, TensorId node,
                                const std::vector<Address>& addresses) {
      return compute_on_host(graph, node, addresses, seed % 2 == 1);
    };
    ASSERT_EQ(props::NodeRuns(made, seed).run(compute), "") << "seed " << seed << "\n"
                                                            << props::describe(made.graph);
  }
}

TEST(DeviceKernels, ConvertEveryHalfAndRoundEveryFloatAsTheProcessorDoes) {
  for (std::uint32_t half = 0; half < 65536; ++half) {
    const auto bits = static_cast<std::uint16_t>(half);
    const float ours = cuda_backend::half_bits_to_float(bits);
    const float theirs = cpu::half_to_float(bits);
    if (std::isnan(theirs)) {
      EXPECT_TRUE(std::isnan(ours)) << half;
    } else {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(ours), std::bit_cast<std::uint32_t>(theirs)) << half;
    }
  }
  for (std::uint64_t bits = 0; bits < 1ull << 32; bits += 4099) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (std::isnan(value)) continue;
    ASSERT_EQ(cuda_backend::float_to_half_bits(value), cpu::float_to_half(value)) << bits;
  }
  for (const float value : {65519.0f, 65520.0f, 6.1e-5f, 5.96e-8f, 2.98e-8f, 2.99e-8f, 0.1f})
    EXPECT_EQ(cuda_backend::float_to_half_bits(value), cpu::float_to_half(value)) << value;
}

TEST(DeviceKernels, ReadPackedBlocksAsTheProcessorDoes) {
  std::vector<std::byte> blocks(210 * 2);
  const auto data = props::random_bytes(9, blocks.size());
  std::memcpy(blocks.data(), data.data(), blocks.size());
  const std::uint16_t scale = cpu::float_to_half(0.25f);
  float expected[512];
  auto* const bytes = reinterpret_cast<unsigned char*>(blocks.data());
  std::memcpy(bytes + 208, &scale, sizeof scale);
  std::memcpy(bytes + 418, &scale, sizeof scale);
  cpu::unpack_q6_k(blocks.data(), 2, expected);
  for (std::uint64_t k = 0; k < 512; ++k)
    ASSERT_EQ(cuda_backend::q6_element(bytes + k / 256 * 210, k % 256), expected[k]) << k;
  std::memcpy(bytes, &scale, sizeof scale);
  cpu::unpack_q4_0(blocks.data(), 1, expected);
  for (std::uint64_t k = 0; k < 32; ++k)
    ASSERT_EQ(cuda_backend::q4_element(bytes, k), expected[k]) << k;
}

}  // namespace
}  // namespace ashlar
