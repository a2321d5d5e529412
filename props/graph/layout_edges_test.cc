// Layouts at their bounds: the most elements and bytes, strides that touch and strides that do not, dimensions of
// one element, whose strides mean nothing.
//
// Imitates: a loader that is given numbers near 2^64, and views of views as models make them.
#include <ashlar/graph/layout.h>

#include <gtest/gtest.h>

#include <array>
#include <string>

#include <ashlar/plan/problem.h>

namespace ashlar {
namespace {

using graph::ElementType;
using graph::extent_of;
using graph::overlaps_itself;
using graph::packed_strides;
using graph::Shape;
using graph::Strides;

constexpr std::uint64_t kTwo61 = std::uint64_t{1} << 61, kTwo62 = std::uint64_t{1} << 62;

// 32 elements of q4_0 have 18 bytes, so 2^62 elements have 18 * 2^57 bytes, which is below the bound of 2^62.
TEST(LayoutEdges, TheMostElementsAreAsManyAsTheMostBytes) {
  static_assert(plan::kPlanBytesMax.count() == kTwo62);
  const auto packed = [](std::uint64_t elements) {
    const Shape shape{elements, 1, 1, 1};
    return extent_of(ElementType::kQ4_0, shape, packed_strides(ElementType::kQ4_0, shape));
  };
  EXPECT_EQ(packed(kTwo62).value(), Bytes{kTwo62 / 32 * 18});
  // Of 2^62 + 2^61 elements there would be 27 * 2^57 bytes, below the bound too.
  EXPECT_EQ(packed(kTwo62 + kTwo61).code(), Code::kSizeOverflow);
  EXPECT_STREQ(packed(kTwo62 + kTwo61).status().why(), "the tensor has too many elements");
}

// Rows over each other take few bytes, so the number of elements alone is what wraps.
TEST(LayoutEdges, ANumberOfElementsThatWrapsIsRefused) {
  const std::uint64_t two32 = std::uint64_t{1} << 32;
  for (const Shape& shape : {Shape{4, two32, two32, 1}, Shape{4, two32, two32 / 4, 4},
                             Shape{4, kTwo62, kTwo62, 0}, Shape{4, 1, kTwo61, 3}}) {
    const auto extent = extent_of(ElementType::kF32, shape, {4, 0, 0, 0});
    EXPECT_EQ(extent.code(), Code::kSizeOverflow);
    EXPECT_STREQ(extent.status().why(), "the tensor has too many elements");
  }
  EXPECT_EQ(extent_of(ElementType::kF32, {4, two32, two32 / 16, 1}, {4, 0, 0, 0}).value(), 16_B);
}

TEST(LayoutEdges, TheMostBytesAreReachedAndNotPassed) {
  // The second element's end is at stride + 4.
  const auto pair = [](std::uint64_t stride) {
    return extent_of(ElementType::kF32, {2, 1, 1, 1}, {stride, 0, 0, 0});
  };
  EXPECT_EQ(pair(kTwo62 - 4).value(), Bytes{kTwo62});
  EXPECT_STREQ(pair(kTwo62).status().why(), "the tensor's bytes exceed the bound of a plan");
  // A reach that wraps: 2 * 2^63, and a sum that does: 4 + (2^64 - 4).
  const std::uint64_t two63 = std::uint64_t{1} << 63;
  EXPECT_EQ(extent_of(ElementType::kF32, {3, 1, 1, 1}, {two63, 0, 0, 0}).code(),
            Code::kSizeOverflow);
  EXPECT_EQ(pair(~std::uint64_t{0} - 3).code(), Code::kSizeOverflow);
}

// Numbers that lie in memory behind a shape, or behind strides, are no fifth dimension.
TEST(LayoutEdges, HaveFourDimensions) {
  struct Behind {
    Shape shape;
    std::uint64_t more;
  };
  const Behind shape{{4, 3, 1, 1}, 7};
  const Behind strides{{4, 16, 48, 48}, 1024};
  EXPECT_EQ(extent_of(ElementType::kF32, shape.shape, strides.shape).value(), 48_B);
  EXPECT_FALSE(overlaps_itself(ElementType::kF32, shape.shape, strides.shape));
  const Behind overlapping{{4, 16, 48, 48}, 0};
  EXPECT_FALSE(overlaps_itself(ElementType::kF32, shape.shape, overlapping.shape));
}

// Four elements in a row of 16 bytes, `steps` rows along `d`, two of those along `e`.
TEST(LayoutEdges, RowsTouchOrOverlapInEachDimension) {
  for (std::size_t d = 1; d < 4; ++d) {
    for (std::size_t e = 1; e < 4; ++e) {
      if (d == e) continue;
      for (std::uint64_t steps = 2; steps <= 4; ++steps) {
        Shape shape{4, 1, 1, 1};
        shape[d] = steps;
        Strides strides{4, 0, 0, 0};
        strides[d] = 16;
        EXPECT_FALSE(overlaps_itself(ElementType::kF32, shape, strides)) << d;
        strides[d] = 12;
        EXPECT_TRUE(overlaps_itself(ElementType::kF32, shape, strides)) << d;
        strides[d] = 16;
        shape[e] = 2;
        strides[e] = 16 * steps;
        EXPECT_FALSE(overlaps_itself(ElementType::kF32, shape, strides)) << d << e;
        strides[e] = 16 * steps - 4;
        EXPECT_TRUE(overlaps_itself(ElementType::kF32, shape, strides)) << d << e;
        strides[e] = strides[d];
        EXPECT_TRUE(overlaps_itself(ElementType::kF32, shape, strides)) << d << e;
      }
    }
  }
}

TEST(LayoutEdges, AStrideOfOneStepMeansNothing) {
  for (std::size_t d = 0; d < 4; ++d) {
    Shape shape{1, 1, 1, 1};
    shape[d] = 4;
    Strides strides{0, 0, 0, 0};
    strides[d] = 4;
    EXPECT_FALSE(overlaps_itself(ElementType::kF32, shape, strides)) << d;
    EXPECT_EQ(extent_of(ElementType::kF32, shape, strides).value(), 16_B);
    strides[d] = 0;
    EXPECT_TRUE(overlaps_itself(ElementType::kF32, shape, strides)) << d;
    shape[(d + 1) % 4] = 0;  // no element, so none over another
    EXPECT_FALSE(overlaps_itself(ElementType::kF32, shape, strides)) << d;
  }
}

// Two blocks of 18 bytes in a row of 64 elements.
TEST(LayoutEdges, StepsOfAQuantisedTypeAreBlocks) {
  EXPECT_FALSE(overlaps_itself(ElementType::kQ4_0, {64, 3, 1, 1}, {18, 36, 0, 0}));
  EXPECT_TRUE(overlaps_itself(ElementType::kQ4_0, {64, 3, 1, 1}, {18, 34, 0, 0}));
  EXPECT_EQ(extent_of(ElementType::kQ4_0, {64, 3, 1, 1}, {18, 40, 0, 0}).value(),
            116_B);  // 2 * 40 + 36
}

}  // namespace
}  // namespace ashlar
