// Checks of a tensor's layout: type, shape and strides.
//
// Thread safety: pure functions.
#pragma once

#include <ashlar/base/status.h>
#include <ashlar/graph/tensor.h>

namespace ashlar::inline v0::graph {

/// The bytes from the first byte of a tensor to the end of its last element, computed from the
/// strides (bug H53); zero if it has no element. kInvalidArgument: the layout is none: a stride is no
/// multiple of the type's alignment, or a quantised type's first dimension is not in whole blocks.
/// kSizeOverflow: the extent, or the number of elements, would exceed plan::kPlanBytesMax.
Result<Bytes> extent_of(ElementType type, const Shape& shape, const Strides& strides) noexcept;

/// Whether two elements share a byte: then the tensor can be read, but not computed.
/// REQUIRES: extent_of() is ok.
bool overlaps_itself(ElementType type, const Shape& shape, const Strides& strides) noexcept;

}  // namespace ashlar::inline v0::graph
