// SimGpu: a simulated machine with any number of GPUs, each behind ashlar::Device.
//
// Purpose: the oracle. Streams are queues that advance only when told (step, drain, tick, progress)
// or when a device call blocks; addresses, stream handles and progress are chosen adversarially
// from a seed; every handle is in a ledger; any call can be made to fail; every misuse of the
// Device contract is a Fault; and a happens-before detector (detector.h) reports any reuse of bytes
// that an earlier owner's kernel may still touch. No memory is allocated for the addresses it hands
// out: they are numbers, and no one may dereference them.
// Thread safety: every member may be called from any thread at any time (one lock). A body given to
// host_function runs under that lock and may call nothing of the machine.
// Cost: a device call takes some tens to hundreds of ns; making and destroying a machine of 1-2
// devices, a few us.
//
// Rules it keeps (each a case in props/rules):
//   (1) A stream finishes its entries in order; an event stands for a place in one stream's order.
//   (2) Nothing finishes by itself: without step/drain/tick/progress or a blocking call, all work
//       stays pending.
//   (3) The same options and the same calls give the same answers, addresses and handles, on every
//       compiler.
//   (4) A failed call changes nothing (D1), but for the invalidation of a capture (D6).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ashlar/device/device.h>

#include "spec/gpu/cost_model.h"
#include "spec/gpu/fault.h"
#include "spec/gpu/ledger.h"

namespace ashlar::spec {

class HappensBefore;
class Machine;

/// The driver's name for an allocation, for the detector: any number but 0, never used for two
/// allocations.
using AllocationTag = std::uint64_t;
inline constexpr AllocationTag kNoTag = 0;

enum class Access : std::uint8_t { kRead = 1, kWrite = 2, kReadWrite = 3 };

/// A byte range that a kernel touches. `tag` names the allocation it belongs to; kNoTag keeps it
/// from the detector.
struct Touch {
  Address at;
  Bytes size;
  Access access = Access::kReadWrite;
  AllocationTag tag = kNoTag;
};

/// The handles of CUDA's default streams: one value on every device. kDefaultStream is the same
/// stream as kLegacyStream; kPerThreadStream is another stream (identity) on every thread and
/// device.
inline constexpr StreamHandle kDefaultStream{0};
inline constexpr StreamHandle kLegacyStream{1};
inline constexpr StreamHandle kPerThreadStream{2};

/// The edges of happens-before. A mask in SimGpuOptions::drop_edges switches some off: for testing
/// the oracle, and
/// (kCompletion) for its strict form, in which the host must have *learnt* that work is done.
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
  /// memory write of a stream -> a later enqueued memory wait on that word
  kEdgeMemoryValue = 1u << 8,
  /// use ordered before the free on the block's own stream needs no announcement
  kEdgeFreeCoverage = 1u << 9,
};

/// What a new stream is like.
enum class StreamKind : std::uint8_t {
  kNonBlocking,  ///< cudaStreamNonBlocking: no implicit order with the legacy default stream
  kBlocking,     ///< ordered with the legacy default stream
};

struct SimGpuOptions {
  /// One device for each; 0 means unlimited.
  std::vector<Bytes> capacities{Bytes{0}};
  std::uint64_t seed = 1;
  CostModel cost{};
  /// Addresses: on, ranges just freed come back first, aligned to 512 bytes only, adjacent to other
  /// segments, and dead stream, event and page handles' values come back at once. Off: lowest free
  /// 2 MiB-aligned range; values not reused.
  bool adversarial = true;
  bool virtual_memory = true;
  Bytes page_granularity{2_MiB};
  /// Entries a stream's queue holds; an enqueue on a full one blocks. 0 means no limit.
  std::uint32_t queue_depth = 0;
  /// Streams share so many hardware queues: an entry starts only when all enqueued before it in its
  /// hardware queue are done (false dependencies). 0 means one for each stream.
  std::uint32_t hardware_queues = 0;
  /// Entries that may finish in one ms of a bounded event_synchronize. 0 means as many as can.
  std::uint32_t entries_per_ms = 0;
  /// At every device call the adversary finishes up to so many entries, of random streams. 0: none.
  std::uint32_t pace = 0;
  /// Edges of happens-before that the detector ignores: a mask of Edge.
  std::uint32_t drop_edges = 0;
};

