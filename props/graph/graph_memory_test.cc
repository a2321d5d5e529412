// The host runs out of memory below graphs, tensor sets and allocators: host allocation n fails, for every n. What is
// there stays as it was, and no buffer is left behind.
//
// This executable replaces operator new (refusing_host.h), which then throws. Does not prove: anything about a host that
// ends the process instead of refusing.
#include <gtest/gtest.h>

#include <array>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include <ashlar/graph/graph_allocator.h>
#include <ashlar/graph/online_allocator.h>
#include <ashlar/graph/tensor_set.h>

#include "props/graph/small_graphs.h"
#include "props/host_memory/refusing_host.h"

namespace ashlar {
namespace {

using graph::BufferType;
using graph::Graph;
using graph::GraphAllocator;
using graph::OnlineAllocator;
using graph::Operation;
using graph::TensorId;
using graph::TensorSpec;
using props::host;
using props::SmallGraph;

/// Calls `call` with its n-th allocation refused. False: it threw std::bad_alloc.
template <class Call>
bool runs_without(std::uint64_t n, const Call& call) {
  host = {};
  host.throws = true;
  host.fail_at = n;
  bool is_done = true;
  try {
    call();
  } catch (const std::bad_alloc&) {
    is_done = false;
  }
  host = {};
  return is_done;
}

/// Counts buffers, and needs no memory for that.
class CountedBuffers final : public graph::BufferSource {
 public:
  Result<Address> make_buffer(std::size_t, Bytes size) noexcept override {
    live_ += 1;
    bytes_ += size;
    const Address base = next_;
    next_ = next_ + Bytes{std::uint64_t{1} << 20};
    return base;
  }
  void release_buffer(std::size_t, Address, Bytes size) noexcept override {
    live_ -= 1;
    bytes_ -= size;
  }
  int live() const { return live_; }
  Bytes bytes() const { return bytes_; }

