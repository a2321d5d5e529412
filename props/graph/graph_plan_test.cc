// Plans of small graphs, exact to the byte: what counts and what does not, sizes whose sums wrap, requests that name
// what is not there, and the steps of search that a plan may take.
//
// Imitates: a backend that asks for more bytes than a tensor has, weights larger than all that a plan may have, a
// request made for another graph.
// Does not prove: that a plan is the best; plan/ has suites for that.
#include <ashlar/graph/graph_plan.h>

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <ashlar/graph/graph_allocator.h>
#include <ashlar/plan/problem.h>

#include "props/graph/small_graphs.h"
#include "spec/graph/imaginary_buffers.h"

namespace ashlar {
namespace {

using graph::BufferType;
using graph::GraphAllocator;
using graph::GraphMemory;
using graph::GraphOptions;
using graph::MemoryRequest;
using graph::Operation;
using graph::Tensor;
using graph::TensorId;
using props::SmallGraph;
using spec::ImaginaryBuffers;

using Sizes = std::vector<std::vector<Bytes>>;

constexpr std::uint64_t kMost = plan::kPlanBytesMax.count();  // 2^62

Result<GraphMemory> measure(const SmallGraph& g, const MemoryRequest& request = {},
                            const std::vector<BufferType>& types = {BufferType{}},
                            const GraphOptions& options = {}) {
  ImaginaryBuffers source;
  return GraphAllocator(source, types, options).measure(g.graph, request);
}
std::string why(const SmallGraph& g, const MemoryRequest& request = {},
                const std::vector<BufferType>& types = {BufferType{}}) {
  return measure(g, request, types).status().why();
}

const char* const kTooLarge = "the graph's bytes exceed the bound of a plan";

// Three tensors of 64 bytes, each over the one before, are one buffer for four steps; the 4 bytes live for one, so they
// lie behind it, where nothing pads them. As three buffers they would be three lives of which none is so long.
TEST(GraphPlanBytes, AChainInPlaceIsOneBuffer) {
  SmallGraph g;
  TensorId x = g.node(Operation::kControl, 64, {});
  for (int k = 0; k < 2; ++k) x = g.same(Operation::kScale, {x});
  g.node(Operation::kControl, 4, {});
  const GraphMemory memory = measure(g).value();
  EXPECT_EQ(memory.buffers, (Sizes{{68_B}}));
  EXPECT_EQ(memory.in_place_nodes, 2u);
}

// A view of nothing at the beginning of 64 bytes: what is computed from it is in place, and has no memory.
TEST(GraphPlanBytes, NothingIsComputedInPlaceOverSomething) {
  SmallGraph g;
  const auto a = g.node(Operation::kControl, 64, {});
  const auto view = g.view(a, 0);
  g.node(Operation::kControl, 0, {a});
  g.same(Operation::kScale, {view});
  const GraphMemory memory = measure(g).value();
  EXPECT_EQ(memory.in_place_nodes, 1u);
  EXPECT_EQ(memory.buffers, (Sizes{{64_B}}));
}

// What the caller provides, and what lies in another tensor, needs no bytes of the plan, however many it has.
TEST(GraphPlanBytes, OfExternalTensorsAndViewsAreNotCounted) {
  SmallGraph g;
  for (int k = 0; k < 3; ++k) g.leaf(kMost, graph::kExternal);
  const auto a = g.input(64);
  for (int k = 0; k < 3; ++k) g.view(a, 64);
  EXPECT_EQ(measure(g).value().total, 64_B);
  SmallGraph views;
  const auto b = views.input(kMost);
  for (int k = 0; k < 3; ++k) views.view(b, kMost);
  EXPECT_EQ(measure(views).value().total, Bytes{kMost});
}

TEST(GraphPlanBytes, AreAtMostTheBoundOfAPlan) {
  SmallGraph g;
  g.input(kMost - 64);
  EXPECT_EQ(measure(g).value().total, Bytes{kMost - 64});
  g.input(4);  // 64 with what pads it
  EXPECT_EQ(measure(g).value().buffers[0].size(), 1u);
  g.input(4);
  EXPECT_EQ(measure(g).code(), Code::kSizeOverflow);
  EXPECT_EQ(why(g), kTooLarge);
}

/// As many bytes as a tensor of 8, 16 or 32 bytes stands for; others their extents.
Bytes odd_bytes(const Tensor& tensor) {
  switch (tensor.extent.count()) {
    case 8: return Bytes::max();                           // cannot be rounded up
    case 16: return Bytes{~std::uint64_t{0} - 63};         // 2^64 - 64: a multiple of 64
    case 32: return Bytes{(std::uint64_t{1} << 63) + 64};  // twice that wraps
    default: return tensor.extent;
  }
}

TEST(GraphPlanBytes, SizesAndSumsThatWrapAreRefused) {
  const std::vector<BufferType> types{{64_B, Bytes::max(), odd_bytes}};
  for (const std::vector<std::uint64_t>& sizes : std::vector<std::vector<std::uint64_t>>{
           {8}, {64, 8}, {16}, {64, 16}, {32, 32}, {64, 32, 32}}) {
    SmallGraph g;
    for (const std::uint64_t size : sizes) g.input(size);
    EXPECT_EQ(measure(g, {}, types).code(), Code::kSizeOverflow);
    EXPECT_EQ(why(g, {}, types), kTooLarge);
  }
  SmallGraph g;
  g.input(128);
  EXPECT_EQ(measure(g, {}, types).value().total, 128_B);
}

TEST(GraphPlanParts, SizesAndSumsThatWrapAreRefused) {
  SmallGraph g;
  const auto a = g.input(64);
  for (const std::vector<std::uint64_t>& sizes :
       std::vector<std::vector<std::uint64_t>>{{~std::uint64_t{0}},
                                               {64, ~std::uint64_t{0} - 62},
                                               {64, ~std::uint64_t{0} - 63},
                                               {kMost + 64}}) {
    MemoryRequest request;
    for (const std::uint64_t size : sizes) request.parts.push_back({a, 0, Bytes{size}});
    EXPECT_EQ(measure(g, request).code(), Code::kSizeOverflow);
    EXPECT_EQ(why(g, request), kTooLarge);
  }
  MemoryRequest request;
  request.parts = {{a, 0, Bytes{kMost}}};
  EXPECT_EQ(measure(g, request).value().total, Bytes{kMost});
}

// A device may have none of a split tensor.
TEST(GraphPlanParts, MayBeOfNoBytes) {
  SmallGraph g;
  const auto a = g.input(64);
  MemoryRequest request;
  request.parts = {{a, 0, 0_B}, {a, 0, 48_B}, {a, 1, 0_B}};
  EXPECT_EQ(measure(g, request, {BufferType{}, BufferType{}}).value().buffers, (Sizes{{48_B}, {}}));
}

TEST(GraphPlanRequests, NameWhatIsNotThere) {
  SmallGraph g;
  const auto a = g.input(64), outside = g.leaf(64, graph::kExternal);
  const auto b = g.same(Operation::kScale, {a});
  MemoryRequest request;
  for (const std::uint32_t tensor : {3u, 4u, 1u << 20}) {
    request.parts = {{TensorId{tensor}, 0, 8_B}};
    EXPECT_EQ(why(g, request), "parts that are not by ascending tensor") << tensor;
  }
  request.parts = {{b, 0, 8_B}, {a, 0, 8_B}};
  EXPECT_EQ(why(g, request), "parts that are not by ascending tensor");
  request.parts = {{outside, 0, 8_B}};
  EXPECT_EQ(why(g, request), "parts of a view or of an external tensor");
  request.parts = {{a, 1, 8_B}};
  EXPECT_EQ(why(g, request), "a buffer type that does not exist");
  request.parts = {{a, 0, 8_B}, {a, 0, 8_B}, {b, 0, 8_B}};
  EXPECT_EQ(why(g, request), "");
  const auto view = g.view(a, 16);
  EXPECT_EQ(why(g, request), "a view of a tensor that is split");
  request.parts = {{view, 0, 8_B}};
  EXPECT_EQ(why(g, request), "parts of a view or of an external tensor");
  request.parts.clear();
  for (const std::uint32_t node : {2u, 3u}) {
    request.uses = {{node, a}};
    EXPECT_EQ(why(g, request), "a further use by a node, or of a tensor, that does not exist");
  }
  request.uses = {{1, TensorId{4}}};
  EXPECT_EQ(why(g, request), "a further use by a node, or of a tensor, that does not exist");
  request.uses = {{1, view}};
  EXPECT_EQ(why(g, request), "");
  request.types = {0, 0, 0, 1};
  EXPECT_EQ(why(g, request), "a buffer type that does not exist");
  request.types = {0, 0, 0};
  EXPECT_EQ(why(g, request), "not one buffer type for each tensor");
  EXPECT_EQ(why(g, {}, {}), "no buffer type");
}

// Ten tensors that the planner's first attempts do not place best: 510 steps are too few for the lower bound, 5000 are
// enough.
TEST(GraphPlanWork, IsSoManyStepsForEachTensor) {
  const std::vector<std::pair<std::uint64_t, std::uint32_t>> bytes_and_last_readers{
      {28, 1}, {8, 6}, {76, 5}, {16, 6}, {20, 7}, {12, 8}, {16, 12}, {68, 8}, {20, 11}, {80, 14}};
  SmallGraph g;
  for (std::uint32_t n = 0; n < bytes_and_last_readers.size(); ++n) {
    std::vector<TensorId> sources;
    for (std::uint32_t k = 0; k < n; ++k) {
      if (bytes_and_last_readers[k].second == n) sources.push_back(TensorId{k});
    }
    g.node(Operation::kControl, bytes_and_last_readers[n].first, sources);
  }
  const auto total = [&](std::uint64_t work, std::uint64_t per_tensor) {
    return measure(g, {}, {{4_B, Bytes::max(), nullptr}}, {work, per_tensor}).value().total;
  };
  const Bytes least = measure(g, {}, {{4_B, Bytes::max(), nullptr}}).value().lower_bound;
  EXPECT_EQ(total(5000, 0), least);
  EXPECT_GT(total(510, 0), least);
  EXPECT_EQ(total(0, 500), least);
  EXPECT_EQ(total(10, 50), total(510, 0));
}

}  // namespace
}  // namespace ashlar
