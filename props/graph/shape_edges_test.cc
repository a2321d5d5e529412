// Edges of the rules of shapes: sources that are left out, numbers at their bounds and the words that say so, sides of
// nothing, and tensors with other strides or types than the result's, which a shape does not show.
//
// Imitates: a file that was edited, and operands that are views or quantised.
#include <ashlar/graph/shape_rules.h>

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "props/graph/small_graphs.h"

namespace ashlar {
namespace {

using graph::ElementType;
using graph::kNoTensor;
using graph::Operation;
using graph::Shape;
using graph::Strides;
using graph::TensorId;
using graph::TensorSpec;

using OperationNumbers = std::array<std::int32_t, 8>;

/// A source: a leaf, with holes between its elements if told so; or none.
struct Source {
  Shape shape;
  ElementType type = ElementType::kF32;
  bool has_holes = false;
};

/// The strides of a tensor with a hole of one element behind each of its elements.
Strides with_holes(const Source& source) {
  Strides strides = graph::packed_strides(source.type, source.shape);
  for (std::uint64_t& stride : strides) stride *= 2;
  return strides;
}

/// The fault of a node of those sources, and as many unused ones behind them as told; "" if it has none.
std::string fault(Operation operation, const Shape& shape, const std::vector<Source>& sources,
                  const OperationNumbers& numbers = {}, std::size_t unused = 0) {
  graph::Graph graph;
  TensorSpec node;
  for (const Source& source : sources) {
    TensorSpec leaf;
    leaf.shape = source.shape;
    leaf.type = source.type;
    if (source.has_holes) leaf.strides = with_holes(source);
    node.sources.push_back(graph.add(leaf).value());
  }
  node.sources.resize(sources.size() + unused, kNoTensor);
  node.operation = operation;
  node.shape = shape;
  node.parameters.integers = numbers;
  const TensorId id = graph.add(node).value();
  const char* const found = graph::shape_fault(graph, id);
  return found == nullptr ? "" : found;
}

Source holes(const Shape& shape) { return {shape, ElementType::kF32, true}; }
Source ints(const Shape& shape) { return {shape, ElementType::kI32}; }

TEST(ShapeEdges, AnUnusedSourceIsNone) {
  const Source x{{4, 3, 2, 1}}, half{{8, 3, 2, 1}};
  EXPECT_EQ(fault(Operation::kSoftMax, x.shape, {x}, {}, 1), "");
  EXPECT_EQ(fault(Operation::kSwiglu, x.shape, {half}, {}, 1), "");
  EXPECT_EQ(fault(Operation::kFlashAttnExt, {6, 4, 3, 2},
                  {{{8, 3, 4, 2}}, {{8, 5, 2, 1}}, {{6, 5, 2, 1}}}, {}, 1),
            "");
  const std::string no_position = "there is not one i32 position for each step of dimension 2";
  EXPECT_EQ(fault(Operation::kRope, x.shape, {x}), no_position);
  EXPECT_EQ(fault(Operation::kRope, x.shape, {x}, {}, 1), no_position);
  EXPECT_EQ(fault(Operation::kRope, x.shape, {x, ints({2, 1, 1, 1})}, {}), "");
}

TEST(ShapeEdges, RopeTurnsAnEvenNumberOfARowsElements) {
  const std::vector<Source> sources{{{4, 3, 2, 1}}, ints({2, 1, 1, 1})};
  for (const std::int32_t turned : {0, 2, 4})
    EXPECT_EQ(fault(Operation::kRope, {4, 3, 2, 1}, sources, {turned}), "") << turned;
  for (const std::int32_t turned : {-4, -2, -1, 1, 3, 5, 6})
    EXPECT_EQ(fault(Operation::kRope, {4, 3, 2, 1}, sources, {turned}),
              "the number of turned elements is odd or above the row's")
        << turned;
}

// Only shapes are compared: where a source's elements are, and how large they are, is the kernel's business.
TEST(ShapeEdges, StridesAndTypesAreNoDimension) {
  const Shape x{4, 3, 2, 1};
  EXPECT_EQ(fault(Operation::kSoftMax, x, {{x}, holes({4, 3, 1, 1})}), "");
  EXPECT_EQ(fault(Operation::kOutProd, {3, 5, 2, 1}, {holes({3, 7, 2, 1}), {{5, 7, 2, 1}}}), "");
  EXPECT_EQ(fault(Operation::kMulMat, {3, 5, 2, 1}, {holes({7, 3, 2, 1}), {{7, 5, 2, 1}}}), "");
  EXPECT_EQ(fault(Operation::kConcat, {4, 6, 2, 1}, {holes(x), {x}}, {1}), "");
  EXPECT_EQ(fault(Operation::kConcat, {4, 6, 2, 1}, {{x}, holes(x)}, {1}), "");
  EXPECT_EQ(fault(Operation::kPad, {5, 4, 3, 2}, {holes(x)}), "");
  EXPECT_EQ(fault(Operation::kRepeat, {8, 3, 2, 1}, {holes(x)}), "");
  EXPECT_EQ(fault(Operation::kAdd, x, {{x}, holes(x)}), "");
  // Attention over quantised keys and values of half precision.
  EXPECT_EQ(fault(Operation::kFlashAttnExt, {6, 4, 3, 2},
                  {{{32, 3, 4, 2}},
                   {{32, 5, 2, 1}, ElementType::kQ4_0},
                   {{6, 5, 2, 1}, ElementType::kF16}}),
            "");
}

TEST(ShapeEdges, SidesOfNothingRepeat) {
  EXPECT_EQ(fault(Operation::kOutProd, {3, 5, 0, 6}, {{{3, 7, 0, 3}}, {{5, 7, 0, 6}}}), "");
  EXPECT_EQ(fault(Operation::kOutProd, {3, 5, 4, 0}, {{{3, 7, 4, 0}}, {{5, 7, 4, 0}}}), "");
  EXPECT_EQ(fault(Operation::kOutProd, {3, 5, 4, 6}, {{{3, 0, 4, 6}}, {{5, 0, 4, 6}}}), "");
  // No heads at all, and heads of nothing.
  EXPECT_EQ(fault(Operation::kFlashAttnExt, {6, 0, 3, 2},
                  {{{8, 3, 0, 2}}, {{8, 5, 0, 2}}, {{6, 5, 0, 2}}}),
            "");
  EXPECT_EQ(fault(Operation::kFlashAttnExt, {6, 4, 3, 0},
                  {{{8, 3, 4, 0}}, {{8, 5, 4, 0}}, {{6, 5, 4, 7}}}),
            "");
}

// The sources make up a result of the same shape along no axis; with an axis that exists there would be too few elements.
TEST(ShapeEdges, ConcatHasOneOfFourAxes) {
  const Shape x{2, 2, 2, 2};
  for (const std::int32_t axis : {-2147483647, -1, 4, 5, 2147483647})
    EXPECT_EQ(fault(Operation::kConcat, x, {{x}, {x}}, {axis}), "an axis that does not exist")
        << axis;
  for (std::int32_t axis = 0; axis < 4; ++axis) {
    EXPECT_EQ(fault(Operation::kConcat, x, {{x}, {x}}, {axis}),
              "the sources do not make up the result");
    Shape joined = x;
    joined[static_cast<std::size_t>(axis)] = 4;
    EXPECT_EQ(fault(Operation::kConcat, joined, {{x}, {x}}, {axis}), "");
  }
}

// One window over an image of its own size: any stride gives one step. OperationNumbers: kind; window, stride and pad, two each.
TEST(ShapeEdges, NumbersOfAPoolAreWithinTheirBounds) {
  const std::string out_of_range = "a window, stride or pad out of range";
  const Shape one{1, 1, 1, 1};
  const auto pool = [&](const Shape& image, const OperationNumbers& numbers) {
    return fault(Operation::kPool2d, one, {{image}}, numbers);
  };
  EXPECT_EQ(pool(one, {0, 1, 1, 65536, 65536, 0, 0}), "");
  EXPECT_EQ(pool(one, {0, 1, 1, 65537, 1, 0, 0}), out_of_range);
  EXPECT_EQ(pool(one, {0, 1, 1, 1, 65537, 0, 0}), out_of_range);
  EXPECT_EQ(pool({65536, 1, 1, 1}, {0, 65536, 1, 1, 1, 0, 0}), "");
  EXPECT_EQ(pool({65537, 1, 1, 1}, {0, 65537, 1, 1, 1, 0, 0}), out_of_range);
  EXPECT_EQ(pool({1, 65537, 1, 1}, {0, 1, 65537, 1, 1, 0, 0}), out_of_range);
  // A pad below nothing would cut the image: 3 - 2 elements are one window.
  EXPECT_EQ(pool({3, 1, 1, 1}, {0, 1, 1, 1, 1, -1, 0}), out_of_range);
  EXPECT_EQ(pool({1, 3, 1, 1}, {0, 1, 1, 1, 1, 0, -1}), out_of_range);
  EXPECT_EQ(pool(one, {2, 1, 1, 1, 1, 0, 0}), "an unknown kind of pool");
  // The eighth number is no pool's.
  for (const std::int32_t unused : {-1, 65537})
    EXPECT_EQ(pool(one, {1, 1, 1, 1, 1, 0, 0, unused}), "");
}

// A kernel of one element over an image of one. OperationNumbers: stride, pad and dilation, two each.
TEST(ShapeEdges, NumbersOfPatchesAreWithinTheirBounds) {
  const Shape one{1, 1, 1, 1};
  const auto patches = [&](const OperationNumbers& numbers) {
    return fault(Operation::kIm2col, one, {{one}, {one}}, numbers);
  };
  EXPECT_EQ(patches({65536, 65536, 0, 0, 65536, 65536, 0, -1}), "");
  const OperationNumbers ones{1, 1, 0, 0, 1, 1, 0};
  for (const std::size_t k : {0u, 1u, 4u, 5u}) {
    for (const std::int32_t outside : {65537, 0, -1}) {
      OperationNumbers bent = ones;
      bent[k] = outside;
      EXPECT_EQ(patches(bent), "a stride, pad or dilation out of range") << k;
    }
  }
  for (const std::int32_t neither : {-1, 2}) {
    OperationNumbers bent = ones;
    bent[6] = neither;
    EXPECT_EQ(patches(bent), "neither one nor two dimensions");
  }
}

// The parameter is the second half of a tensor, and the result a view of the same bytes.
TEST(ShapeEdges, AStepWritesTheParameterWhereItIs) {
  const auto step = [](std::uint64_t offset) {
    props::SmallGraph g;
    const auto both = g.leaf(128);
    const auto parameter = g.view(both, 64, 64);
    TensorSpec spec;
    spec.operation = Operation::kOptStepAdamw;
    spec.shape = {16, 1, 1, 1};
    spec.sources = {parameter, g.leaf(64), g.leaf(64), g.leaf(64), g.leaf(28)};
    spec.view_source = both;
    spec.view_offset = Bytes{offset};
    const char* const found = graph::shape_fault(g.graph, g.add(spec));
    return std::string(found == nullptr ? "" : found);
  };
  EXPECT_EQ(step(64), "");
  EXPECT_EQ(step(0), "the result is not the parameter");
  EXPECT_EQ(step(60), "the result is not the parameter");
}

}  // namespace
}  // namespace ashlar
