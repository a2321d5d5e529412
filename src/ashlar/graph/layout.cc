#include <ashlar/graph/layout.h>

#include <algorithm>

#include <ashlar/base/checked.h>
#include <ashlar/plan/problem.h>

namespace ashlar::inline v0::graph {

Strides packed_strides(ElementType type, const Shape& shape) noexcept {
  const TypeTraits& traits = traits_of(type);
  Strides strides{};
  strides[0] = traits.block_bytes.count();
  strides[1] = strides[0] * (shape[0] / traits.block_elements);
  for (std::size_t d = 2; d < kDimensions; ++d) strides[d] = strides[d - 1] * shape[d - 1];
  return strides;
}

bool is_packed(const Tensor& tensor) noexcept {
  return tensor.strides == packed_strides(tensor.type, tensor.shape);
}

Result<Bytes> extent_of(ElementType type, const Shape& shape, const Strides& strides) noexcept {
  const TypeTraits& traits = traits_of(type);
  if (shape[0] % traits.block_elements != 0)
    return {Code::kInvalidArgument, "a quantised type's first dimension is not in whole blocks"};
  Bytes elements{1};
  for (const std::uint64_t n : shape) {
    const auto product = checked_multiply(elements, n);
    if (!product || *product > plan::kPlanBytesMax)
      return {Code::kSizeOverflow, "the tensor has too many elements"};
    elements = *product;
  }
  for (const std::uint64_t stride : strides) {
    if (stride % traits.alignment.count() != 0)
      return {Code::kInvalidArgument, "a stride is no multiple of the type's alignment"};
  }
  if (traits.block_elements > 1 && strides[0] != traits.block_bytes.count())
    return {Code::kInvalidArgument, "the blocks of a quantised type are not next to each other"};
  if (elements == 0_B) return Bytes{};
  Bytes extent = traits.block_bytes;
  for (std::size_t d = 0; d < kDimensions; ++d) {
    const std::uint64_t steps = (d == 0 ? shape[d] / traits.block_elements : shape[d]) - 1;
    const auto reach = checked_multiply(Bytes{strides[d]}, steps);
    const auto sum = reach ? checked_add(extent, *reach) : std::nullopt;
    if (!sum || *sum > plan::kPlanBytesMax)
      return {Code::kSizeOverflow, "the tensor's bytes exceed the bound of a plan"};
    extent = *sum;
  }
  return extent;
}

bool overlaps_itself(ElementType type, const Shape& shape, const Strides& strides) noexcept {
  if (elements_of(shape) == 0) return false;
  const TypeTraits& traits = traits_of(type);
  std::array<std::size_t, kDimensions> order{0, 1, 2, 3};
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return strides[a] < strides[b]; });
  std::uint64_t inner = traits.block_bytes.count();  // the bytes that one step must pass
  for (const std::size_t d : order) {
    const std::uint64_t steps = d == 0 ? shape[d] / traits.block_elements : shape[d];
    if (steps == 1) continue;
    if (strides[d] < inner) return true;
    inner += strides[d] * (steps - 1);
  }
  return false;
}

}  // namespace ashlar::inline v0::graph
