// Shapes of numbers that index: a kernel reads each of their dimensions, so each is checked. Kernels read beyond these tensors
// once (found under AddressSanitizer).
#include <ashlar/graph/shape_rules.h>

#include <gtest/gtest.h>

#include <string>

#include "props/graph/small_graphs.h"

namespace ashlar {
namespace {

using graph::ElementType;
using graph::Operation;
using graph::Shape;
using graph::TensorId;
using graph::TensorSpec;
using props::SmallGraph;

TensorId numbers(SmallGraph& small, const Shape& shape) {
  TensorSpec spec;
  spec.type = ElementType::kI32;
  spec.shape = shape;
  return small.add(spec);
}
TensorId floats(SmallGraph& small, const Shape& shape) {
  TensorSpec spec;
  spec.shape = shape;
  return small.add(spec);
}
std::string fault_of(const SmallGraph& small, TensorId node) {
  const char* const fault = shape_fault(small.graph, node);
  return fault == nullptr ? "" : fault;
}

TEST(IndexShapes, PositionsHaveElements) {
  for (const std::uint64_t second : {std::uint64_t{1}, std::uint64_t{0}}) {
    SmallGraph small;
    TensorSpec rope;
    rope.operation = Operation::kRope;
    rope.shape = {8, 2, 64, 1};
    rope.sources = {floats(small, rope.shape), numbers(small, {64, second, 1, 1})};
    rope.parameters.integers[0] = 8;
    EXPECT_EQ(fault_of(small, small.add(rope)),
              second == 1 ? "" : "there is not one i32 position for each step of dimension 2");
  }
}

TEST(IndexShapes, ExpertsAreThereForEachToken) {
  const struct {
    Shape ids;
    const char* fault;
  } cases[] = {{{2, 64, 1, 1}, ""},
               {{2, 63, 1, 1}, "there are not experts for each token"},
               {{2, 64, 0, 1}, "there are not experts for each token"},
               {{2, 64, 1, 0}, "there are not experts for each token"}};
  for (const auto& one : cases) {
    SmallGraph small;
    TensorSpec product;
    product.operation = Operation::kMulMatId;
    product.shape = {4, 2, 64, 1};
    product.sources = {floats(small, {8, 4, 3, 1}), floats(small, {8, 1, 64, 1}),
                       numbers(small, one.ids)};
    EXPECT_EQ(fault_of(small, small.add(product)), one.fault);
  }
}

TEST(IndexShapes, NumbersOfRowsHaveThreeDimensions) {
  for (const std::uint64_t last : {std::uint64_t{1}, std::uint64_t{0}, std::uint64_t{2}}) {
    SmallGraph small;
    TensorSpec set;
    set.operation = Operation::kSetRows;
    set.shape = {8, 100, 1, 1};
    set.view_source = floats(small, set.shape);
    set.sources = {floats(small, {8, 64, 1, 1}), numbers(small, {64, 1, 1, last})};
    EXPECT_EQ(fault_of(small, small.add(set)),
              last == 1 ? "" : "the numbers have a fourth dimension");
  }
}

TEST(IndexShapes, AnOptimizersNumbersAreOneRow) {
  const struct {
    Shape shape;
    const char* fault;
  } cases[] = {{{7, 1, 1, 1}, ""},
               {{6, 1, 1, 1}, "there are not seven numbers"},
               {{1, 7, 1, 1}, "there are not seven numbers"},
               {{7, 0, 1, 1}, "there are not seven numbers"}};
  for (const auto& one : cases) {
    SmallGraph small;
    TensorSpec step;
    step.operation = Operation::kOptStepAdamw;
    step.shape = {16, 1, 1, 1};
    const TensorId x = floats(small, step.shape);
    step.view_source = x;
    step.sources = {x, floats(small, step.shape), floats(small, step.shape),
                    floats(small, step.shape), floats(small, one.shape)};
    EXPECT_EQ(fault_of(small, small.add(step)), one.fault);
  }
}

TEST(IndexShapes, AWindowFarBeyondTheImageTakesNoStep) {
  SmallGraph small;
  TensorSpec patches;
  patches.operation = Operation::kIm2col;
  const std::uint64_t wide = std::uint64_t{1} << 50;
  const TensorId kernel = floats(small, {wide, 1, 1, 1}), image = floats(small, {8, 8, 1, 1});
  patches.shape = {wide, 0, 8, 1};
  patches.sources = {kernel, image};
  for (const std::size_t k : {0u, 1u, 4u, 5u}) patches.parameters.integers[k] = 1;
  patches.parameters.integers[4] = 1 << 16;  // dilated; the product with the width is above 2^63
  EXPECT_EQ(fault_of(small, small.add(patches)), "");
}

}  // namespace
}  // namespace ashlar