/// How a planned failure goes on.
enum class FailMode : std::uint8_t {
  kOnce,  ///< the n-th call fails
  kOn,    ///< the n-th call and every later one fail
};

/// How stream-memory wait compares: the word with the value (cuStreamWaitValue's flags).
enum class WaitRule : std::uint8_t { kGreaterOrEqual, kEqual, kAnd };

/// A captured graph. Holds the touches of the kernels that were captured.
using GraphId = Id<struct GraphIdTag, std::uint32_t>;
/// A flag that a host function waits for. 0 is a flag always raised.
using HostFlag = std::uint32_t;

/// See the head of this file. Control functions that take a Stream use its handle and device only,
/// as the driver would (step, pending and the detector's on_* use its identity); on a dead or
/// foreign handle they report a fault and return kInvalidHandle or kWrongDevice. Those that enqueue
/// may block (queue_depth): kDeadlock if for ever. All of them but where said answer
/// kDeviceLost/kTornDown when it is. Their misuse is blamed on the caller, not on the allocator.
class SimGpu {
 public:
  using Options = SimGpuOptions;

  explicit SimGpu(const Options& options = {});
  SimGpu(const SimGpu&) = delete;
  SimGpu& operator=(const SimGpu&) = delete;
  ~SimGpu();

  // The machine.
  std::uint32_t device_count() const;
  /// The device, for the allocator. REQUIRES: id in 0..device_count()-1. Lives as long as the
  /// SimGpu.
  device::Device& device(DeviceId id);
  device::Device& device(std::int32_t ordinal = 0) { return device(DeviceId{ordinal}); }
  /// Changes a device's capacity; what is held stays held. 0 means unlimited.
  void set_capacity(DeviceId id, Bytes capacity);
  /// Lets the calling thread act as the n-th simulated host thread (0, 1, ...) from now on, for
  /// this machine: it has its own per-thread default stream and capture mode. Without it every real
  /// thread gets a number at its first call.
  void act_as_thread(std::uint32_t n);

  // Streams.
  Result<Stream> create_stream(DeviceId id, StreamKind kind = StreamKind::kNonBlocking);
  /// Legal with work pending: it runs on. The handle is dead at once.
  Status destroy_stream(const Stream& stream);
  /// The stream that kDefaultStream, kLegacyStream or (for the calling thread) kPerThreadStream
  /// means on that device.
  Stream default_stream(DeviceId id, StreamHandle which = kLegacyStream);
  /// Entries enqueued and not finished. By the stream's identity: right for a destroyed stream too.
  std::uint64_t pending(const Stream& stream) const;
  std::uint64_t pending(DeviceId id) const;

  // Work. In a capture these add to the captured graph instead. (Events: Device::event_record and
  // stream_wait.)
  Status launch(const Stream& stream, std::span<const Touch> touches);
  Status launch(const Stream& stream, const Touch& touch) {
    return launch(stream, std::span<const Touch>(&touch, 1));
  }
  /// A host function: holds the stream until `flag` is raised, then runs `body` (may be empty).
  Status host_function(const Stream& stream, HostFlag flag = 0, std::function<void()> body = {});
  /// A new flag, not raised.
  HostFlag new_flag();
  void raise(HostFlag flag);
  /// Stream-memory operations on the 8-byte word at `at` (any address; starts as 0).
  Status write_value(const Stream& stream, Address at, std::uint64_t value);
  Status wait_value(const Stream& stream, Address at, std::uint64_t value,
                    WaitRule rule = WaitRule::kGreaterOrEqual);
  /// The host stores to the word, at once.
  void host_write_value(Address at, std::uint64_t value);
  /// One member of a co-resident collective: runs only when `members` streams have a collective of
  /// this `group` at their head; all of them finish together.
  Status collective(const Stream& stream, std::uint32_t group, std::uint32_t members);
  /// A kernel that faults: when it runs, its device is lost (an asynchronous, sticky error).
  Status launch_faulty(const Stream& stream);

