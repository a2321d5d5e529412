// The scheduler: runs a graph over several backends, again and again.
//
// Purpose: makes the schedule of a graph, plans and makes its memory, and enqueues its splits, copies and
// waits. The caller's graph is never changed.
// Thread safety: one thread at a time.
//
// Example:
//   GraphScheduler scheduler({&gpu, &cpu});
//   scheduler.assign(output, 0);
//   scheduler.reserve(graph, addresses_of_weights);
//   for (;;) {
//     scheduler.set(input, bytes);
//     scheduler.run(graph, addresses_of_weights);
//     scheduler.get(output, result);       // waits
//   }
//
// Order (clause C6 across backends; bug H54). A copy is enqueued on the backend that it is from, so that
// backend overwrites the source only afterwards. It waits for what the other backend has been told,
// which may read the place that is written; the other backend waits for it before it goes on. With
// several places for copies it waits only for the last run that used its place.
// Assignments (SCH-6, bug H55): reserve(), run() and reset() keep them; run() after reserve() of the same
// graph makes no new schedule and no new buffer.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ashlar/base/status.h>
#include <ashlar/graph/graph_allocator.h>
#include <ashlar/sched/backend.h>
#include <ashlar/sched/schedule.h>

namespace ashlar::inline v0::sched {

class QueueOrder;

/// How a scheduler works.
struct SchedulerOptions {
  bool offload = false;           ///< ScheduleRequest::offload
  std::uint32_t copy_places = 1;  ///< ScheduleRequest::copy_places
};

/// Looks at nodes while a graph runs. Both may be empty.
struct NodeObserver {
  /// Whether `seen` is to be called for the node. Empty: for every node.
  std::function<bool(graph::TensorId node)> wants;
  /// The node is computed, and lies there on the backend, which is idle. False: the run ends here.
  std::function<bool(graph::TensorId node, Backend& backend, Address address)> seen;
};

/// Runs graphs over backends. Among placements of one cost any may be taken.
class ASHLAR_API GraphScheduler {
 public:
  /// The backends outlive the scheduler; the last one gets the inputs that nobody assigns. REQUIRES: there
  /// is one. Throws std::bad_alloc.
  explicit GraphScheduler(std::vector<Backend*> backends, SchedulerOptions options = {});
  ~GraphScheduler();
  GraphScheduler(const GraphScheduler&) = delete;
  GraphScheduler& operator=(const GraphScheduler&) = delete;

  /// The tensor is to be on that backend, in every graph from now on. kNoBackend: as the scheduler
  /// likes. kInvalidArgument: there is no such backend. Throws std::bad_alloc.
  Status assign(graph::TensorId tensor, std::uint32_t backend);

  /// Makes the schedule and the buffers for a graph. `external` has the addresses of external tensors, by
  /// tensor: each in a buffer of a backend. Waits for runs in progress. Errors as make_schedule() and
  /// GraphAllocator::reserve(); kInvalidArgument: an external tensor has no address; kWrongDevice: it is in no backend's buffer, or not in
  /// one of the backend that it is assigned to; last_error() names it. An unchanged graph keeps its schedule, and
  /// nothing is waited for; after an error there may be no schedule. Cost: make_schedule(), a plan of the
  /// memory. Throws std::bad_alloc.
  Status reserve(const graph::Graph& graph, std::span<const Address> external);
  /// Enqueues a run of the graph; reserves it first, if it is not the one that was reserved last. Errors as
  /// reserve(), and those of the backends. kBusy: the observer has ended the run. Throws
  /// std::bad_alloc.
  Status run(const graph::Graph& graph, std::span<const Address> external);
  /// Waits for every run. Returns the first error of a backend.
  Status synchronize() noexcept;
  /// Waits, and releases the schedule and the buffers. Assignments and the observer stay.
  void reset() noexcept;

  /// Enqueues a copy to a tensor; `bytes`, as many as its extent, stay as they are until it is done.
  /// kNotFound: the tensor is not of the graph that was reserved last. kInvalidArgument: another size.
  Status set_async(graph::TensorId tensor, std::span<const std::byte> bytes) noexcept;
  /// set_async(), and waits for it.
  Status set(graph::TensorId tensor, std::span<const std::byte> bytes) noexcept;
  /// Enqueues a copy of a tensor's values to the host, where they are after synchronize(). Of a tensor
  /// that is neither an output nor unread in its graph others may have taken the memory. Errors as
  /// set_async().
  Status get_async(graph::TensorId tensor, std::span<std::byte> bytes) noexcept;
  /// get_async(), and waits for it.
  Status get(graph::TensorId tensor, std::span<std::byte> bytes) noexcept;

  /// Called for nodes of the runs from now on; an observer makes a run wait for each node it wants.
  void observe(NodeObserver observer) { observer_ = std::move(observer); }
  /// The schedule of the graph that was reserved last; null if there is none.
  const Schedule* schedule() const noexcept;
  /// One line on the last error of reserve() or run(), which names the tensor if the error is one tensor's. Empty after a
  /// success, and after errors of the allocator or of a backend, whose Status says why.
  const std::string& last_error() const noexcept { return error_; }
  /// How often a schedule was made, and how often memory was planned.
  std::uint64_t schedules_made() const noexcept { return schedules_made_; }
  std::uint64_t plans_made() const noexcept;  ///< see schedules_made()

 private:
  class MemoryBuffers;
  struct Prepared;

  Status prepare(const graph::Graph& graph, std::span<const Address> external);
  Result<ScheduleRequest> request_for(const graph::Graph& graph, std::span<const Address> external);
  Status allocate(Prepared* prepared, const graph::Graph& graph, std::span<const Address> external);
  /// Tells the memories' backends of each tensor, or takes it back. A first error takes back what was told.
  Status init_tensors(const Prepared& prepared) noexcept;
  void free_tensors(const Prepared& prepared, std::size_t tensors) noexcept;
  void forget_schedule() noexcept;
  Status make_copies(const ScheduleSplit& split, std::uint32_t place);
  Status copy(const ScheduledCopy& copy, std::uint32_t place);
  Status compute(std::size_t split, std::uint32_t place);
  Status compute_observed(const ScheduleSplit& split, std::uint32_t place);
  /// Checks an access by the caller to a tensor's values, and makes the queue of the tensor's home wait
  /// for the backends that share its memory. Returns the tensor's address there.
  Result<Address> begin_access(graph::TensorId tensor, Bytes bytes) noexcept;
  Backend& home_of(
      graph::TensorId tensor) const noexcept;  // REQUIRES: reserved, a tensor of the graph
  Status refuse(Code code, const char* why, const graph::Graph& graph, graph::TensorId tensor);

  const std::vector<Backend*> backends_;
  const SchedulerOptions options_;
  std::map<std::uint32_t, std::uint32_t> assigned_;  // backend by tensor
  NodeObserver observer_;
  std::unique_ptr<MemoryBuffers> buffers_;
  std::optional<graph::GraphAllocator> allocator_;
  std::unique_ptr<QueueOrder> order_;
  std::unique_ptr<Prepared> prepared_;
  std::uint64_t runs_ = 0;
  std::uint64_t schedules_made_ = 0;
  std::string error_;
};

}  // namespace ashlar::inline v0::sched
