// Checks of a tensor's layout: type, shape and strides.
//
// Thread safety: pure functions.
#pragma once

#include <ashlar/base/status.h>
#include <ashlar/graph/tensor.h>

namespace ashlar::inline v0::graph {

/// The bytes from the first byte of a tensor to the end of its last element, computed from the
/// strides (bug H53); zero if it has no element. kInvalidArgument: a stride is not a multiple
/// of the type's alignment, a quantised first dimension is not a whole number of blocks, or quantised blocks are
/// not adjacent.
/// kSizeOverflow: the extent, or the number of elements, would exceed plan::kPlanBytesMax.
Result<Bytes> extent_of(ElementType type, const Shape& shape, const Strides& strides) noexcept;

/// False only if no two elements share a byte. Sufficient, not exact: dimensions that interleave, such as strides {12, 8}
/// for {2, 3} floats, count as overlapping. Such a tensor can be read as a view, but not computed.
/// REQUIRES: extent_of() is ok.
bool overlaps_itself(ElementType type, const Shape& shape, const Strides& strides) noexcept;

}  // namespace ashlar::inline v0::graph
