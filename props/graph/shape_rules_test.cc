// The rules of shapes, operation by operation: one node that keeps them, and one for each way to break them.
//
// Imitates: a caller who builds a graph by hand, or a file that was edited.
#include <ashlar/graph/shape_rules.h>

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "props/graph/small_graphs.h"

namespace ashlar {
namespace {

using graph::ElementType;
using graph::kNoTensor;
using graph::Operation;
using graph::OperationParameters;
using graph::Shape;
using graph::TensorId;
using graph::TensorSpec;

struct Leaf {
  Shape shape;
  ElementType type = ElementType::kF32;
};

/// Whether a node of that shape goes with sources of those.
bool fits(Operation operation, const Shape& shape, const std::vector<Leaf>& leafs,
          const std::array<std::int32_t, 8>& numbers = {}) {
  graph::Graph graph;
  TensorSpec node;
  for (const Leaf& leaf : leafs) {
    TensorSpec spec;
    spec.shape = leaf.shape;
    spec.type = leaf.type;
    node.sources.push_back(graph.add(spec).value());
  }
  node.operation = operation;
  node.shape = shape;
  node.parameters.integers = numbers;
  const auto added = graph.add(node);
  EXPECT_TRUE(added.is_ok()) << added.status().why();
  return graph::shape_fault(graph, added.value()) == nullptr;
}

TEST(ShapeRules, OfSumsByElement) {
  EXPECT_TRUE(fits(Operation::kAdd, {4, 6, 2, 3}, {{{4, 6, 2, 3}}, {{2, 3, 1, 3}}}));
  EXPECT_FALSE(fits(Operation::kAdd, {4, 6, 2, 3}, {{{4, 6, 2, 1}}, {{4, 6, 2, 3}}}));
  EXPECT_FALSE(fits(Operation::kAdd, {4, 6, 2, 3}, {{{4, 6, 2, 3}}, {{3, 3, 1, 3}}}));
  EXPECT_FALSE(fits(Operation::kAdd, {4, 6, 2, 3}, {{{4, 6, 2, 3}}, {{4, 6, 2, 2}}}));
  EXPECT_FALSE(fits(Operation::kMul, {4, 6, 2, 3}, {{{4, 6, 2, 3}}, {{4, 0, 2, 3}}}));
  EXPECT_TRUE(fits(Operation::kMul, {4, 0, 2, 3}, {{{4, 0, 2, 3}}, {{4, 0, 2, 1}}}));
  EXPECT_TRUE(fits(Operation::kMul, {4, 0, 2, 3}, {{{4, 0, 2, 3}}, {{4, 7, 1, 1}}}));
  EXPECT_FALSE(fits(Operation::kMul, {4, 0, 2, 3}, {{{4, 0, 2, 3}}, {{3, 7, 1, 1}}}));
  EXPECT_TRUE(fits(Operation::kScale, {4, 1, 1, 1}, {{{4, 1, 1, 1}}}));
  EXPECT_FALSE(fits(Operation::kScale, {4, 1, 1, 1}, {{{1, 4, 1, 1}}}));
}

TEST(ShapeRules, OfSoftMaxAndItsMask) {
  const Shape x{4, 3, 6, 2};
  EXPECT_TRUE(fits(Operation::kSoftMax, x, {{x}}));
  EXPECT_FALSE(fits(Operation::kSoftMax, x, {{{4, 3, 6, 1}}}));
  EXPECT_TRUE(fits(Operation::kSoftMax, x, {{x}, {{4, 5, 3, 1}}}));
  EXPECT_FALSE(fits(Operation::kSoftMax, x, {{x}, {{5, 3, 1, 1}}}));
  EXPECT_FALSE(fits(Operation::kSoftMax, x, {{x}, {{4, 2, 1, 1}}}));
  EXPECT_FALSE(fits(Operation::kSoftMax, x, {{x}, {{4, 3, 4, 1}}}));
  EXPECT_FALSE(fits(Operation::kSoftMax, x, {{x}, {{4, 3, 1, 3}}}));
  EXPECT_FALSE(fits(Operation::kSoftMax, x, {{x}, {{4, 3, 0, 1}}}));
}

TEST(ShapeRules, OfRope) {
  const Shape x{8, 2, 5, 1};
  const Leaf positions{{5, 1, 1, 1}, ElementType::kI32};
  EXPECT_TRUE(fits(Operation::kRope, x, {{x}, positions}, {8, 0}));
  EXPECT_TRUE(fits(Operation::kRope, x, {{x}, positions}, {0, 2}));
  EXPECT_FALSE(fits(Operation::kRope, x, {{{8, 2, 4, 1}}, positions}, {8, 0}));
  EXPECT_FALSE(fits(Operation::kRope, x, {{x}}, {8, 0}));
  EXPECT_FALSE(fits(Operation::kRope, x, {{x}, {{5, 1, 1, 1}}}, {8, 0}));
  EXPECT_FALSE(fits(Operation::kRope, x, {{x}, {{4, 1, 1, 1}, ElementType::kI32}}, {8, 0}));
  EXPECT_FALSE(fits(Operation::kRope, x, {{x}, positions}, {10, 0}));
  EXPECT_FALSE(fits(Operation::kRope, x, {{x}, positions}, {3, 0}));
  EXPECT_FALSE(fits(Operation::kRope, x, {{x}, positions}, {-2, 0}));
  EXPECT_FALSE(fits(Operation::kRope, x, {{x}, positions}, {8, 1}));
}

TEST(ShapeRules, OfProducts) {
  EXPECT_TRUE(fits(Operation::kMulMat, {3, 5, 4, 6}, {{{7, 3, 2, 3}}, {{7, 5, 4, 6}}}));
  EXPECT_FALSE(fits(Operation::kMulMat, {3, 5, 4, 6}, {{{8, 3, 2, 3}}, {{7, 5, 4, 6}}}));
  EXPECT_FALSE(fits(Operation::kMulMat, {3, 5, 4, 6}, {{{7, 4, 2, 3}}, {{7, 5, 4, 6}}}));
  EXPECT_FALSE(fits(Operation::kMulMat, {3, 5, 4, 6}, {{{7, 3, 3, 3}}, {{7, 5, 4, 6}}}));
  EXPECT_FALSE(fits(Operation::kMulMat, {3, 5, 4, 6}, {{{7, 3, 2, 4}}, {{7, 5, 4, 6}}}));
  EXPECT_FALSE(fits(Operation::kMulMat, {3, 5, 4, 6}, {{{7, 3, 0, 3}}, {{7, 5, 4, 6}}}));
  EXPECT_TRUE(fits(Operation::kMulMat, {3, 5, 0, 6}, {{{7, 3, 0, 3}}, {{7, 5, 0, 6}}}));
  EXPECT_TRUE(fits(Operation::kOutProd, {3, 5, 4, 6}, {{{3, 7, 2, 3}}, {{5, 7, 4, 6}}}));
  EXPECT_FALSE(fits(Operation::kOutProd, {3, 5, 4, 6}, {{{3, 8, 2, 3}}, {{5, 7, 4, 6}}}));
  EXPECT_FALSE(fits(Operation::kOutProd, {3, 5, 4, 6}, {{{4, 7, 2, 3}}, {{5, 7, 4, 6}}}));
  EXPECT_FALSE(fits(Operation::kOutProd, {3, 5, 4, 6}, {{{3, 7, 3, 3}}, {{5, 7, 4, 6}}}));
  EXPECT_FALSE(fits(Operation::kOutProd, {3, 5, 4, 6}, {{{3, 7, 2, 4}}, {{5, 7, 4, 6}}}));
  EXPECT_FALSE(fits(Operation::kOutProd, {3, 5, 4, 6}, {{{3, 7, 2, 0}}, {{5, 7, 4, 6}}}));
}

TEST(ShapeRules, OfProductsByExperts) {
  const Leaf a{{7, 3, 4, 1}}, b{{7, 1, 5, 1}}, ids{{2, 5, 1, 1}, ElementType::kI32};
  const Shape out{3, 2, 5, 1};
  EXPECT_TRUE(fits(Operation::kMulMatId, out, {a, b, ids}));
  EXPECT_TRUE(fits(Operation::kMulMatId, out, {a, {{7, 2, 5, 1}}, ids}));
  EXPECT_FALSE(fits(Operation::kMulMatId, out, {a, {{8, 1, 5, 1}}, ids}));
  EXPECT_FALSE(fits(Operation::kMulMatId, out, {a, b, {{2, 5, 1, 1}}}));
  EXPECT_FALSE(fits(Operation::kMulMatId, {3, 2, 4, 1}, {a, b, ids}));
  EXPECT_FALSE(fits(Operation::kMulMatId, out, {{{7, 3, 4, 2}}, b, ids}));
  EXPECT_FALSE(fits(Operation::kMulMatId, out, {a, {{7, 1, 5, 2}}, ids}));
  EXPECT_FALSE(fits(Operation::kMulMatId, out, {a, b, {{2, 4, 1, 1}, ElementType::kI32}}));
  EXPECT_FALSE(fits(Operation::kMulMatId, out, {a, {{7, 3, 5, 1}}, ids}));
  EXPECT_FALSE(fits(Operation::kMulMatId, out, {a, {{7, 0, 5, 1}}, ids}));
}

TEST(ShapeRules, OfAttention) {
  const Leaf q{{8, 3, 4, 2}}, k{{8, 5, 2, 1}}, v{{6, 5, 2, 1}};
  const Shape out{6, 4, 3, 2};
  EXPECT_TRUE(fits(Operation::kFlashAttnExt, out, {q, k, v}));
  EXPECT_TRUE(fits(Operation::kFlashAttnExt, out, {q, k, v, {{5, 3, 1, 1}}}));
  EXPECT_TRUE(fits(Operation::kFlashAttnExt, out, {q, k, v, {{5, 4, 1, 1}}}));
  EXPECT_FALSE(fits(Operation::kFlashAttnExt, out, {q, {{7, 5, 2, 1}}, v}));
  EXPECT_FALSE(fits(Operation::kFlashAttnExt, out, {q, k, {{6, 4, 2, 1}}}));
  EXPECT_FALSE(fits(Operation::kFlashAttnExt, {6, 3, 4, 2}, {q, k, v}));
  EXPECT_FALSE(fits(Operation::kFlashAttnExt, out, {q, {{8, 5, 3, 1}}, {{6, 5, 3, 1}}}));
  EXPECT_FALSE(fits(Operation::kFlashAttnExt, out, {q, {{8, 5, 2, 3}}, {{6, 5, 2, 3}}}));
  EXPECT_FALSE(fits(Operation::kFlashAttnExt, out, {q, {{8, 5, 2, 0}}, {{6, 5, 2, 0}}}));
  EXPECT_FALSE(fits(Operation::kFlashAttnExt, out, {q, k, {{6, 5, 1, 1}}}));
  EXPECT_FALSE(fits(Operation::kFlashAttnExt, out, {q, k, {{6, 5, 2, 2}}}));
  EXPECT_TRUE(fits(Operation::kFlashAttnExt, {6, 0, 3, 2}, {{{8, 3, 0, 2}}, k, v}));
  EXPECT_FALSE(fits(Operation::kFlashAttnExt, out, {q, k, v, {{4, 3, 1, 1}}}));
  EXPECT_FALSE(fits(Operation::kFlashAttnExt, out, {q, k, v, {{5, 2, 1, 1}}}));
  EXPECT_FALSE(fits(Operation::kFlashAttnExt, out, {q, k, v, {{5, 3, 4, 1}}}));
  EXPECT_FALSE(fits(Operation::kFlashAttnExt, out, {q, k, v, {{5, 3, 1, 2}}}));
}

TEST(ShapeRules, OfRowsByNumber) {
  const Leaf ids{{3, 4, 2, 1}, ElementType::kI32}, wide{{3, 4, 2, 1}, ElementType::kI64};
  const Leaf table{{8, 9, 4, 2}};
  EXPECT_TRUE(fits(Operation::kGetRows, {8, 3, 4, 2}, {table, ids}));
  EXPECT_TRUE(fits(Operation::kGetRows, {8, 3, 4, 2}, {table, wide}));
  EXPECT_FALSE(fits(Operation::kGetRows, {8, 3, 4, 2}, {table, {{3, 4, 2, 1}}}));
  EXPECT_FALSE(fits(Operation::kGetRows, {7, 3, 4, 2}, {table, ids}));
  EXPECT_FALSE(fits(Operation::kGetRows, {8, 2, 4, 2}, {table, ids}));
  EXPECT_FALSE(fits(Operation::kGetRows, {8, 3, 4, 2}, {{{8, 9, 3, 2}}, ids}));
  EXPECT_FALSE(fits(Operation::kGetRows, {8, 3, 4, 2}, {{{8, 9, 4, 1}}, ids}));
  EXPECT_FALSE(fits(Operation::kGetRows, {8, 3, 4, 2}, {table, {{3, 4, 2, 2}, ElementType::kI32}}));
  const Shape into{8, 9, 4, 2};
  const auto sets = [&](const Shape& values, const Shape& numbers,
                        ElementType type = ElementType::kI64) {
    return fits(Operation::kSetRows, into, {{values}, {numbers, type}, {into}});
  };
  EXPECT_TRUE(sets({8, 3, 4, 2}, {3, 4, 2, 1}));
  EXPECT_TRUE(sets({8, 3, 4, 2}, {3, 2, 1, 1}));
  EXPECT_TRUE(sets({8, 3, 4, 2}, {3, 4, 2, 1}, ElementType::kI32));
  EXPECT_FALSE(sets({8, 3, 4, 2}, {3, 4, 2, 1}, ElementType::kF32));
  EXPECT_FALSE(sets({7, 3, 4, 2}, {3, 4, 2, 1}));
  EXPECT_FALSE(sets({8, 3, 4, 2}, {2, 4, 2, 1}));
  EXPECT_FALSE(sets({8, 3, 3, 2}, {3, 1, 1, 1}));
  EXPECT_FALSE(sets({8, 3, 4, 1}, {3, 1, 1, 1}));
  EXPECT_FALSE(sets({8, 3, 4, 2}, {3, 3, 1, 1}));
  EXPECT_FALSE(sets({8, 3, 4, 2}, {3, 4, 3, 1}));
  EXPECT_FALSE(sets({8, 3, 4, 2}, {3, 0, 1, 1}));
}

TEST(ShapeRules, OfCopiesAndJoins) {
  EXPECT_TRUE(fits(Operation::kCont, {6, 2, 1, 1}, {{{3, 4, 1, 1}}}));
  EXPECT_FALSE(fits(Operation::kCpy, {6, 2, 1, 1}, {{{3, 5, 1, 1}}}));
  EXPECT_TRUE(fits(Operation::kSwiglu, {4, 2, 1, 1}, {{{4, 2, 1, 1}}, {{4, 2, 1, 1}}}));
  EXPECT_FALSE(fits(Operation::kSwiglu, {4, 2, 1, 1}, {{{4, 2, 1, 1}}, {{4, 1, 1, 1}}}));
  EXPECT_FALSE(fits(Operation::kSwiglu, {4, 2, 1, 1}, {{{4, 1, 1, 1}}, {{4, 2, 1, 1}}}));
  EXPECT_TRUE(fits(Operation::kSwiglu, {4, 2, 1, 1}, {{{8, 2, 1, 1}}}));
  EXPECT_FALSE(fits(Operation::kSwiglu, {4, 2, 1, 1}, {{{9, 2, 1, 1}}}));
  EXPECT_FALSE(fits(Operation::kSwiglu, {4, 2, 1, 1}, {{{8, 3, 1, 1}}}));
  for (std::int32_t axis = 0; axis < 4; ++axis) {
    Shape first{2, 3, 4, 5}, second{2, 3, 4, 5}, out{2, 3, 4, 5};
    const auto d = static_cast<std::size_t>(axis);
    second[d] = 7;
    out[d] = first[d] + second[d];
    EXPECT_TRUE(fits(Operation::kConcat, out, {{first}, {second}}, {axis}));
    out[d] += 1;
    EXPECT_FALSE(fits(Operation::kConcat, out, {{first}, {second}}, {axis}));
    out[d] -= 1;
    for (std::size_t other = 0; other < 4; ++other) {
      if (other == d) continue;
      Shape bent = first;
      bent[other] += 1;
      EXPECT_FALSE(fits(Operation::kConcat, out, {{bent}, {second}}, {axis}));
      bent = second;
      bent[other] += 1;
      EXPECT_FALSE(fits(Operation::kConcat, out, {{first}, {bent}}, {axis}));
    }
  }
  EXPECT_FALSE(fits(Operation::kConcat, {4, 1, 1, 1}, {{{2, 1, 1, 1}}, {{2, 1, 1, 1}}}, {-1}));
  EXPECT_FALSE(fits(Operation::kConcat, {4, 1, 1, 1}, {{{2, 1, 1, 1}}, {{2, 1, 1, 1}}}, {4}));
  EXPECT_TRUE(fits(Operation::kPad, {4, 5, 6, 7}, {{{4, 1, 6, 3}}}));
  for (std::size_t d = 0; d < 4; ++d) {
    Shape large{4, 5, 6, 7};
    large[d] += 1;
    EXPECT_FALSE(fits(Operation::kPad, {4, 5, 6, 7}, {{large}}));
    EXPECT_FALSE(fits(Operation::kRepeat, {4, 5, 6, 7}, {{large}}));
    EXPECT_FALSE(fits(Operation::kRepeatBack, large, {{{4, 5, 6, 7}}}));
  }
  EXPECT_TRUE(fits(Operation::kRepeat, {4, 5, 6, 7}, {{{2, 5, 3, 1}}}));
  EXPECT_TRUE(fits(Operation::kRepeatBack, {2, 5, 3, 1}, {{{4, 5, 6, 7}}}));
}

TEST(ShapeRules, OfSumsAndOrders) {
  EXPECT_TRUE(fits(Operation::kSum, {1, 1, 1, 1}, {{{4, 5, 6, 7}}}));
  EXPECT_FALSE(fits(Operation::kSum, {1, 1, 1, 2}, {{{4, 5, 6, 7}}}));
  for (const Operation operation : {Operation::kSumRows, Operation::kMean}) {
    EXPECT_TRUE(fits(operation, {1, 5, 6, 7}, {{{4, 5, 6, 7}}}));
    EXPECT_FALSE(fits(operation, {4, 5, 6, 7}, {{{4, 5, 6, 7}}}));
    EXPECT_FALSE(fits(operation, {1, 5, 6, 1}, {{{4, 5, 6, 7}}}));
  }
  EXPECT_TRUE(fits(Operation::kArgsort, {4, 5, 1, 1}, {{{4, 5, 1, 1}}}));
  EXPECT_FALSE(fits(Operation::kArgsort, {4, 4, 1, 1}, {{{4, 5, 1, 1}}}));
}

TEST(ShapeRules, OfPatches) {
  const Leaf kernel{{3, 2, 4, 5}}, image{{9, 8, 4, 2}};
  // Strides 2 and 3, pads 1 and 2, dilations 1 and 2: 5 steps across, 4 down.
  const std::array<std::int32_t, 8> numbers{2, 3, 1, 2, 1, 2, 0, 0};
  const Shape patches{24, 5, 4, 2};
  EXPECT_TRUE(fits(Operation::kIm2col, patches, {kernel, image}, numbers));
  EXPECT_TRUE(fits(Operation::kIm2colBack, image.shape, {{patches}, kernel}, numbers));
  EXPECT_FALSE(fits(Operation::kIm2col, patches, {{{3, 2, 3, 5}}, image}, numbers));
  for (std::size_t d = 0; d < 4; ++d) {
    Shape bent = patches;
    bent[d] += 1;
    EXPECT_FALSE(fits(Operation::kIm2col, bent, {kernel, image}, numbers));
    EXPECT_FALSE(fits(Operation::kIm2colBack, image.shape, {{bent}, kernel}, numbers));
  }
  for (std::size_t k = 0; k < 6; ++k) {
    auto bent = numbers;
    bent[k] = k == 2 || k == 3 ? -1 : 0;
    EXPECT_FALSE(fits(Operation::kIm2col, patches, {kernel, image}, bent)) << k;
    bent[k] = 65537;
    EXPECT_FALSE(fits(Operation::kIm2col, patches, {kernel, image}, bent)) << k;
    bent[k] = numbers[k] + 1;  // other strides, pads and dilations give other steps
    EXPECT_EQ(fits(Operation::kIm2col, patches, {kernel, image}, bent), k == 3) << k;
  }
  auto bent = numbers;
  bent[6] = 2;
  EXPECT_FALSE(fits(Operation::kIm2col, patches, {kernel, image}, bent));
  // A pad of nothing and a dilation that reaches over the image: no step at all.
  EXPECT_TRUE(fits(Operation::kIm2col, {24, 0, 4, 2}, {kernel, image}, {2, 3, 0, 2, 5, 2, 0, 0}));
  EXPECT_FALSE(fits(Operation::kIm2col, {24, 1, 4, 2}, {kernel, image}, {2, 3, 0, 2, 5, 2, 0, 0}));
  // One dimension: the second numbers are not used, but must be numbers.
  const Leaf flat_kernel{{3, 4, 5, 1}}, steps{{9, 4, 2, 1}};
  const std::array<std::int32_t, 8> flat{2, 1, 1, 0, 1, 1, 1, 0};
  EXPECT_TRUE(fits(Operation::kIm2col, {12, 5, 2, 1}, {flat_kernel, steps}, flat));
  EXPECT_FALSE(fits(Operation::kIm2col, {12, 5, 1, 1}, {flat_kernel, steps}, flat));
  EXPECT_FALSE(fits(Operation::kIm2col, {12, 5, 2, 1}, {{{3, 3, 5, 1}}, steps}, flat));
  EXPECT_FALSE(fits(Operation::kIm2col, {12, 5, 2, 1}, {flat_kernel, {{9, 4, 2, 2}}}, flat));
  EXPECT_FALSE(fits(Operation::kIm2col, {12, 4, 2, 1}, {flat_kernel, steps}, flat));
}

TEST(ShapeRules, OfPools) {
  const Leaf image{{9, 8, 4, 2}};
  // A window of 3 by 2, strides 2 and 3, pads 1 and 0.
  const std::array<std::int32_t, 8> numbers{0, 3, 2, 2, 3, 1, 0, 0};
  const Shape pooled{5, 3, 4, 2};
  EXPECT_TRUE(fits(Operation::kPool2d, pooled, {image}, numbers));
  EXPECT_TRUE(fits(Operation::kPool2dBack, image.shape, {{pooled}, image}, numbers));
  EXPECT_FALSE(fits(Operation::kPool2dBack, image.shape, {{pooled}, {{9, 8, 4, 1}}}, numbers));
  for (std::size_t d = 0; d < 4; ++d) {
    Shape bent = pooled;
    bent[d] += 1;
    EXPECT_FALSE(fits(Operation::kPool2d, bent, {image}, numbers));
  }
  for (std::size_t k = 0; k < 7; ++k) {
    auto bent = numbers;
    bent[k] = k == 0 ? 2 : k > 4 ? -1 : 0;
    EXPECT_FALSE(fits(Operation::kPool2d, pooled, {image}, bent)) << k;
    bent[k] = 65537;
    EXPECT_FALSE(fits(Operation::kPool2d, pooled, {image}, bent)) << k;
  }
  auto mean = numbers;
  mean[0] = 1;
  EXPECT_TRUE(fits(Operation::kPool2d, pooled, {image}, mean));
  // A window that could lie in the pad alone.
  EXPECT_TRUE(fits(Operation::kPool2d, {10, 8, 4, 2}, {image}, {0, 2, 1, 1, 1, 1, 0, 0}));
  EXPECT_FALSE(fits(Operation::kPool2d, {12, 8, 4, 2}, {image}, {0, 2, 1, 1, 1, 2, 0, 0}));
  EXPECT_FALSE(fits(Operation::kPool2d, {9, 10, 4, 2}, {image}, {0, 1, 1, 1, 1, 0, 1, 0}));
}

TEST(ShapeRules, OfTraining) {
  const Shape x{5, 7, 2, 3};
  EXPECT_TRUE(fits(Operation::kCrossEntropyLoss, {1, 1, 1, 1}, {{x}, {x}}));
  EXPECT_FALSE(fits(Operation::kCrossEntropyLoss, {1, 1, 1, 2}, {{x}, {x}}));
  EXPECT_FALSE(fits(Operation::kCrossEntropyLoss, {0, 1, 1, 1}, {{x}, {x}}));
  EXPECT_FALSE(fits(Operation::kCrossEntropyLoss, {1, 1, 1, 1}, {{x}, {{5, 7, 2, 1}}}));
  EXPECT_TRUE(fits(Operation::kCrossEntropyLossBack, x, {{{1, 1, 1, 1}}, {x}, {x}}));
  EXPECT_FALSE(fits(Operation::kCrossEntropyLossBack, x, {{{2, 1, 1, 1}}, {x}, {x}}));
  EXPECT_FALSE(fits(Operation::kCrossEntropyLossBack, x, {{{1, 1, 1, 1}}, {{5, 7, 1, 3}}, {x}}));
  EXPECT_FALSE(fits(Operation::kCrossEntropyLossBack, x, {{{1, 1, 1, 1}}, {x}, {{5, 7, 1, 3}}}));
  const auto steps = [&](std::size_t bent, std::uint64_t numbers, std::uint64_t offset) {
    graph::Graph graph;
    TensorSpec spec;
    spec.shape = {4, 3, 1, 1};
    spec.operation = Operation::kOptStepAdamw;
    for (std::size_t k = 0; k < 5; ++k) {
      TensorSpec leaf;
      leaf.shape = k == 4 ? Shape{numbers, 1, 1, 1} : k == bent ? Shape{4, 4, 1, 1} : spec.shape;
      spec.sources.push_back(graph.add(leaf).value());
    }
    spec.view_source = spec.sources[offset == 1 ? 2 : 0];
    const TensorId node = graph.add(spec).value();
    return graph::shape_fault(graph, node) == nullptr;
  };
  EXPECT_TRUE(steps(9, 7, 0));
  EXPECT_FALSE(steps(9, 6, 0));
  EXPECT_FALSE(steps(9, 7, 1));  // a view of a moment
  for (std::size_t k = 0; k < 4; ++k) EXPECT_FALSE(steps(k, 7, 0)) << k;
}

TEST(ShapeRules, AskNothingOfLeafsViewsAndControl) {
  props::SmallGraph g;
  const TensorId x = g.input(64);
  const TensorId v = g.view(x, 16);
  const TensorId c = g.node(Operation::kControl, 8, {x, v});
  for (const TensorId id : {x, v, c}) EXPECT_EQ(graph::shape_fault(g.graph, id), nullptr);
}

}  // namespace
}  // namespace ashlar
