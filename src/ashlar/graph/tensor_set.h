// Memory for a set of tensors that live together, such as a model's weights: as few buffers as the
// buffer type's limit permits.
//
// Thread safety: plan_tensor_set() is pure; a TensorSet has none.
#pragma once

#include <span>
#include <vector>

#include <ashlar/base/status.h>
#include <ashlar/graph/graph.h>
#include <ashlar/graph/memory_request.h>

namespace ashlar::inline v0::graph {

/// Where a tensor of a set is.
struct SetPlace {
  std::uint32_t buffer = 0;  ///< index of TensorSetPlan::buffers
  Bytes offset;              ///< from the buffer's first byte
  /// Equal if both fields are.
  friend constexpr bool operator==(const SetPlace&, const SetPlace&) = default;
};

/// Where the tensors of a set are.
struct TensorSetPlan {
  std::vector<SetPlace> places;  ///< by tensor of the set
  std::vector<Bytes> buffers;    ///< the bytes of each buffer
  Bytes padded_bytes;            ///< of all tensors
  /// True: it is proved that fewer buffers would not do. False: it is not proved.
  bool is_least = false;
};

/// Divides the tensors over buffers of at most `type.buffer_max` bytes. kSizeOverflow: one of them is
/// larger than that, or all together exceed plan::kPlanBytesMax. kInvalidArgument: one is a view, or
/// not of the graph, or the alignment is no power of two.
/// Cost: O(n^2) at worst, and a bounded search if the first answer is not proved least.
/// Throws std::bad_alloc.
/// Source: first fit decreasing; what it does not prove least is searched.
ASHLAR_API Result<TensorSetPlan> plan_tensor_set(const Graph& graph,
                                                 std::span<const TensorId> tensors,
                                                 const BufferType& type);

/// The buffers of a set of tensors; releases them.
class ASHLAR_API TensorSet {
 public:
  TensorSet() = default;
  /// Takes the buffers over; the other has none afterwards.
  TensorSet(TensorSet&& other) noexcept;
  /// The same; the buffers that this one had are released.
  TensorSet& operator=(TensorSet&& other) noexcept;
  ~TensorSet();

  /// Plans the tensors, makes the buffers and writes the tensors' addresses into `addresses`, which is
  /// by tensor of the graph; a tensor of no bytes has the null address. `type_index` is the type's number at the
  /// source, which outlives the set. Errors as plan_tensor_set(), and the source's; kInvalidArgument: `addresses` is
  /// not one for each tensor. Then no buffer is left, and no address written.
  /// Throws std::bad_alloc.
  static Result<TensorSet> make(const Graph& graph, std::span<const TensorId> tensors,
                                const BufferType& type, std::size_t type_index,
                                BufferSource& source, std::span<Address> addresses);

  /// The number of buffers; zero for a set without bytes, which is no error.
  std::size_t buffers() const noexcept { return bases_.size(); }

 private:
  void release() noexcept;

  BufferSource* source_ = nullptr;
  std::size_t type_ = 0;
  std::vector<Address> bases_;
  std::vector<Bytes> sizes_;
};

}  // namespace ashlar::inline v0::graph
