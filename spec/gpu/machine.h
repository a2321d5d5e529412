// Machine: the whole simulated machine behind SimGpu and its devices.
//
// Purpose: puts memory, queues, captures, clocks and the detector together under one lock. Every
// public member of SimGpu and every Device call is one function here.
// Thread safety: callers hold mutex() for every function but the constructor.
// Invariants:
//   (1) A lane index is a stream's identity minus 1; it is never reused.
//   (2) An event's state is a place in one lane's order, or a point in a capture, or neither (never
//       recorded).
#pragma once

#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "spec/gpu/capture.h"
#include "spec/gpu/clocks.h"
#include "spec/gpu/detector.h"
#include "spec/gpu/handle_table.h"
#include "spec/gpu/memory.h"
#include "spec/gpu/scheduler.h"
#include "spec/gpu/sim_device.h"
#include "spec/gpu/sim_gpu.h"

namespace ashlar::spec {

class Machine {
 public:
  explicit Machine(const SimGpuOptions& options);
  ~Machine();

  std::mutex& mutex() { return mutex_; }
  const SimGpuOptions& options() const { return options_; }
  SimDevice& device(std::uint32_t device) { return devices_[device]; }
  Memory& memory() { return memory_; }
  const Memory& memory() const { return memory_; }
  Scheduler& scheduler() { return scheduler_; }
  const Scheduler& scheduler() const { return scheduler_; }
  FaultLog& faults() { return faults_; }
  Clocks& clocks() { return clocks_; }
  HappensBefore& detector() { return detector_; }
  CallAccount& account_entry() { return account_; }
  CallAccount account() const;

  /// The calling thread's number on this machine.
  std::uint32_t thread();
  void act_as_thread(std::uint32_t n);

  // Before a Device call: charges it, lets the adversary move, and says whether it may go on (D8,
  // planned failures).
  Status enter(std::uint32_t device, device::CallKind kind, Bytes size);
  /// After it: counts failures.
  void leave(device::CallKind kind, Code code);
  /// kTornDown or kDeviceLost when it is so (D8).
  Status check_alive(std::uint32_t device) const;
  /// Reports a device call made inside a host function; what that call answers.
  Status refuse_in_host_function();

  // Device calls.
  Result<Address> segment_alloc(std::uint32_t device, Bytes size, HeldKind kind);
  Status segment_free(std::uint32_t device, Address base, HeldKind kind);
  Result<Address> address_reserve(std::uint32_t device, Bytes size, Bytes alignment);
  Status address_release(std::uint32_t device, Address base, Bytes size);
  Result<PageHandle> page_create(std::uint32_t device, Bytes size);
  Status page_release(std::uint32_t device, PageHandle page);
  Status page_map(std::uint32_t device, Address at, Bytes size, PageHandle page);
  Status page_access(std::uint32_t device, Address at, Bytes size);
  Status page_unmap(std::uint32_t device, Address at, Bytes size);
  Result<EventHandle> event_create(std::uint32_t device);
  Status event_destroy(std::uint32_t device, EventHandle event);
  Status event_record(std::uint32_t device, EventHandle event, StreamHandle stream);
  Status event_query(EventHandle event);
  Status event_synchronize(EventHandle event, std::uint32_t timeout_ms);
  Status stream_wait(std::uint32_t device, StreamHandle stream, EventHandle event);
  Result<Stream> identify(std::uint32_t device, StreamHandle stream);
  Result<device::CaptureStatus> capture_status(std::uint32_t device, StreamHandle stream);
  device::CaptureMode exchange_capture_mode(device::CaptureMode mode);
  Status synchronize(std::uint32_t device);

