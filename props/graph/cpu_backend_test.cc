// The kernels of the processor against the reference in doubles, node by node.
//
// Each node of random graphs gets the same sources on both sides, so errors do not add up; with one thread
// and with three. Conversions of packed types are compared with values worked out by hand.
#include "src/cpu_backend/cpu_backend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "props/graph/node_runs.h"
#include "props/graph/small_graphs.h"
#include "props/graph/value_oracle.h"
#include "src/cpu_backend/conversions.h"

namespace ashlar {
namespace {

using graph::ElementType;
using graph::Graph;
using graph::Operation;
using graph::TensorId;
using props::MadeGraph;

TEST(CpuKernels, ComputeWhatTheReferenceComputes) {
  std::uint64_t compared = 0;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    const auto data = props::random_bytes(seed + 77, 64 + seed % 5 * 60);
    props::ByteSource bytes(data);
    const MadeGraph made = make_graph(bytes, {12, false, true});
    compared += made.graph.nodes().size();
    cpu::CpuBackend processor("cpu", std::make_shared<cpu::HostBuffers>(), seed % 2 == 0 ? 1 : 3);
    const auto compute = [&](const Graph& graph, TensorId node,
                             const std::vector<Address>& addresses) {
      return processor.compute(graph, std::span(&node, 1), addresses);
    };
    ASSERT_EQ(props::NodeRuns(made, seed).run(compute), "") << "seed " << seed << "\n"
                                                            << props::describe(made.graph);
  }
  EXPECT_GT(compared, 5000u);
}

TEST(CpuKernels, OfPackedTypesReadBlocksAsTheyAreWritten) {
  std::byte four[18] = {};
  const std::uint16_t half = cpu::float_to_half(0.5f);
  std::memcpy(four, &half, sizeof half);
  four[2] = std::byte{0xF1};   // elements 0 and 16: 1 and 15, less 8
  four[17] = std::byte{0x08};  // elements 15 and 31: 8 and 0
  float out[256] = {};
  cpu::unpack_q4_0(four, 1, out);
  EXPECT_EQ(out[0], -3.5f);
  EXPECT_EQ(out[16], 3.5f);
  EXPECT_EQ(out[15], 0.0f);
  EXPECT_EQ(out[31], -4.0f);
  EXPECT_EQ(out[1], -4.0f);

  std::byte six[210] = {};
  std::memcpy(six + 208, &half, sizeof half);
  for (int k = 0; k < 16; ++k) six[192 + k] = static_cast<std::byte>(k + 1);
  six[0] = std::byte{0x5A};             // low bits of elements 0 and 64: 10 and 5
  six[128] = std::byte{0x21};           // two high bits of elements 0, 32, 64, 96: 1, 0, 2, 0
  six[64 + 33] = std::byte{0xC3};       // second half: elements 128 + 33, 128 + 97
  six[128 + 32 + 1] = std::byte{0xC4};  // high bits of 129, 161, 193, 225: 0, 1, 0, 3
  cpu::unpack_q6_k(six, 1, out);
  EXPECT_EQ(out[0], 0.5f * 1 * (10 + 16 - 32));
  EXPECT_EQ(out[64], 0.5f * 5 * (5 + 32 - 32));
  EXPECT_EQ(out[32], 0.5f * 3 * (0 - 32));
  EXPECT_EQ(out[161], 0.5f * 11 * (3 + 16 - 32));
  EXPECT_EQ(out[225], 0.5f * 15 * (12 + 48 - 32));
  EXPECT_EQ(out[255], 0.5f * 16 * (0 - 32));
}

TEST(CpuKernels, MultiplyByPackedMatrices) {
  for (const ElementType type : {ElementType::kQ4_0, ElementType::kQ6_K}) {
    MadeGraph made;
    graph::TensorSpec weights;
    weights.type = type;
    weights.shape = {256, 5, 1, 1};
    const TensorId a = made.graph.add(weights).value();
    graph::TensorSpec input;
    input.shape = {256, 70, 1, 1};
    const TensorId b = made.graph.add(input).value();
    graph::TensorSpec product;
    product.operation = Operation::kMulMat;
    product.shape = {5, 70, 1, 1};
    product.sources = {a, b};
    const TensorId c = made.graph.add(product).value();
    const props::SeparateRun run(made, 3);
    const std::vector<float> left = run.values(a), right = run.values(b), out = run.values(c);
    for (std::size_t n = 0; n < out.size(); ++n) {
      double sum = 0;
      for (std::size_t k = 0; k < 256; ++k) {
        sum += static_cast<double>(left[n % 5 * 256 + k]) *
               static_cast<double>(right[n / 5 * 256 + k]);
      }
      ASSERT_NEAR(static_cast<double>(out[n]), sum, props::kTolerance * 256) << n;
    }
  }
}

TEST(CpuKernels, RefuseIndicesOutOfRangeAndNodesWithoutAKernel) {
  auto buffers = std::make_shared<cpu::HostBuffers>();
  cpu::CpuBackend processor("cpu", buffers);
  props::SmallGraph g;
  const auto table = g.leaf(64);
  graph::TensorSpec ids;
  ids.type = ElementType::kI32;
  const auto id = g.add(ids);
  graph::TensorSpec rows;
  rows.operation = Operation::kGetRows;
  rows.shape = {16, 1, 1, 1};
  rows.sources = {table, id};
  const auto out = g.add(rows);
  std::vector<Address> addresses;
  for (int k = 0; k < 3; ++k) addresses.push_back(buffers->make(64_B).value());
  for (const std::int32_t wrong : {-1, 1, 1 << 30}) {
    std::memcpy(addresses[id.value()].pointer(), &wrong, sizeof wrong);
    const TensorId nodes[] = {out};
    EXPECT_EQ(processor.compute(g.graph, nodes, addresses).code(), Code::kInvalidArgument);
  }
  rows.shape = {15, 1, 1, 1};
  const auto bent = g.add(rows);
  EXPECT_FALSE(processor.supports(g.graph, bent));
  addresses.push_back(addresses[out.value()]);
  const TensorId nodes[] = {bent};
  EXPECT_EQ(processor.compute(g.graph, nodes, addresses).code(), Code::kUnsupported);
  EXPECT_EQ(processor.make_plan(g.graph, nodes, addresses).code(), Code::kUnsupported);
}

TEST(CpuBackend, GivesTheSameBitsWithAnyNumberOfThreads) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const auto data = props::random_bytes(seed + 300, 200);
    props::ByteSource bytes(data);
    const props::MadeGraph made = make_graph(bytes, {20, false, true});
    const auto buffers = std::make_shared<cpu::HostBuffers>();
    std::vector<std::vector<Address>> at(3);  // by run
    for (std::vector<Address>& run : at) {
      for (std::uint32_t t = 0; t < made.graph.tensors().size(); ++t) {
        const graph::Tensor& tensor = made.graph.tensors()[t];
        if (tensor.root.value() != t) {
          run.push_back(run[tensor.root.value()] + tensor.view_offset);
          continue;
        }
        run.push_back(buffers->make(std::max(tensor.extent, 1_B)).value());
        std::memset(run[t].pointer(), 0, tensor.extent.count());
        const bool is_leaf = tensor.operation == graph::Operation::kNone;
        if (is_leaf) fill_leaf(made, TensorId{t}, seed, run[t]);
      }
    }
    for (std::size_t run = 0; run < at.size(); ++run) {
      constexpr unsigned kThreads[] = {1, 2, 5};
      cpu::CpuBackend processor("cpu", buffers, kThreads[run]);
      ASSERT_TRUE(processor.compute(made.graph, made.graph.nodes(), at[run]).is_ok());
      for (std::uint32_t t = 0; t < made.graph.tensors().size(); ++t) {
        const Bytes extent = made.graph.tensors()[t].extent;
        ASSERT_EQ(std::memcmp(at[run][t].pointer(), at[0][t].pointer(), extent.count()), 0)
            << "seed " << seed << ", tensor " << t << ", threads " << kThreads[run];
      }
    }
  }
}

}  // namespace
}  // namespace ashlar
