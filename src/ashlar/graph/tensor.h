// A tensor: its type, shape, strides, operation and sources.
//
// Thread safety: plain values; the functions are pure.
//
// Terms. The *extent* of a tensor is the number of bytes from its first byte to the end of its last
// element. A *view* has no memory of its own: it lies at an offset in its *root*, which is not a
// view. A *leaf* is a tensor of operation kNone that is not a view; its values come from outside. Every
// other tensor is a *node*; of those, views and kControl compute nothing.
#pragma once

#include <array>
#include <cstdint>

#include <ashlar/base/export.h>
#include <ashlar/base/types.h>
#include <ashlar/graph/element_type.h>
#include <ashlar/graph/operation.h>

namespace ashlar::inline v0::graph {

/// The number of dimensions. A shape of fewer is written with ones at its end: what is left out of `Shape{10, 64}` is 0,
/// and the tensor is empty.
inline constexpr int kDimensions = 4;

/// A tensor's number within its graph, from 0, in the order in which tensors were added.
using TensorId = Id<struct TensorIdTag, std::uint32_t>;
/// Stands for no tensor: an unused source, or no view.
inline constexpr TensorId kNoTensor{0xffffffffu};

/// Elements in each dimension; the first varies fastest, as ggml has it, so PyTorch's shapes are reversed.
using Shape = std::array<std::uint64_t, kDimensions>;
/// Bytes from an element, or a block of a quantised type, to the next one in each dimension.
using Strides = std::array<std::uint64_t, kDimensions>;

/// What holds for a tensor besides its values; or-ed together.
enum TensorFlags : std::uint8_t {
  kNoFlags = 0,
  /// Set from outside before each run: its memory is its own from the start of the run to the last
  /// use.
  kInput = 1,
  /// Read from outside after the run: its memory is its own until the end, and nothing is computed
  /// in place over it.
  kOutput = 2,
  /// Its memory is its own for all of the run. Its values outlast the run only until another graph of the allocator
  /// runs, or reserve() replaces the buffer: weights are kExternal.
  kParameter = 4,
  /// Lies in memory that the caller provides; nothing is planned for it.
  kExternal = 8
};

/// Numbers that an operation takes besides its sources: which ones, graph/README.md says for each
/// operation.
struct OperationParameters {
  std::array<float, 4> reals{};            ///< scales, epsilons, rates
  std::array<std::int32_t, 8> integers{};  ///< axes, pads, window sizes
  /// Equal if every number is.
  friend constexpr bool operator==(const OperationParameters&,
                                   const OperationParameters&) = default;
};

/// A tensor of a graph. Made by Graph::add(), which checks it.
struct Tensor {
  Operation operation = Operation::kNone;  ///< what computes it
  ElementType type = ElementType::kF32;    ///< of its elements
  std::uint8_t flags = kNoFlags;           ///< TensorFlags, or-ed; a view has its root's kExternal
  /// Bit k: the node may be computed in place over source k, as far as operation and layout go.
  std::uint16_t in_place_sources = 0;
  Shape shape{1, 1, 1, 1};    ///< elements in each dimension
  Strides strides{};          ///< bytes in each dimension
  Bytes extent;               ///< bytes from its first byte to the end of its last element
  TensorId root = kNoTensor;  ///< the tensor whose memory it shares; its own id if it is no view
  Bytes view_offset;          ///< from the root's first byte
  std::uint32_t sources_begin = 0;  ///< [sources_begin, sources_end) of the graph's sources
  std::uint32_t sources_end = 0;    ///< see sources_begin
  OperationParameters parameters;   ///< numbers that the operation takes
};

/// The number of elements. REQUIRES: the product does not overflow; Graph::add() has seen to that for its tensors.
constexpr std::uint64_t elements_of(const Shape& shape) {
  return shape[0] * shape[1] * shape[2] * shape[3];
}

/// The strides of a tensor of that type and shape without holes, in the order of its dimensions.
/// REQUIRES: no product of the type's block and the shape overflows, as for tensors of a graph. Never throws.
ASHLAR_API Strides packed_strides(ElementType type, const Shape& shape) noexcept;

/// Whether type, shape and strides are the same.
constexpr bool is_same_layout(const Tensor& a, const Tensor& b) {
  return a.type == b.type && a.shape == b.shape && a.strides == b.strides;
}
/// Whether the elements lie without holes in the order of the dimensions.
ASHLAR_API bool is_packed(const Tensor& tensor) noexcept;

}  // namespace ashlar::inline v0::graph
