// Sets of tensors that live together (weights): as few buffers as the limit permits, all or nothing.
//
// Imitates: models whose weights exceed a device's largest buffer; the n-th buffer that fails.
#include <ashlar/graph/tensor_set.h>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <functional>
#include <vector>

#include "props/graph/small_graphs.h"
#include "spec/graph/imaginary_buffers.h"

namespace ashlar {
namespace {

using graph::BufferType;
using graph::plan_tensor_set;
using graph::TensorId;
using graph::TensorSet;
using props::SmallGraph;
using spec::ImaginaryBuffers;

std::vector<TensorId> leafs(SmallGraph* g, const std::vector<std::uint64_t>& bytes) {
  std::vector<TensorId> ids;
  for (const std::uint64_t size : bytes) ids.push_back(g->leaf(size, graph::kExternal));
  return ids;
}

TEST(TensorSets, AreInOneBufferIfThatMayBeSoLarge) {
  SmallGraph g;
  const auto ids = leafs(&g, {100, 4, 0, 64});
  const auto plan = plan_tensor_set(g.graph, ids, {32_B, Bytes::max(), nullptr}).value();
  EXPECT_EQ(plan.buffers, std::vector<Bytes>{Bytes{128 + 32 + 64}});
  EXPECT_TRUE(plan.is_least);
}

// First fit, the largest first, takes three buffers: 20+16, 12+12+12, 8.
TEST(TensorSets, TakeFewerBuffersThanFirstFit) {
  SmallGraph g;
  const auto ids = leafs(&g, {20, 16, 12, 12, 12, 8});
  const auto plan = plan_tensor_set(g.graph, ids, {4_B, 40_B, nullptr}).value();
  EXPECT_EQ(plan.buffers.size(), 2u);
  EXPECT_TRUE(plan.is_least);
}

TEST(TensorSets, RefuseWhatDoesNotFit) {
  SmallGraph g;
  const auto ids = leafs(&g, {100});
  EXPECT_EQ(plan_tensor_set(g.graph, ids, {32_B, 99_B, nullptr}).code(), Code::kSizeOverflow);
  // It fills the buffer but for the padding.
  EXPECT_TRUE(plan_tensor_set(g.graph, ids, {32_B, 100_B, nullptr}).is_ok());
  EXPECT_EQ(plan_tensor_set(g.graph, ids, {33_B, Bytes::max(), nullptr}).code(),
            Code::kInvalidArgument);
  const TensorId view = g.view(ids[0], 16);
  EXPECT_EQ(plan_tensor_set(g.graph, std::vector<TensorId>{view}, {}).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(plan_tensor_set(g.graph, std::vector<TensorId>{TensorId{77}}, {}).code(),
            Code::kInvalidArgument);
}

TEST(TensorSets, AreAllOrNothing) {
  SmallGraph g;
  const auto ids = leafs(&g, {64, 64, 64, 64});
  const BufferType type{32_B, 64_B, nullptr};
  for (std::uint64_t refused = 1; refused <= 4; ++refused) {
    ImaginaryBuffers source;
    source.refuse_call(refused);
    std::vector<Address> addresses(g.graph.tensors().size());
    const auto made = TensorSet::make(g.graph, ids, type, 3, source, addresses);
    EXPECT_EQ(made.code(), Code::kOutOfMemory);
    EXPECT_TRUE(source.live().empty());
    for (const Address address : addresses) EXPECT_TRUE(address.is_null());
  }
  ImaginaryBuffers source;
  std::vector<Address> addresses(g.graph.tensors().size());
  {
    TensorSet set = TensorSet::make(g.graph, ids, type, 3, source, addresses).value();
    EXPECT_EQ(set.buffers(), 4u);
    TensorSet moved = std::move(set);
    set = TensorSet();
    EXPECT_EQ(source.live().size(), 4u);
    EXPECT_EQ(source.live()[0].type, 3u);
  }
  EXPECT_TRUE(source.live().empty());
  EXPECT_EQ(source.unknown_releases(), 0u);
  // A set without bytes is no failure.
  const auto empty = leafs(&g, {0});
  std::vector<Address> more(g.graph.tensors().size());
  EXPECT_EQ(TensorSet::make(g.graph, empty, type, 0, source, more).value().buffers(), 0u);
  EXPECT_EQ(TensorSet::make(g.graph, empty, type, 0, source, addresses).code(),
            Code::kInvalidArgument);
}

/// The fewest buffers by trying every division.
std::size_t fewest(const std::vector<std::uint64_t>& sizes, std::uint64_t limit) {
  std::vector<std::uint64_t> fill;
  std::size_t best = sizes.size();
  const std::function<void(std::size_t)> place = [&](std::size_t k) {
    if (fill.size() >= best && k < sizes.size()) return;
    if (k == sizes.size()) {
      best = std::min(best, fill.size());
      return;
    }
    for (std::size_t b = 0; b < fill.size(); ++b) {
      if (fill[b] + sizes[k] > limit) continue;
      fill[b] += sizes[k];
      place(k + 1);
      fill[b] -= sizes[k];
    }
    fill.push_back(sizes[k]);
    place(k + 1);
    fill.pop_back();
  };
  place(0);
  return best;
}

RC_GTEST_PROP(TensorSetProperty, NoFewerBuffersWouldDo, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(1, 9);
  const auto sizes = *rc::gen::container<std::vector<std::uint64_t>>(
      count,
      rc::gen::map(rc::gen::inRange<std::uint64_t>(1, 25), [](std::uint64_t n) { return n * 4; }));
  SmallGraph g;
  const auto ids = leafs(&g, sizes);
  const auto plan = plan_tensor_set(g.graph, ids, {4_B, 96_B, nullptr}).value();
  RC_ASSERT(plan.is_least);
  RC_ASSERT(plan.buffers.size() == fewest(sizes, 96));
  for (std::size_t a = 0; a < ids.size(); ++a) {
    const Bytes end = plan.places[a].offset + Bytes{sizes[a]};
    RC_ASSERT(end <= plan.buffers[plan.places[a].buffer]);
    RC_ASSERT(plan.buffers[plan.places[a].buffer] <= 96_B);
    for (std::size_t b = 0; b < a; ++b) {
      if (plan.places[a].buffer != plan.places[b].buffer) continue;
      RC_ASSERT(plan.places[b].offset >= end ||
                plan.places[b].offset + Bytes{sizes[b]} <= plan.places[a].offset);
    }
  }
}

}  // namespace
}  // namespace ashlar