  // Progress. None of these fails on a lost device: there is nothing left to run there.
  /// Finishes up to n entries of the stream, stopping at one that cannot run; how many. By the
  /// stream's identity: a destroyed stream's work runs on.
  std::uint64_t step(const Stream& stream, std::uint64_t n = 1);
  /// Finishes all work of the device (and what it waits for). kDeadlock when some of it cannot run;
  /// the rest is done.
  Status drain(DeviceId id);
  Status drain_all();
  /// The adversary finishes up to n entries of streams chosen from the seed; how many.
  std::uint64_t progress(std::uint64_t n);
  /// From now on every entry enqueued finishes at the n-th tick() after it. kNoLag: only when told.
  static constexpr std::uint64_t kNoLag = ~std::uint64_t{0};
  void set_lag(std::uint64_t ticks);
  void tick();

  // Capture (cudaStreamBeginCapture, EndCapture, GraphLaunch, GraphDestroy).
  Status begin_capture(const Stream& stream, device::CaptureMode mode);
  Result<GraphId> end_capture(const Stream& stream);
  /// Enqueues the graph as one entry that touches everything its kernels touch (untagged: mapped
  /// bytes are checked).
  Status launch_graph(const Stream& stream, GraphId graph);
  Status destroy_graph(GraphId graph);

  // Failures.
  /// The n-th call of that kind from now (1 = the next), on any device, answers `code`, and has no
  /// effect.
  void fail(device::CallKind kind, std::uint64_t n, FailMode mode, Code code);
  void fail(device::CallKind kind, std::uint64_t n, FailMode mode) {
    fail(kind, n, mode, usual_failure(kind));
  }
  /// What that kind of call answers when it fails: kOutOfMemory, kOutOfAddresses or kDriverError.
  static Code usual_failure(device::CallKind kind);
  /// No more planned failures.
  void heal();
  /// D8: from now on every call on that device answers kDeviceLost; its pending work is gone.
  void lose(DeviceId id);
  /// D8: from now on every call on any device answers kTornDown, and is a fault (C25).
  void tear_down();

  // The account.
  Ledger ledger() const;
  Ledger ledger(DeviceId id) const;
  /// Every handle held, in order of kind and address.
  std::vector<HeldHandle> held() const;
  /// Reports one kLeak fault for each kind of memory, event or (if `streams` too) stream still
  /// held; true when none is.
  bool leak_check(bool streams = false);
  CallAccount account() const;
  void mark_step();
  void reset_account();

  // Faults.
  /// Cheap: no copy.
  std::size_t fault_count() const;
  std::vector<Fault> take_faults();

  // The happens-before detector (detector.h says what each means). A driver tells it what the
  // allocator's users know.
  void on_allocate(AllocationTag tag, Address at, Bytes size, const Stream& stream);
  void on_use_announced(AllocationTag tag, const Stream& stream);
  void on_free(AllocationTag tag);

  /// While one lives, the calling thread's Device calls are the caller's own (its events, its
  /// waits), not the allocator's: not in the account, not failed on purpose, and misuse is blamed
  /// on the caller. Nests.
  class CallerScope {
   public:
    CallerScope();
    CallerScope(const CallerScope&) = delete;
    CallerScope& operator=(const CallerScope&) = delete;
    ~CallerScope();
  };

  /// A text of every stream's queue, for messages.
  std::string describe() const;
  /// Appends what is pending on every stream, in numbers: two machines that say the same go on
  /// alike. For exhaustive search, which visits such states once.
  void queue_contents(std::vector<std::uint64_t>* out) const;

 private:
  std::unique_ptr<Machine> machine_;
};

}  // namespace ashlar::spec
