// Scheduler: the streams' queues of the simulated machine, and what may run next in them.
//
// Purpose: the progress half of the machine. A lane is a stream's identity as a dense index (its
// StreamId - 1); the scheduler knows no handles.
// Thread safety: none (the machine's lock).
// Cost: an enqueue or a finish O(1) (O(lanes) with shared hardware queues); no allocation in a
// steady state.
// Invariant: active_ holds every lane with work pending.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "spec/gpu/clocks.h"
#include "spec/gpu/fault.h"
#include "spec/gpu/host_functions.h"
#include "spec/gpu/lane_queue.h"
#include "spec/gpu/memory.h"
#include "spec/gpu/memory_words.h"
#include "spec/gpu/sim_types.h"
#include "spec/ops/random.h"

namespace ashlar::spec {

class Scheduler {
 public:
  Scheduler(const SimGpuOptions& options, const Memory& memory, Clocks& clocks, FaultLog& faults);

  std::uint32_t add_lane(std::uint32_t device);
  std::uint64_t enqueued(std::uint32_t lane) const { return lanes_[lane].queue.enqueued(); }
  /// How many entries the lane must finish until that place is.
  std::uint64_t entries_until(std::uint32_t lane, std::uint64_t place) const {
    if (place == 0) return 0;
    const std::uint64_t done = lanes_[lane].queue.done();
    return place > done ? place - done : 0;
  }
  bool is_done(std::uint32_t lane, std::uint64_t place) const {
    return lanes_[lane].queue.done() >= place;
  }
  std::uint64_t pending(std::uint32_t lane) const { return lanes_[lane].queue.pending(); }
  std::uint64_t pending_on_device(std::uint32_t device) const;
  bool is_full(std::uint32_t lane) const {
    return queue_depth_ > 0 && pending(lane) >= queue_depth_;
  }

  /// Adds an entry at the lane's next place. `touches` are the kernel's.
  void push(std::uint32_t lane, Entry entry, std::span<const Touch> touches = {});

  /// Finishes up to n entries of that lane. Returns how many it finished.
  std::uint64_t step(std::uint32_t lane, std::uint64_t n);
  /// Finishes up to n entries of each lane, those that are at its head in turn.
  void step_each(std::uint64_t n);
  /// Finishes one entry that helps the lane along: its own head, or one that the head waits for; if
  /// neither can run, any other entry. False if none can run.
  bool help(std::uint32_t lane);
  /// Finishes the head of one lane chosen from the seed; false if none can run.
  bool run_any();
  /// Finishes all work of the device that can run; false if some cannot.
  bool drain(std::uint32_t device);
  /// From now on an entry finishes at the `ticks`-th tick after its enqueue.
  void set_lag(std::uint64_t ticks) { lag_ = ticks; }
  void tick();
  bool is_lost(std::uint32_t device) const { return lost_[device] != 0; }
  /// The device is lost, and its pending work with it.
  void lose(std::uint32_t device);

  HostFunctions& host_functions() { return host_functions_; }
  MemoryWords& words() { return words_; }

  /// Does an unfinished kernel touch any of that range?
  bool in_flight(Address at, Bytes size) const;
  std::uint64_t entries_run() const { return entries_run_; }
  std::string describe() const;
  /// Appends every lane's pending entries: kind, what it names, and the ranges it touches.
  void queue_contents(std::vector<std::uint64_t>* out) const;

 private:
  struct Lane {
    LaneQueue queue;
    std::uint32_t device = 0;
    bool active = false;
  };

  const Entry& head(std::uint32_t lane) const { return lanes_[lane].queue.head(); }
  bool runnable(std::uint32_t lane) const;
  std::uint32_t hardware_blocker(std::uint32_t lane) const;
  std::uint32_t members_ready(const Entry& entry) const;
  void finish(std::uint32_t lane);
  void finish_collective(std::uint32_t lane);
  void pop(std::uint32_t lane);
  void check_touch(const Touch& touch, std::uint32_t lane);
  void drop_idle();

  const Memory& memory_;
  Clocks& clocks_;
  FaultLog& faults_;
  std::vector<Lane> lanes_;
  std::vector<std::uint32_t> active_;
  std::vector<std::uint8_t> lost_;  // by device
  HostFunctions host_functions_;
  MemoryWords words_;
  Random rng_;
  std::uint64_t sequence_ = 0;
  std::uint64_t now_ = 0;
  std::uint64_t lag_ = kNoLag;
  std::uint64_t entries_run_ = 0;
  std::uint32_t queue_depth_;
  std::uint32_t hardware_queues_;
};

}  // namespace ashlar::spec
