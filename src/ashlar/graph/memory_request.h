// What memory a graph's tensors are to be placed in: buffer types, and the places of tensors.
//
// Thread safety: plain values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ashlar/base/export.h>
#include <ashlar/base/status.h>
#include <ashlar/base/types.h>
#include <ashlar/graph/graph.h>

namespace ashlar::inline v0::graph {

/// A kind of memory that buffers are made of: a device's, or the host's.
struct BufferType {
  Bytes alignment{64};              ///< of every tensor, in bytes; a power of two
  Bytes buffer_max = Bytes::max();  ///< the largest buffer that should be made of it
  /// The bytes that a tensor needs there, at least its extent; null: its extent. Never throws.
  Bytes (*tensor_bytes)(const Tensor& tensor) = nullptr;
  /// Equal if every field is.
  friend constexpr bool operator==(const BufferType&, const BufferType&) = default;
};

/// Memory of one buffer type that a tensor needs: one of several for a tensor that is split over
/// devices.
struct TensorPart {
  TensorId tensor;         ///< the tensor that is split
  std::uint16_t type = 0;  ///< index of the buffer type
  Bytes size;              ///< in bytes
  /// Equal if every field is.
  friend constexpr bool operator==(const TensorPart&, const TensorPart&) = default;
};

/// A node that uses a tensor besides its sources: a backend that fuses nodes, or runs them in another
/// order, keeps the tensor's memory so. The node may come before the tensor's own: it writes it early.
struct ExtraUse {
  std::uint32_t node = 0;  ///< position in Graph::nodes()
  TensorId tensor;         ///< what it uses
  /// Equal if both fields are.
  friend constexpr bool operator==(const ExtraUse&, const ExtraUse&) = default;
};

/// Ends a group of nodes in a parse order that may run at the same time.
inline constexpr std::uint32_t kBarrier = 0xffffffffu;

/// Where tensors go, and in which order their nodes run. Empty fields say: all in buffer type 0,
/// nothing split, the graph's own order, no further uses.
struct MemoryRequest {
  std::vector<std::uint16_t> types;  ///< by tensor: the index of its buffer type
  /// Tensors that are split, by ascending tensor: those have these parts, and nothing in `types`'
  /// buffer type. REQUIRES of a split tensor: it is no view, and no view is of it.
  std::vector<TensorPart> parts;
  /// Positions in Graph::nodes(), each once, and kBarrier after each group of nodes that may run at
  /// the same time: what a group uses is in use until its barrier. A node that writes a view keeps
  /// its order with every node that uses the view's root. Not for a graph with regions.
  std::vector<std::uint32_t> order;
  std::vector<ExtraUse> uses;  ///< in any order
  /// Equal if every field is.
  friend bool operator==(const MemoryRequest&, const MemoryRequest&) = default;
};

/// Makes and releases the buffers of an allocator, one call at a time. No member throws.
class ASHLAR_API BufferSource {
 public:
  virtual ~BufferSource() = default;
  /// A buffer of `size` bytes, above zero, of buffer type `type`, aligned as that says. Any error is the
  /// allocator's answer to its caller.
  virtual Result<Address> make_buffer(std::size_t type, Bytes size) noexcept = 0;
  /// Releases a buffer of make_buffer().
  virtual void release_buffer(std::size_t type, Address base, Bytes size) noexcept = 0;
};

}  // namespace ashlar::inline v0::graph
