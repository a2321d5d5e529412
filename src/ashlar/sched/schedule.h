// The schedule of a graph over several backends: who computes what, in which splits, and what is copied.
//
// Thread safety: plain values; make_schedule() is pure.
//
// Invariants:
//   (1) S1  every node is in the split of a backend that supports it, and each of its sources lies in a
//           memory that this backend reads, or is copied there at the beginning of the split or of an
//           earlier one.
//   (2) S2  a value is copied to a memory at most once. A tensor that a node writes has another value
//           afterwards.
//   (3)     a node that writes a view runs where the view's root lies.
//   (4)     the user's assignments are kept.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ashlar/base/status.h>
#include <ashlar/graph/graph.h>
#include <ashlar/sched/backend.h>

namespace ashlar::inline v0::sched {

/// Why a tensor is where it is.
enum class PlacedBy : std::uint8_t {
  kUser,     ///< the caller assigned it
  kMemory,   ///< it is external and lies there, or reads what does
  kRoot,     ///< it is a view, or writes one
  kInput,    ///< a leaf that nobody assigned: the last backend
  kSupport,  ///< no other backend supports it
  kOffload,  ///< the backend prefers it, though a weight lies elsewhere
  kCut       ///< the fewest bytes are copied so
};
/// The cause's name in reports. Static text.
ASHLAR_API const char* name_of(PlacedBy cause) noexcept;

/// Stands for no backend.
inline constexpr std::uint32_t kNoBackend = 0xffffffffu;

inline constexpr std::uint32_t kCopyPlacesMax = 64;

/// What the caller has decided.
struct ScheduleRequest {
  /// By tensor: its backend, or kNoBackend. Empty: nothing is decided. For an external tensor the
  /// backend in whose memory it lies.
  std::vector<std::uint32_t> backend_of;
  bool offload = false;  ///< let a backend compute what it prefers, and copy weights to it
  /// Places in memory that each copy has, 1 to kCopyPlacesMax: run k uses place k % copy_places, so its copies wait only
  /// for the last run that used the place, and not for the last run.
  std::uint32_t copy_places = 1;
  /// Equal if every field is.
  friend bool operator==(const ScheduleRequest&, const ScheduleRequest&) = default;
};

/// A copy of a tensor of the schedule's graph, made at the beginning of a split.
struct ScheduledCopy {
  graph::TensorId from;            ///< in Schedule::graph
  graph::TensorId to;              ///< in Schedule::graph; its other places follow it
  std::uint32_t from_backend = 0;  ///< which makes the copy
  std::uint32_t to_backend = 0;    ///< in whose memory it is
  Bytes bytes;                     ///< the tensor's extent
};

/// Nodes that one backend computes behind each other.
struct ScheduleSplit {
  std::uint32_t backend = 0;           ///< which computes it
  std::uint32_t copies_begin = 0;      ///< [copies_begin, copies_end) of Schedule::copies
  std::uint32_t copies_end = 0;        ///< see copies_begin
  std::vector<graph::TensorId> nodes;  ///< in Schedule::graph, without views
};

/// A schedule.
struct Schedule {
  graph::Graph graph;                      ///< the user's tensors and nodes, and the copies
  std::vector<std::uint16_t> memory_of;    ///< by tensor of `graph`: the number of its memory
  std::vector<graph::TensorId> tensor_of;  ///< by the user's tensor: that of `graph`
  std::vector<std::uint32_t> backend_of;   ///< by the user's tensor
  std::vector<PlacedBy> placed_by;         ///< by the user's tensor
  std::vector<ScheduleSplit> splits;       ///< in the order in which they run
  std::vector<ScheduledCopy> copies;       ///< by split
  std::vector<MemoryId> memories;          ///< by the memory's number

  /// The bytes of all copies.
  Bytes copied_bytes() const {
    Bytes sum;
    for (const ScheduledCopy& copy : copies) sum += copy.bytes;
    return sum;
  }
};

/// Makes the schedule of a graph. Errors; `*error`, if given, is then one line, which names the tensor if the error is one
/// tensor's:
///   - kUnsupported: no backend supports a node where it has to run, or the graph has regions;
///   - kInvalidArgument: no backend, a request that does not fit the graph, assignments that contradict
///     each other;
///   - kSizeOverflow: the values that nodes read from others, times the backends, exceed 1 EiB.
/// Cost: a minimum cut for each backend and round. Throws std::bad_alloc.
ASHLAR_API Result<Schedule> make_schedule(const graph::Graph& graph,
                                          std::span<Backend* const> backends,
                                          const ScheduleRequest& request,
                                          std::string* error = nullptr);

}  // namespace ashlar::inline v0::sched
