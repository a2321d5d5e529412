// The graph allocator: memory for all tensors of a graph, planned once and applied many times.
//
// Purpose: a graph's tensors share memory as their lives permit, at the fixed offsets of a plan.
// reserve() plans and makes the buffers; apply() gives the addresses for a graph of the same wiring,
// with shapes that may be smaller, in a few nanoseconds per tensor. The graph is not changed.
// Thread safety: none. REQUIRES of reserve(), release() and the destructor: no run of a graph that
// was given addresses here is in progress.
//
// Example:
//   GraphAllocator allocator(source, {BufferType{}});
//   allocator.reserve(largest, {});                    // plans, makes one buffer
//   std::vector<Address> addresses(graph.tensors().size());
//   for (;;) { allocator.apply(graph, {}, addresses); run(graph, addresses); }
//
// Clauses: G1, G2 and G3 (graph_plan.h), and
//   (1) no buffer shrinks before release(), so reserving one graph does not end the plan of another (bug H49:
//       each buffer is compared, not the sum); a plan ends when its wiring is reserved again, or
//       when kGraphPlansMax newer ones exist;
//   (2) a failed reserve() leaves earlier plans valid unless their buffers are lost; apply() of a
//       plan whose buffers are lost is kNotFound, never an address.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ashlar/base/status.h>
#include <ashlar/graph/graph.h>
#include <ashlar/graph/memory_request.h>

namespace ashlar::inline v0::graph {

struct GraphPlan;

/// How many plans an allocator keeps. Beyond them it forgets the one that was made first.
inline constexpr std::size_t kGraphPlansMax = 64;

/// What a plan of a graph needs.
struct GraphMemory {
  std::vector<std::vector<Bytes>> buffers;  ///< by buffer type: the bytes of each buffer
  Bytes total;                              ///< of all buffers
  /// no plan of the same lives needs fewer bytes, with sizes rounded up to the alignment; `total` leaves out what
  /// pads the last tensor of each buffer, so it may be smaller
  Bytes lower_bound;
  std::uint32_t in_place_nodes = 0;  ///< nodes that are computed in place
};

/// How the packer searches; it stops as soon as a plan is proved best.
struct GraphOptions {
  /// The packer's search takes at most work + work_per_tensor * tensors steps (plan::PlanOptions::work), and none if
  /// the first plan is proved best.
  std::uint64_t work = 5000;
  std::uint64_t work_per_tensor = 50;  ///< see work
};

/// Plans graphs and owns the buffers that they are placed in.
class ASHLAR_API GraphAllocator {
 public:
  /// `source` outlives the allocator. Throws std::bad_alloc.
  GraphAllocator(BufferSource& source, std::vector<BufferType> types, GraphOptions options = {});
  ~GraphAllocator();
  GraphAllocator(const GraphAllocator&) = delete;
  GraphAllocator& operator=(const GraphAllocator&) = delete;

  /// What a graph needs; plans it and makes nothing. Errors: kInvalidArgument (a request that does
  /// not fit the graph, an alignment that is no power of two), kSizeOverflow. Throws std::bad_alloc.
  Result<GraphMemory> measure(const Graph& graph, const MemoryRequest& request) const;

  /// Plans a graph and makes sure that the buffers hold the plan. Those that are too small are replaced, which loses
  /// their contents and ends the addresses of earlier apply() calls. A plan of the same wiring and request is
  /// replaced by one that holds the tensors of both, so graphs that grow in different tensors are not planned
  /// in turn for ever; where there is no memory for that, by one for this graph alone. Of other plans,
  /// kGraphPlansMax are kept. Errors as measure(), and the source's. Cost: measure()'s. Throws std::bad_alloc.
  Status reserve(const Graph& graph, const MemoryRequest& request);

  /// Writes the address of every tensor that is not external and of every view, by tensor; entries
  /// of external tensors are read, for the views of them. `parts` gets the addresses of the
  /// request's parts. kNotFound, without effect: no plan of this wiring and request holds tensors
  /// of these sizes, or a failed reserve() lost its buffers. kInvalidArgument: `addresses` or
  /// `parts` has the wrong size.
  /// Cost: O(tensors), a few nanoseconds each. Never throws.
  Status apply(const Graph& graph, const MemoryRequest& request, std::span<Address> addresses,
               std::span<Address> parts = {}) const noexcept;

  /// apply(), and if there is no plan, reserve() before it. Throws std::bad_alloc.
  Status allocate(const Graph& graph, const MemoryRequest& request, std::span<Address> addresses,
                  std::span<Address> parts = {});

  /// Releases every buffer and forgets every plan.
  void release() noexcept;

  /// The bytes of the buffers of a type, by buffer. REQUIRES: `type` exists.
  std::vector<Bytes> buffer_bytes(std::size_t type) const;
  /// How often reserve() has planned, since the allocator was made.
  std::uint64_t plans_made() const noexcept { return plans_made_; }
  /// How often a buffer was replaced by a larger one.
  std::uint64_t buffers_replaced() const noexcept { return buffers_replaced_; }

 private:
  struct OwnedBuffer {
    Address base;  // null: lost by a failed reserve()
    Bytes size;
  };

  const GraphPlan* find(const Graph& graph, const MemoryRequest& request) const noexcept;
  Status hold(const GraphPlan& plan);
  Result<GraphPlan> plan(const Graph& graph, const MemoryRequest& request,
                         const GraphPlan* at_least) const;
  bool has_buffers(const GraphPlan& plan) const noexcept;
  Status grow(std::size_t type, std::size_t chunk, Bytes size);

  BufferSource& source_;
  const std::vector<BufferType> types_;
  const GraphOptions options_;
  std::vector<GraphPlan> plans_;
  std::vector<std::vector<OwnedBuffer>> buffers_;  // by type
  std::uint64_t plans_made_ = 0;
  std::uint64_t buffers_replaced_ = 0;
};

}  // namespace ashlar::inline v0::graph
