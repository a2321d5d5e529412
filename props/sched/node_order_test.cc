// The order of nodes: what has to stay in order, and which order is taken.
//
// Imitates: nodes of two backends that stand between each other, views of any kind, caches.
#include <ashlar/sched/node_order.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "props/graph/small_graphs.h"

namespace ashlar {
namespace {

using graph::Operation;
using graph::TensorId;
using graph::TensorSpec;
using props::SmallGraph;
using sched::order_nodes;
using Order = std::vector<std::uint32_t>;

/// Every tensor on the first backend but these.
std::vector<std::uint32_t> all_but(const SmallGraph& g, const std::vector<TensorId>& on_second) {
  std::vector<std::uint32_t> backends(g.graph.tensors().size(), 0);
  for (const TensorId id : on_second) backends[id.value()] = 1;
  return backends;
}

TensorId scale(SmallGraph& g, TensorId of) { return g.same(Operation::kScale, {of}); }

TEST(OrderOfNodes, BeginsWithTheLowestNodeWhicheverBackendHasIt) {
  SmallGraph g;
  const auto x = g.input(64);
  const auto a = scale(g, x);  // 0, second backend
  scale(g, x);                 // 1
  const auto c = scale(g, x);  // 2, second backend
  scale(g, x);                 // 3
  EXPECT_EQ(order_nodes(g.graph, all_but(g, {a, c})), (Order{0, 2, 1, 3}));
}

// The view could run first, and the number of splits would be the same.
TEST(OrderOfNodes, IsTheGraphsWhereAnotherHasAsManySplits) {
  SmallGraph g;
  const auto x = g.input(64);
  scale(g, x);
  scale(g, x);
  g.view(x, 32);
  EXPECT_EQ(order_nodes(g.graph, all_but(g, {})), (Order{0, 1, 2}));
}

// A view that names no source is a view all the same.
TEST(OrderOfNodes, HasAViewWithoutSourcesBehindItsRoot) {
  SmallGraph g;
  const auto x = g.input(64);
  scale(g, x);                 // 0
  const auto b = scale(g, x);  // 1, second backend
  const auto c = scale(g, x);  // 2
  TensorSpec spec;
  spec.shape = g.graph[c].shape;
  spec.view_source = c;
  const auto v = g.add(spec);  // 3
  scale(g, v);                 // 4
  EXPECT_EQ(order_nodes(g.graph, all_but(g, {b})), (Order{0, 2, 3, 4, 1}));
}

// Views compute nothing, so they need not wait for who reads the root, and end no split.
TEST(OrderOfNodes, LetsViewsRunAsSoonAsTheyCan) {
  SmallGraph g;
  const auto x = g.input(64);
  scale(g, x);                   // 0
  const auto r = scale(g, x);    // 1, second backend
  const auto v = g.view(x, 64);  // 2
  scale(g, v);                   // 3
  const auto d = scale(g, r);    // 4, second backend
  EXPECT_EQ(order_nodes(g.graph, all_but(g, {r, d})), (Order{2, 0, 3, 1, 4}));
}

// Three splits become two. The view is of the second backend, as its root: were it counted, the new order
// would have three as well.
TEST(OrderOfNodes, CountsNoSplitForAView) {
  SmallGraph g;
  const auto x = g.input(64), y = g.input(64);
  scale(g, x);                   // 0
  const auto b = scale(g, y);    // 1, second backend
  const auto v = g.view(y, 64);  // 2
  scale(g, x);                   // 3
  EXPECT_EQ(order_nodes(g.graph, all_but(g, {y, b, v})), (Order{2, 0, 3, 1}));
}

// Node 2 reads nothing of the cache, only writes it. On its backend it would be next, were it not for node
// 1, whose values it overwrites.
TEST(OrderOfNodes, KeepsTwoWritersInTheirOrder) {
  SmallGraph g;
  const auto x = g.input(64), y = g.input(64), cache = g.input(64);
  const auto write = [&](TensorId from) { return g.copy_into(from, cache); };
  scale(g, x);                 // 0
  const auto w1 = write(x);    // 1, second backend
  write(y);                    // 2
  const auto r = scale(g, y);  // 3, second backend
  EXPECT_EQ(order_nodes(g.graph, all_but(g, {w1, r})), (Order{0, 1, 3, 2}));
}

/// The shortest of three times that it takes to order writers of caches and readers behind them.
std::chrono::steady_clock::duration time_to_order(std::size_t writers, std::size_t caches) {
  SmallGraph g;
  const auto x = g.input(16);
  std::vector<TensorId> all;
  all.reserve(caches);
  for (std::size_t k = 0; k < caches; ++k) all.push_back(g.input(16));
  for (std::size_t k = 0; k < writers; ++k) {
    TensorSpec spec;
    spec.operation = Operation::kCpy;
    spec.shape = {4, 1, 1, 1};
    spec.sources = {x};
    spec.view_source = all[k % caches];
    g.add(spec);
    scale(g, all[k % caches]);
  }
  const std::vector<std::uint32_t> backends = all_but(g, {});
  auto least = std::chrono::steady_clock::duration::max();
  for (int round = 0; round < 3; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(order_nodes(g.graph, backends).size(), 2 * writers);
    least = std::min(least, std::chrono::steady_clock::now() - begin);
  }
  return least;
}

// A writer waits for those who have read since the last writer, not for all before: of one cache that would
// be 10^8 waits, of 10000 caches there is one reader for each writer either way.
TEST(OrderOfNodes, CostsAsMuchForOneCacheAsForMany) {
  constexpr std::size_t kWriters = 15000;
  const auto of_many = time_to_order(kWriters, 10000);
  EXPECT_LT(time_to_order(kWriters, 1), 20 * of_many + std::chrono::milliseconds(300));
}

}  // namespace
}  // namespace ashlar
