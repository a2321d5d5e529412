// Parse orders and further uses: what backends that fuse nodes, or run them in another order, may ask for, and what would
// lose a value. Each plan is judged by spec/graph, whose rules are tested here too.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include <ashlar/graph/graph_allocator.h>
#include <ashlar/graph/lifetimes.h>

#include "props/graph/small_graphs.h"
#include "spec/graph/memory_judge.h"

namespace ashlar {
namespace {

using graph::BufferType;
using graph::GraphAllocator;
using graph::kBarrier;
using graph::kExternal;
using graph::kOutput;
using graph::MemoryRequest;
using graph::Operation;
using graph::TensorId;
using graph::TensorSpec;
using props::SmallGraph;

constexpr const char* kPastAWrite = "a parse order that moves a node past a write of what it uses";

/// The addresses of a plan, and what the judge says of them.
struct JudgedPlan {
  std::vector<Address> addresses;
  std::optional<std::string> violation;
};
JudgedPlan plan_and_judge(const SmallGraph& small, const MemoryRequest& request) {
  spec::ImaginaryBuffers source;
  const std::vector<BufferType> types{BufferType{}};
  GraphAllocator allocator(source, types);
  JudgedPlan judged;
  judged.addresses.resize(small.graph.tensors().size());
  const Status status = allocator.allocate(small.graph, request, judged.addresses);
  EXPECT_TRUE(status.is_ok()) << status.why();
  judged.violation =
      spec::judge_memory(small.graph, request, types, source.live(), judged.addresses);
  return judged;
}

/// t = sqr(in), u = sum(t), x = relu(in2), x := in, o = sum(x).
struct WrittenGraph : SmallGraph {
  TensorId in = input(256), in2 = input(256);
  TensorId t = same(Operation::kSqr, {in});             // node 0
  TensorId u = node(Operation::kSum, 4, {t}, kOutput);  // node 1
  TensorId x = same(Operation::kRelu, {in2});           // node 2
  TensorId w = copy_into(in, x);                        // node 3
  TensorId o = node(Operation::kSum, 4, {w}, kOutput);  // node 4
};

TEST(ParseOrder, KeepsAWriterBehindWhatItWrites) {
  const WrittenGraph graph;
  const auto steps = [&](std::vector<std::uint32_t> order) {
    return graph::steps_of(graph.graph, order).status();
  };
  EXPECT_TRUE(steps({2, 0, 3, 1, 4}).is_ok());
  EXPECT_TRUE(steps({2, kBarrier, 3, kBarrier, 4, kBarrier, 0, kBarrier, 1}).is_ok());
  // Node 3 has `in` for its only source, and writes the memory of node 2's result.
  EXPECT_EQ(steps({0, 3, 1, 2, 4}).why(), std::string(kPastAWrite));
}

TEST(ParseOrder, KeepsReadersOnTheirSideOfAWrite) {
  SmallGraph small;
  const TensorId in = small.input(64);
  const TensorId x = small.same(Operation::kRelu, {in});  // node 0
  small.node(Operation::kSum, 4, {x}, kOutput);           // node 1: before the write
  small.copy_into(in, x);                                 // node 2
  small.node(Operation::kSum, 4, {x}, kOutput);           // node 3: behind it
  const auto is_ok = [&](std::vector<std::uint32_t> order) {
    return graph::steps_of(small.graph, order).is_ok();
  };
  EXPECT_TRUE(is_ok({0, 1, 2, 3}));
  EXPECT_FALSE(is_ok({0, 2, 1, 3})) << "node 1 would read what node 2 wrote";
  EXPECT_FALSE(is_ok({0, 1, 3, 2})) << "node 3 would read what was there before";
  EXPECT_FALSE(is_ok({0, 3, 2, 1}));
}

TEST(ParseOrder, KeepsTheOrderOfWrites) {
  SmallGraph small;
  const TensorId in = small.input(64), other = small.input(64);
  const TensorId x = small.same(Operation::kRelu, {in});  // node 0
  small.copy_into(in, x);                                 // node 1
  small.copy_into(other, x);                              // node 2
  EXPECT_TRUE(graph::steps_of(small.graph, std::vector<std::uint32_t>{0, 1, 2}).is_ok());
  EXPECT_EQ(graph::steps_of(small.graph, std::vector<std::uint32_t>{0, 2, 1}).status().why(),
            std::string(kPastAWrite));
}

TEST(ParseOrder, KeepsAStepOfAnOptimizerBehindReadersOfItsMoments) {
  SmallGraph small;
  TensorSpec step;
  const TensorId x = small.leaf(64, kExternal), gradient = small.input(64);
  const TensorId m = small.leaf(64, kExternal), v = small.leaf(64, kExternal);
  const TensorId numbers = small.input(28);
  small.node(Operation::kSum, 4, {m}, kOutput);  // node 0
  step.operation = Operation::kOptStepAdamw;
  step.shape = small.graph[x].shape;
  step.sources = {x, gradient, m, v, numbers};
  step.view_source = x;
  small.add(step);  // node 1
  EXPECT_TRUE(graph::steps_of(small.graph, std::vector<std::uint32_t>{0, 1}).is_ok());
  EXPECT_FALSE(graph::steps_of(small.graph, std::vector<std::uint32_t>{1, 0}).is_ok());
}

TEST(FurtherUses, BeforeTheTensorsOwnNodeKeepItsMemory) {
  SmallGraph small;
  const TensorId in = small.input(64);
  const TensorId a = small.same(Operation::kRelu, {in});             // node 0
  const TensorId b = small.same(Operation::kSqr, {a});               // node 1
  small.node(Operation::kSum, 4, {b}, kOutput);                      // node 2
  const TensorId late = small.same(Operation::kExp, {in}, kOutput);  // node 3
  MemoryRequest request;
  request.uses = {{0, late}};  // node 0's kernel writes `late` too
  const auto lives = graph::lifetimes_of(small.graph, graph::steps_of(small.graph, {}).value(),
                                         std::vector<Bytes>(5, 64_B), request);
  EXPECT_EQ(lives[late.value()].begin, 0u);
  EXPECT_EQ(lives[late.value()].takes_over, graph::kNoTensor);
  EXPECT_EQ(spec::lives_by_definition(small.graph, request)[late.value()].first, 0u);
  const JudgedPlan judged = plan_and_judge(small, request);
  EXPECT_EQ(judged.violation, std::nullopt);
  EXPECT_NE(judged.addresses[late.value()], judged.addresses[a.value()]);
  // The judge sees it where the memory is shared.
  std::vector<Address> shared = judged.addresses;
  shared[late.value()] = shared[a.value()];
  const std::vector<spec::JudgedBuffer> all{{0, Address{0}, Bytes::max()}};
  EXPECT_TRUE(spec::judge_memory(small.graph, request, std::vector<BufferType>(1), all, shared));
}

TEST(FurtherUses, ByTheNodeItselfForbidThatItIsInPlace) {
  SmallGraph small;
  const TensorId in = small.input(64);
  const TensorId a = small.same(Operation::kRelu, {in});
  const TensorId b = small.same(Operation::kSqr, {a}, kOutput);  // node 1
  EXPECT_EQ(plan_and_judge(small, {}).addresses[a.value()],
            plan_and_judge(small, {}).addresses[b.value()]);
  MemoryRequest request;
  request.uses = {{1, a}};  // it reads other elements of `a` as well
  const JudgedPlan judged = plan_and_judge(small, request);
  EXPECT_EQ(judged.violation, std::nullopt);
  EXPECT_NE(judged.addresses[a.value()], judged.addresses[b.value()]);
  std::vector<Address> shared = judged.addresses;
  shared[b.value()] = shared[a.value()];
  const std::vector<spec::JudgedBuffer> all{{0, Address{0}, Bytes::max()}};
  EXPECT_TRUE(spec::judge_memory(small.graph, request, std::vector<BufferType>(1), all, shared));
  EXPECT_FALSE(spec::judge_memory(small.graph, {}, std::vector<BufferType>(1), all, shared));
}

}  // namespace
}  // namespace ashlar