  // Control.
  Stream create_stream(std::uint32_t device, StreamKind kind);
  Status destroy_stream(const Stream& stream);
  Stream default_stream(std::uint32_t device, StreamHandle which);
  /// Is that a stream's identity here, alive or dead?
  bool knows(const Stream& stream) const {
    return stream.id.value() > 0 && stream.id.value() <= lane_info_.size();
  }
  Status enqueue(const Stream& stream, const Entry& entry, std::span<const Touch> touches = {});
  Status write_value(const Stream& stream, Address at, std::uint64_t value);
  Status wait_value(const Stream& stream, Address at, std::uint64_t value, WaitRule rule);
  Status begin_capture(const Stream& stream, device::CaptureMode mode);
  Result<GraphId> end_capture(const Stream& stream);
  Status launch_graph(const Stream& stream, GraphId graph);
  Status destroy_graph(GraphId graph);
  void fail(device::CallKind kind, std::uint64_t n, FailMode mode, Code code);
  void heal() { plans_.clear(); }
  void tear_down() { torn_down_ = true; }
  bool leak_check(bool streams);
  std::vector<HeldHandle> held() const;
  void mark_step() { account_.mark_step(); }
  void reset_account();

 private:
  struct LaneInfo {
    std::uint32_t device = 0;
    StreamHandle handle;
    bool blocking = false;
    bool thread_bound = false;
  };
  struct EventState {
    std::uint32_t device = 0;
    std::uint32_t lane = 0;
    std::uint64_t place = 0;  // 0: never recorded
    Clock clock;
    CapturePoint point;
  };
  struct Defaults {
    std::uint32_t legacy = 0;               // lane + 1; 0: not made yet
    std::vector<std::uint32_t> per_thread;  // likewise, by thread
    std::vector<std::uint32_t> blocking;    // lanes, the legacy one not among them
  };
  struct Plan {
    device::CallKind kind;
    std::uint64_t left;
    FailMode mode;
    Code code;
  };
  struct WordClock {
    Address at;
    Clock clock;  // of the write enqueued last
  };
  struct Graph {
    std::vector<Touch> touches;
    bool alive = false;
  };

  Result<std::uint32_t> resolve(std::uint32_t device, StreamHandle handle);
  std::uint32_t add_lane(std::uint32_t device, StreamHandle handle, bool blocking,
                         bool thread_bound);
  std::uint32_t default_lane(std::uint32_t device, StreamHandle which);
  Stream stream_of(std::uint32_t lane) const;
  EventState* find_event(EventHandle event);
  Status check_safe();
  /// One more bounded wait ended with nothing able to run. True when such waits, with no entry
  /// finished between them, add up to ten minutes: whoever waits so in slices is as stuck as who
  /// waits for ever.
  bool is_stuck_after(std::uint32_t waited_ms);
  Status enqueue_on(std::uint32_t lane, const Entry& entry, std::span<const Touch> touches);
  Status order_with_legacy(std::uint32_t lane);
  Status make_room(std::uint32_t lane);
  void push(std::uint32_t lane, const Entry& entry, std::span<const Touch> touches = {});
  void about_to_unmap(Address at, Bytes size);
  device::CaptureMode& capture_mode();

  std::mutex mutex_;
  SimGpuOptions options_;
  std::uint64_t serial_;
  FaultLog faults_;
  Clocks clocks_;
  Memory memory_;
  Scheduler scheduler_;
  Captures captures_;
  HappensBefore detector_;
  CallAccount account_;
  Random rng_;
  std::vector<SimDevice> devices_;
  std::vector<Defaults> defaults_;  // by device
  std::vector<LaneInfo> lane_info_;
  HandleTable<std::uint32_t> streams_;  // lane
  HandleTable<EventState> events_;
  std::vector<Graph> graphs_;
  std::vector<WordClock> word_clocks_;
  std::vector<Plan> plans_;
  std::vector<device::CaptureMode> capture_modes_;  // by thread
  std::vector<std::pair<std::thread::id, std::uint32_t>> threads_;
  std::vector<Touch> touched_;        // scratch
  std::uint64_t stood_still_at_ = 0;  // entries run by then
  std::uint64_t stood_still_ms_ = 0;
  bool torn_down_ = false;
};

}  // namespace ashlar::spec
