// A graph: tensors in the order in which they were added, which is the order of execution.
//
// Purpose: what the allocator plans memory for and what backends run. Nothing of the library changes
// a graph; addresses are kept beside it.
// Thread safety: none while tensors are added; then const members from any thread.
//
// Invariants (add() keeps them):
//   (1) Sources and the view source of a tensor were added before it, so a graph has no cycle.
//   (2) A view lies inside its root: view_offset + extent <= the root's extent. Its root is no view.
//   (3) No two elements of a tensor that is no view share a byte, and no two of its dimensions interleave.
//   (4) wiring() is a 64-bit hash of flags, roots, sources, regions and what may be computed in place. Barring
//       a collision, a plan that was made for one graph of a wiring is safe for every other whose
//       tensors are no larger.
//   (5) Regions nest.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ashlar/base/status.h>
#include <ashlar/graph/tensor.h>

namespace ashlar::inline v0::graph {

/// What Graph::add() makes a tensor of.
struct TensorSpec {
  // Each member has an initializer, so that -Wextra has no complaint of a designated one that is left out.
  // NOLINTBEGIN(readability-redundant-member-init)
  Operation operation = Operation::kNone;  ///< what computes it; kNone: a leaf, or a view
  ElementType type = ElementType::kF32;    ///< of its elements
  Shape shape{1, 1, 1, 1};                 ///< elements in each dimension
  /// Zeros: packed, in the order of the dimensions.
  Strides strides{};
  std::vector<TensorId> sources{};  ///< kNoTensor for an unused place
  TensorId view_source =
      kNoTensor;                  ///< the tensor that it is a view of; kNoTensor: memory of its own
  Bytes view_offset{};            ///< from the first byte of view_source
  std::uint8_t flags = kNoFlags;  ///< TensorFlags, or-ed
  OperationParameters parameters{};  ///< numbers that the operation takes
  std::string name{};                ///< for messages and reports
  // NOLINTEND(readability-redundant-member-init)
};

/// What the nodes of a region are.
enum class RegionKind : std::uint8_t {
  kBranch,  ///< a body of a conditional: run once or not at all
  kLoop     ///< the body of a loop: run any number of times
};

/// A run of nodes: the body of a conditional or of a loop.
struct Region {
  RegionKind kind = RegionKind::kBranch;  ///< a conditional's body, or a loop's
  std::uint32_t nodes_begin = 0;          ///< [nodes_begin, nodes_end) of Graph::nodes()
  std::uint32_t nodes_end = 0;            ///< see nodes_begin
  std::uint32_t parent = 0;               ///< the region around it, or kNoRegion
};
inline constexpr std::uint32_t kNoRegion = 0xffffffffu;

/// The maximum number of tensors of a graph.
inline constexpr std::uint32_t kTensorsMax = 1u << 27;

/// Tensors, nodes in the order of execution, and regions.
class ASHLAR_API Graph {
 public:
  /// Adds a tensor. A tensor whose operation is kNone and that is no view is a leaf; every other one
  /// is a node, and runs after all earlier ones. Errors, without effect:
  ///   - kInvalidArgument: a source or view source that is not in the graph yet (forward or
  ///     cyclic), too few or too many sources, a view without a view source or the reverse, strides
  ///     that do not fit the type or let elements overlap, flags that do not go together;
  ///   - kSizeOverflow: an extent over plan::kPlanBytesMax, a view outside its root, more than
  ///     kTensorsMax tensors.
  /// Status::why() says which. Whether shapes fit the operation is shape_fault()'s to say.
  /// Cost: O(sources), amortised. Throws std::bad_alloc.
  Result<TensorId> add(const TensorSpec& spec);

  /// Begins a region: the nodes added until the end_region() that belongs to it are its body.
  /// Throws std::bad_alloc.
  void begin_region(RegionKind kind);
  /// Ends the region that was begun last. Nodes behind it that read tensors of the body get the
  /// values of the last run, which a branch has to have had in the same run of the loop around it.
  /// kInvalidArgument: no region is open. Never throws.
  Status end_region() noexcept;
  /// Whether a region is open. Such a graph is not finished. Never throws.
  bool has_open_region() const noexcept { return open_ != kNoRegion; }

  /// Every tensor, by id.
  std::span<const Tensor> tensors() const noexcept { return tensors_; }
  /// REQUIRES: `id` is of this graph.
  const Tensor& operator[](TensorId id) const noexcept { return tensors_[id.value()]; }
  /// The nodes in the order of execution.
  std::span<const TensorId> nodes() const noexcept { return nodes_; }
  /// The sources of a tensor, by place; kNoTensor for an unused one.
  std::span<const TensorId> sources(const Tensor& tensor) const noexcept {
    return std::span<const TensorId>(sources_).subspan(tensor.sources_begin,
                                                       tensor.sources_end - tensor.sources_begin);
  }
  /// The regions, in the order in which they were begun.
  std::span<const Region> regions() const noexcept { return regions_; }
  /// The name of a tensor; empty if it has none.
  std::string_view name(TensorId id) const noexcept { return names_[id.value()]; }
  /// A hash of everything that a plan depends on but sizes (invariant 4). Equal on every machine.
  /// Cost: O(1). Source: base/mix.h.
  std::uint64_t wiring() const noexcept { return wiring_; }

 private:
  Status check_sources(const TensorSpec& spec) const noexcept;
  Status place_in_root(const TensorSpec& spec, Tensor* tensor) const noexcept;
  std::uint16_t in_place_sources(const Tensor& tensor,
                                 std::span<const TensorId> sources) const noexcept;
  bool may_overwrite(const Tensor& tensor, std::span<const TensorId> sources,
                     std::size_t place) const noexcept;
  void add_to_wiring(std::uint64_t word) noexcept;
  void add_to_wiring(const Tensor& tensor, const TensorSpec& spec) noexcept;

  std::vector<Tensor> tensors_;
  std::vector<std::string> names_;
  std::vector<TensorId> sources_;
  std::vector<TensorId> nodes_;
  std::vector<Region> regions_;
  std::uint32_t open_ = kNoRegion;
  std::uint64_t wiring_ = 0;
};

/// visit(root) for each root that the node writes and that is not the node itself: the root that its result is a
/// view of, and those of written sources. One root may come twice. REQUIRES: `node` is of the graph.
template <class Visit>
void for_each_written_root(const Graph& graph, TensorId node, Visit&& visit) {
  const Tensor& tensor = graph[node];
  const OperationTraits& traits = traits_of(tensor.operation);
  if (traits.is_writer && tensor.root != node) visit(tensor.root);
  const auto sources = graph.sources(tensor);
  for (std::size_t k = 0; k < sources.size() && traits.written_sources >> k != 0; ++k) {
    if ((traits.written_sources >> k & 1) != 0) visit(graph[sources[k]].root);
  }
}

/// Whether a node computes something: it is neither a leaf nor a view nor kControl. REQUIRES: as above.
inline bool is_work(const Graph& graph, TensorId node) noexcept {
  const Operation operation = graph[node].operation;
  return operation != Operation::kNone && operation != Operation::kControl &&
         !traits_of(operation).is_view;
}

}  // namespace ashlar::inline v0::graph
