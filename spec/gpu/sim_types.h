// Options and plain values of the simulated machine (sim_gpu.h).
//
// Thread safety: plain values.
#pragma once

#include <cstdint>
#include <vector>

#include <ashlar/device/device.h>

#include "spec/gpu/cost_model.h"

namespace ashlar::spec {

/// The driver's name for an allocation, for the detector: any number but 0, never used for two
/// allocations.
using AllocationTag = std::uint64_t;
inline constexpr AllocationTag kNoTag = 0;

enum class Access : std::uint8_t { kRead = 1, kWrite = 2, kReadWrite = 3 };

/// Memory that some graphs share: they are never launched so that two of them run at once (C8).
using GraphGroup = std::uint64_t;

/// A byte range that a kernel touches. `tag` names the allocation it belongs to.
struct Touch {
  Address at;
  Bytes size;
  Access access = Access::kReadWrite;
  AllocationTag tag = kNoTag;
  /// The graphs' memory that the bytes belong to, or 0. The detector ignores a touch that has neither.
  GraphGroup group = 0;
  /// The device that makes the access, where it is not the stream's: a copy reads through the owner of the memory. -1: the
  /// stream's.
  std::int32_t by_device = -1;
};

/// The handles of CUDA's default streams: one value on every device. kDefaultStream is the same
/// stream as kLegacyStream; kPerThreadStream is another stream (identity) on every thread and
/// device.
inline constexpr StreamHandle kDefaultStream{0};
inline constexpr StreamHandle kLegacyStream{1};
inline constexpr StreamHandle kPerThreadStream{2};

/// The edges of happens-before. A mask in SimGpuOptions::drop_edges switches edges off: to test the
/// detector, and (kEdgeCompletion) to require that the host has *learnt* that work is done.
enum Edge : std::uint32_t {
  kEdgeStreamOrder = 1u << 0,  ///< earlier entry of a stream -> later entry of it
  kEdgeRecordWait = 1u << 1,   ///< event_record -> stream_wait
  kEdgeQuery = 1u << 2,        ///< event_query answered ok -> what the host enqueues later
  /// event_synchronize answered ok -> what the host enqueues later
  kEdgeSynchronize = 1u << 3,
  kEdgeDeviceSynchronize = 1u << 4,  ///< synchronize answered ok -> what the host enqueues later
  kEdgeCompletion = 1u << 5,         ///< an entry that is finished -> everything enqueued later
  /// what one host thread learnt -> what another enqueues later (they share locks)
  kEdgeHostThreads = 1u << 6,
  /// the legacy default stream <-> the device's blocking streams
  kEdgeLegacyStream = 1u << 7,
  /// memory write of a stream -> a memory wait on that word, enqueued later
  kEdgeMemoryValue = 1u << 8,
  /// use ordered before the free on the block's own stream needs no announcement
  kEdgeFreeCoverage = 1u << 9,
};

enum class StreamKind : std::uint8_t {
  kNonBlocking,  ///< cudaStreamNonBlocking: no implicit order with the legacy default stream
  kBlocking,     ///< ordered with the legacy default stream
};

struct SimGpuOptions {
  /// One device for each; 0 means unlimited.
  std::vector<Bytes> capacities{Bytes{0}};
  std::uint64_t seed = 1;
  CostModel cost{};
  /// Addresses. True: ranges just freed come back first, aligned to 512 bytes only, adjacent to
  /// other segments, and the values of dead stream, event and page handles come back at once.
  /// False: the lowest free range aligned to 2 MiB; handle values are not reused.
  bool adversarial = true;
  /// False: no range comes back, so that a younger one is always above an older one.
  bool reuses_addresses = true;
  /// Two machines that differ in this alone give other addresses and the same answers otherwise.
  std::uint64_t address_seed = 0;
  /// No address is below it; a multiple of 512. A caller that wants bytes behind the addresses reserves memory there
  /// (cuda_face::give_bytes).
  std::uint64_t first_address = std::uint64_t{1} << 41;
  bool virtual_memory = true;
  bool stream_memory = true;
  Bytes page_granularity{2_MiB};
  /// How pages may leave the process: a mask of 1 << device::ShareKind.
  std::uint32_t share_kinds = 1u << 2 | 1u << 3;
  /// By device: a mask of the other devices whose memory it can use, 1 << device. Empty: every device all memory.
  // NOLINTNEXTLINE(readability-redundant-member-init): g++ wants it where others are named
  std::vector<std::uint64_t> peers{};
  /// Entries a stream's queue holds; an enqueue on a full queue blocks. 0 means no limit.
  std::uint32_t queue_depth = 0;
  /// The number of hardware queues that streams share: an entry starts only when all entries
  /// enqueued before it in its hardware queue are done (false dependencies). 0 means one queue for
  /// each stream.
  std::uint32_t hardware_queues = 0;
  /// Entries that may finish in one ms of a bounded event_synchronize. 0 means no limit.
  std::uint32_t entries_per_ms = 0;
  /// At every device call the adversary finishes up to this many entries, of random streams.
  std::uint32_t pace = 0;
  /// Edges of happens-before that the detector ignores: a mask of Edge.
  std::uint32_t drop_edges = 0;
};

/// Can a device use the memory of another one?
inline bool can_reach(const SimGpuOptions& options, std::uint32_t user, std::uint32_t owner) {
  return user == owner || options.peers.empty() || (options.peers[user] >> owner & 1) != 0;
}

/// Whether a planned failure goes on.
enum class FailMode : std::uint8_t {
  kOnce,  ///< the n-th call fails
  kOn,    ///< the n-th call and every later one fail
};

/// How a stream-memory wait compares the word with the value (cuStreamWaitValue's flags).
enum class WaitRule : std::uint8_t { kGreaterOrEqual, kEqual, kAnd };

/// A captured graph. Holds the touches of the kernels that were captured.
using GraphId = Id<struct GraphIdTag, std::uint32_t>;
/// A flag that a host function waits for. Flag 0 is always raised.
using HostFlag = std::uint32_t;

/// A lag (SimControl::set_lag) that means: entries finish only when told to.
inline constexpr std::uint64_t kNoLag = ~std::uint64_t{0};

}  // namespace ashlar::spec
