// Scheduler: the streams' queues of the simulated machine, and what may run next in them.
//
// Purpose: the progress half of the machine. A lane is a stream's identity as a dense index (its
// StreamId - 1); handles are somebody else's business.
// Thread safety: none (the machine's lock).
// Cost: an enqueue or a finish O(1) (O(lanes) with shared hardware queues); no allocation in a
// steady state.
// Invariants:
//   (1) A lane's entries are at places done+1 .. enqueued, and finish in that order.
//   (2) active_ holds every lane with work pending.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "spec/gpu/clocks.h"
#include "spec/gpu/fault.h"
#include "spec/gpu/memory.h"
#include "spec/gpu/sim_gpu.h"

namespace ashlar::spec {

enum class EntryKind : std::uint8_t {
  kKernel,
  kRecord,      // an event's place
  kWait,        // until lane `a` has finished place `b`
  kHost,        // until flag `a` is raised; runs body `b` - 1 if not 0
  kWriteValue,  // word `b` = `c`
  kWaitValue,   // until word `b` compares to `c` by `rule`
  kCollective,  // group `a` of `members`
  kFaulty,      // loses the device
};

struct Entry {
  EntryKind kind = EntryKind::kKernel;
  WaitRule rule = WaitRule::kEqual;
  std::uint32_t touches = 0;
  std::uint32_t a = 0;
  std::uint32_t members = 0;
  std::uint64_t b = 0;
  std::uint64_t c = 0;
  std::uint64_t due = 0;       // set by push
  std::uint64_t sequence = 0;  // set by push: order of enqueues over the whole machine
};

class Scheduler {
 public:
  Scheduler(const SimGpuOptions& options, const Memory& memory, Clocks& clocks, FaultLog& faults);

  std::uint32_t add_lane(std::uint32_t device);
  std::uint64_t enqueued(std::uint32_t lane) const { return lanes_[lane].enqueued; }
  bool is_done(std::uint32_t lane, std::uint64_t place) const { return lanes_[lane].done >= place; }
  std::uint64_t pending(std::uint32_t lane) const {
    return lanes_[lane].enqueued - lanes_[lane].done;
  }
  std::uint64_t pending_on_device(std::uint32_t device) const;
  bool is_full(std::uint32_t lane) const {
    return queue_depth_ > 0 && pending(lane) >= queue_depth_;
  }

  /// At the next place. `touches` are the kernel's.
  void push(std::uint32_t lane, Entry entry, std::span<const Touch> touches = {});

  /// Finishes up to n entries of that lane; how many.
  std::uint64_t step(std::uint32_t lane, std::uint64_t n);
  /// Finishes one entry that helps the lane along (its own head, or what that waits for), or any;
  /// false if none can run.
  bool help(std::uint32_t lane);
  /// Finishes the head of one lane chosen from the seed; false if none can run.
  bool run_any();
  /// Finishes all work of the device that can be; false if some cannot.
  bool drain(std::uint32_t device);
  void set_lag(std::uint64_t ticks) { lag_ = ticks; }
  void tick();
  /// The device's pending work is gone.
  void drop_work(std::uint32_t device);
  bool is_lost(std::uint32_t device) const { return lost_[device] != 0; }
  void lose(std::uint32_t device);

  HostFlag new_flag();
  void raise(HostFlag flag);
  std::uint32_t add_body(std::function<void()> body);
  void write_word(Address at, std::uint64_t value) { word(at) = value; }

  /// Does an unfinished kernel touch any of that range?
  bool in_flight(Address at, Bytes size) const;
  std::uint64_t entries_run() const { return entries_run_; }
  std::string describe() const;
  /// Appends every lane's pending entries: kind, what it names, and the ranges it touches.
  void queue_contents(std::vector<std::uint64_t>* out) const;
  /// The machine whose host function this thread runs now, if any.
  static const Scheduler*& in_host_function();

 private:
  struct Lane {
    std::vector<Entry> entries;  // ring; its size is 0 or a power of two
    std::vector<Touch> touches;  // ring, likewise
    std::uint64_t enqueued = 0;
    std::uint64_t done = 0;
    std::uint64_t touches_in = 0;
    std::uint64_t touches_out = 0;
    std::uint32_t device = 0;
    bool active = false;
  };
  struct Word {
    std::uint64_t at;
    std::uint64_t value;
  };

  const Entry& head(const Lane& lane) const {
    return lane.entries[(lane.done) & (lane.entries.size() - 1)];
  }
  bool runnable(std::uint32_t lane) const;
  bool passes(const Entry& entry) const;
  std::uint32_t hardware_blocker(std::uint32_t lane) const;
  std::uint32_t members_ready(const Entry& entry) const;
  void finish(std::uint32_t lane);
  void pop(std::uint32_t lane);
  void check_touch(const Touch& touch, std::uint32_t lane);
  void run_body(std::uint64_t body);
  std::uint64_t& word(Address at);
  void drop_idle();

  const Memory& memory_;
  Clocks& clocks_;
  FaultLog& faults_;
  std::vector<Lane> lanes_;
  std::vector<std::uint32_t> active_;
  std::vector<std::uint8_t> lost_;   // by device
  std::vector<std::uint8_t> flags_;  // by flag; [0] is raised
  std::vector<std::function<void()>> bodies_;
  std::vector<Word> words_;
  Random rng_;
  std::uint64_t sequence_ = 0;
  std::uint64_t now_ = 0;
  std::uint64_t lag_ = SimGpu::kNoLag;
  std::uint64_t entries_run_ = 0;
  std::uint32_t queue_depth_;
  std::uint32_t hardware_queues_;
};

}  // namespace ashlar::spec