 private:
  Address next_{1u << 20};
  int live_ = 0;
  Bytes bytes_;
};

/// Tensor t has sources t - 1, as many as told, and a name that needs memory.
TensorSpec spec_of(std::uint32_t t) {
  TensorSpec spec;
  spec.operation = t == 0 ? Operation::kNone : t % 2 == 0 ? Operation::kAdd : Operation::kScale;
  if (t > 0) spec.sources.assign(t % 2 == 0 ? 2 : 1, TensorId{t - 1});
  spec.name = "a name that is too long for the string itself: " + std::to_string(t);
  return spec;
}
/// Checks that the graph is tensors [0, count) of those.
void expect_tensors(const Graph& graph, std::uint32_t count) {
  ASSERT_EQ(graph.tensors().size(), count);
  ASSERT_EQ(graph.nodes().size(), count == 0 ? 0 : count - 1);
  for (std::uint32_t t = 0; t < count; ++t) {
    const TensorSpec spec = spec_of(t);
    const auto sources = graph.sources(graph.tensors()[t]);
    ASSERT_EQ(std::vector<TensorId>(sources.begin(), sources.end()), spec.sources);
    ASSERT_EQ(graph.name(TensorId{t}), spec.name);
    if (t == 0) continue;  // a leaf
    ASSERT_EQ(graph.nodes()[t - 1], TensorId{t});
  }
}

// Each try is on a copy, whose tables have no room, so that each of them asks for memory. Another tensor is added after
// it, which must not get what the refused one left.
TEST(GraphMemoryTest, ATensorIsAddedOrTheGraphIsAsBefore) {
  Graph graph;
  for (std::uint32_t t = 0; t < 5; ++t) {
    TensorSpec refused = spec_of(t);
    refused.operation = Operation::kControl;
    refused.sources.assign(t > 0 ? 3 : 0, TensorId{0});
    refused.name = "another name that is too long for the string itself";
    std::uint64_t n = 1;
    for (;; ++n) {
      ASSERT_LT(n, 20u);
      Graph tried = graph;
      const bool is_done = runs_without(n, [&] { ASSERT_TRUE(tried.add(refused).is_ok()); });
      if (is_done) break;
      expect_tensors(tried, t);
      ASSERT_EQ(tried.wiring(), graph.wiring());
      ASSERT_EQ(tried.add(spec_of(t)).value(), TensorId{t});
      expect_tensors(tried, t + 1);
    }
    EXPECT_GE(n, 4u);  // tensors, names and the name itself were refused at least
    ASSERT_TRUE(graph.add(spec_of(t)).is_ok());
  }
  expect_tensors(graph, 5);
}

TEST(GraphMemoryTest, ARegionBeginsOrTheGraphIsAsBefore) {
  Graph graph;
  const auto begin = [&] { graph.begin_region(graph::RegionKind::kLoop); };
  const std::uint64_t wiring = graph.wiring();
  ASSERT_FALSE(runs_without(1, begin));
  EXPECT_FALSE(graph.has_open_region());
  EXPECT_TRUE(graph.regions().empty());
  EXPECT_EQ(graph.wiring(), wiring);
  EXPECT_TRUE(runs_without(0, begin));
  EXPECT_TRUE(graph.end_region().is_ok());
}

// Five buffers of 64 bytes: whatever is refused in between, those that were made are released, each with its size.
TEST(GraphMemoryTest, ATensorSetIsMadeOrLeavesNoBuffer) {
  SmallGraph g;
  std::vector<TensorId> ids(5);
  for (TensorId& id : ids) id = g.leaf(64, graph::kExternal);
  const BufferType type{64_B, 64_B, nullptr};
  CountedBuffers source;
  std::array<Address, 5> addresses{};
  for (std::uint64_t n = 1;; ++n) {
    ASSERT_LT(n, 100u);
    graph::TensorSet set;
    const bool is_done = runs_without(
        n, [&] { set = graph::TensorSet::make(g.graph, ids, type, 0, source, addresses).value(); });
    if (is_done) {
      EXPECT_EQ(source.live(), 5);
      EXPECT_EQ(source.bytes(), Bytes{std::uint64_t{5} * 64});
      break;
    }
    ASSERT_EQ(source.live(), 0);
    ASSERT_EQ(source.bytes(), 0_B);
    for (const Address address : addresses) ASSERT_TRUE(address.is_null());
  }
  EXPECT_EQ(source.live(), 0);
}

TEST(GraphMemoryTest, AnOnlineAllocatorIsMadeAndResetOrRefused) {
  std::uint64_t refused = 0;
  for (std::uint64_t n = 1;; ++n) {
    ASSERT_LT(n, 100u);
    std::optional<OnlineAllocator> made;
    runs_without(n, [&] { made.emplace(Address{4096}, 1024_B, 16_B); });
    const bool was_refused = !made.has_value();
    refused += was_refused;
    if (was_refused) continue;
    ASSERT_EQ(made->allocate(1024_B).value_or(Address{}), Address{4096});
    break;
  }
  EXPECT_GE(refused, 2u);
  OnlineAllocator memory(Address{4096}, 1024_B, 16_B);
  const Address kept = memory.allocate(64_B).value();
  for (std::uint64_t n = 1;; ++n) {
    ASSERT_LT(n, 100u);
    if (runs_without(n, [&] { memory.reset(); })) break;
    ASSERT_EQ(memory.live(), 1u);
    ASSERT_EQ(memory.allocate(1024_B).code(), Code::kOutOfMemory);  // 960 are left
  }
  EXPECT_EQ(memory.live(), 0u);
  EXPECT_EQ(memory.free(kept).code(), Code::kUnknownPointer);
  EXPECT_EQ(memory.allocate(1024_B).value(), Address{4096});
}

// A range is given or there is no memory for its record: then the call says so, and nothing is lost.
TEST(GraphMemoryTest, AnOnlineRangeIsGivenOrNothingChanges) {
  OnlineAllocator memory(Address{4096}, 1_MiB, 16_B);
  std::uint64_t refused = 0;
  for (std::uint64_t k = 0; k < 4000; ++k) {
    for (std::uint64_t n = 1;; ++n) {
      ASSERT_LT(n, 20u);
      host = {};
      host.fail_at = n;
      const Result<Address> range = memory.allocate(16_B);
      host = {};
      if (range.is_ok()) {
        ASSERT_EQ(range.value(), Address{4096 + 16 * k});
        break;
      }
      ASSERT_EQ(range.code(), Code::kHostOutOfMemory);
      ASSERT_EQ(memory.live(), k);
      ASSERT_EQ(memory.peak(), Bytes{16 * k});
      refused += 1;
    }
  }
  EXPECT_GE(refused, 2u);  // tables that grow
}

// After a refusal the same reservation succeeds, and the buffers are the allocator's either way.
TEST(GraphMemoryTest, AReservationIsMadeOrLeavesNoBufferOfNobody) {
  SmallGraph g;
  TensorId x = g.input(64);
  for (int k = 0; k < 6; ++k) x = g.node(Operation::kMean, 64, {x});
  CountedBuffers source;
  for (std::uint64_t n = 1;; ++n) {
    ASSERT_LT(n, 3000u);
    bool is_done = false;
    {
      GraphAllocator allocator(source, {{64_B, 64_B, nullptr}});
      is_done = runs_without(n, [&] { ASSERT_TRUE(allocator.reserve(g.graph, {}).is_ok()); });
      ASSERT_TRUE(allocator.reserve(g.graph, {}).is_ok());
      ASSERT_EQ(source.live(), 2);  // one node's result and the next one's
    }
    ASSERT_EQ(source.live(), 0);
    ASSERT_EQ(source.bytes(), 0_B);
    if (is_done) break;
  }
}

}  // namespace
}  // namespace ashlar
