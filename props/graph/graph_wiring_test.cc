// What one tensor is told apart by: the wiring hash for each field that a plan depends on, places of views and of
// sources, and which sources may be written over when several are of one root.
//
// Imitates: graphs that differ in one field; a view source and offsets at their bounds.
// Does not prove: that two graphs never have one hash; it has 64 bits.
#include <ashlar/graph/graph.h>

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "props/graph/small_graphs.h"

namespace ashlar {
namespace {

using graph::kNoTensor;
using graph::Operation;
using graph::RegionKind;
using graph::TensorId;
using graph::TensorSpec;
using props::SmallGraph;

TensorSpec spec_of(Operation operation, std::vector<TensorId> sources) {
  TensorSpec spec;
  spec.operation = operation;
  spec.shape = {4, 1, 1, 1};
  spec.sources = std::move(sources);
  return spec;
}
TensorSpec view_of(TensorId source, std::uint64_t offset = 0) {
  TensorSpec spec = spec_of(Operation::kView, {source});
  spec.view_source = source;
  spec.view_offset = Bytes{offset};
  return spec;
}

/// The number of different hashes of graphs that begin with four leafs of 16 bytes and go on as told.
std::size_t wirings(const std::vector<std::function<void(SmallGraph&)>>& ends) {
  std::set<std::uint64_t> found;
  for (const auto& add_end : ends) {
    SmallGraph g;
    for (int k = 0; k < 4; ++k) g.leaf(16);
    add_end(g);
    found.insert(g.graph.wiring());
  }
  return found.size();
}
std::function<void(SmallGraph&)> one(const TensorSpec& spec) {
  return [spec](SmallGraph& g) { g.add(spec); };
}

constexpr TensorId kA{0}, kB{1}, kC{2}, kD{3};

TEST(GraphWirings, DifferWhereAFlagDoes) {
  std::vector<std::function<void(SmallGraph&)>> leafs;
  for (std::uint8_t flags = 0; flags < 16; ++flags) {
    TensorSpec leaf;
    leaf.flags = flags;
    leafs.push_back(one(leaf));
  }
  EXPECT_EQ(wirings(leafs), 16u);
}

TEST(GraphWirings, DifferWhereASourceDoes) {
  EXPECT_EQ(
      wirings(
          {one(spec_of(Operation::kControl, {})), one(spec_of(Operation::kControl, {kA})),
           one(spec_of(Operation::kControl, {kB})), one(spec_of(Operation::kControl, {kNoTensor})),
           one(spec_of(Operation::kControl, {kA, kB})), one(spec_of(Operation::kControl, {kB, kA})),
           one(spec_of(Operation::kControl, {kA, kNoTensor})),
           one(spec_of(Operation::kControl, {kA, kB, kC})), one(TensorSpec{}), [](SmallGraph&) {}}),
      10u);
}

// The writer's sources are the same: only what it writes into differs.
TEST(GraphWirings, DifferWhereARootDoes) {
  std::vector<std::function<void(SmallGraph&)>> ends;
  for (const TensorId into : {kB, kC, kD, kNoTensor}) {
    TensorSpec copy = spec_of(Operation::kCpy, {kA});
    copy.view_source = into;
    ends.push_back(one(copy));
  }
  // A view without an operation has no source at all.
  for (const TensorId of : {kA, kB, kNoTensor}) {
    TensorSpec view = spec_of(Operation::kNone, {});
    view.view_source = of;
    ends.push_back(one(view));
  }
  EXPECT_EQ(wirings(ends), 7u);
}

// Which sources may be written over: none, the first, the second, both. The sources are the same.
TEST(GraphWirings, DifferWhereReuseInPlaceDoes) {
  const auto end = [](Operation operation, std::uint64_t elements) {
    TensorSpec spec = spec_of(operation, {kA, kB});
    spec.shape[0] = elements;
    return one(spec);
  };
  EXPECT_EQ(
      wirings({end(Operation::kAdd, 4), end(Operation::kSoftMax, 4), end(Operation::kMulMat, 4)}),
      3u);
  EXPECT_EQ(wirings({end(Operation::kAdd, 5), end(Operation::kMulMat, 4)}),
            1u);  // neither in place
}

TEST(GraphWirings, DifferWhereARegionDoes) {
  // Two nodes, of which none, the first, the second, or both are in a region; or in one each; or one inside the other.
  const auto end = [](const std::string& order, RegionKind kind) {
    return [order, kind](SmallGraph& g) {
      for (const char c : order) {
        if (c == '(') g.graph.begin_region(kind);
        if (c == ')') static_cast<void>(g.graph.end_region().is_ok());
        if (c == 'n') g.add(spec_of(Operation::kScale, {kA}));
      }
    };
  };
  std::vector<std::function<void(SmallGraph&)>> ends{end("nn", RegionKind::kLoop)};
  for (const char* order : {"(n)n", "n(n)", "(nn)", "(n)(n)", "(n(n))", "((n)n)", "nn()", "n()n"}) {
    ends.push_back(end(order, RegionKind::kLoop));
    ends.push_back(end(order, RegionKind::kBranch));
  }
  EXPECT_EQ(wirings(ends), 17u);
}

TEST(GraphTables, SourcesLieBehindEachOther) {
  SmallGraph g;
  const auto a = g.leaf(16), b = g.leaf(16);
  g.add(spec_of(Operation::kControl, {b, a, kNoTensor}));
  g.add(spec_of(Operation::kScale, {a}));
  const std::vector<std::uint32_t> begins{0, 0, 0, 3}, ends{0, 0, 3, 4};
  for (std::size_t t = 0; t < 4; ++t) {
    EXPECT_EQ(g.graph.tensors()[t].sources_begin, begins[t]);
    EXPECT_EQ(g.graph.tensors()[t].sources_end, ends[t]);
  }
  const auto sources = g.graph.sources(g.graph.tensors()[2]);
  EXPECT_EQ(std::vector<TensorId>(sources.begin(), sources.end()),
            (std::vector<TensorId>{b, a, kNoTensor}));
}

TEST(GraphViews, OfWhatIsNotThereYetAreRefused) {
  for (std::uint32_t leafs = 0; leafs < 3; ++leafs) {
    SmallGraph g;
    for (std::uint32_t k = 0; k < leafs; ++k) g.leaf(16);
    for (const std::uint32_t source : {leafs, leafs + 1}) {
      TensorSpec view = spec_of(Operation::kNone, {});
      view.view_source = TensorId{source};  // its own number, and the next
      const auto added = g.graph.add(view);
      EXPECT_EQ(added.code(), Code::kInvalidArgument);
      EXPECT_STREQ(added.status().why(),
                   "a view source that is not added before: forward or cyclic");
    }
  }
}

// A view at 16 of a root of 64 bytes, and views of it of 16 bytes: they end at 32 more than their offset.
TEST(GraphViews, OffsetsAddUpToTheRootsEndAndNotBeyond) {
  SmallGraph g;
  const auto root = g.leaf(64);
  const auto middle = g.add(view_of(root, 16));
  const auto last = g.add(view_of(middle, 32));
  EXPECT_EQ(g.graph[last].view_offset, 48_B);
  // Beyond the end by a little, with its first byte too, and by so much that a sum of 64 bits is 0, 12 or 16 again.
  for (const std::uint64_t offset :
       {std::uint64_t{36}, std::uint64_t{52}, std::uint64_t{64}, std::uint64_t{68},
        ~std::uint64_t{0} - 15, ~std::uint64_t{0} - 3, ~std::uint64_t{0}}) {
    const auto added = g.graph.add(view_of(middle, offset));
    EXPECT_EQ(added.code(), Code::kSizeOverflow) << offset;
    EXPECT_STREQ(added.status().why(), "a view outside its root") << offset;
  }
}

/// Bit k: source k of a sum of 16 elements may be written over.
unsigned over(SmallGraph& g, TensorId a, TensorId b) {
  TensorSpec sum = spec_of(Operation::kAdd, {a, b});
  sum.shape = {4, 4, 1, 1};
  return g.graph[g.add(sum)].in_place_sources;
}

TEST(GraphInPlaceMasks, SourcesOfOneRootNeedOneLayoutAndOnePlace) {
  SmallGraph g;
  TensorSpec spec;
  spec.shape = {4, 4, 2, 1};
  const auto root = g.add(spec);
  spec.shape = {4, 4, 1, 1};
  const auto other = g.add(spec);
  TensorSpec view = view_of(root);
  view.shape = {4, 4, 1, 1};
  const auto first = g.add(view), again = g.add(view);
  view.strides = {16, 4, 64, 64};
  const auto turned = g.add(view);
  view.strides = {};
  view.view_offset = 4_B;
  const auto shifted = g.add(view);
  EXPECT_EQ(over(g, first, other), 3u);
  EXPECT_EQ(over(g, first, first), 3u);
  EXPECT_EQ(over(g, first, again), 3u);
  // An element of the other source would be written before it is read.
  EXPECT_EQ(over(g, first, turned), 0u);
  EXPECT_EQ(over(g, turned, first), 0u);
  EXPECT_EQ(over(g, first, shifted), 0u);
  EXPECT_EQ(over(g, shifted, first), 0u);
  // These lie elsewhere, so only the other one is left.
  EXPECT_EQ(over(g, turned, other), 2u);
  EXPECT_EQ(over(g, other, shifted), 1u);
}

}  // namespace
}  // namespace ashlar
