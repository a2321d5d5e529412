// MachineState: what all parts of a simulated machine share.
//
// Purpose: memory, queues, captures, clocks, the detector and the gate know nothing of handles;
// SimStreams, Enqueuer, EventCalls, MemoryCalls and CaptureCalls translate calls into changes of
// this state.
// Thread safety: none (the machine's lock).
#pragma once

#include "spec/gpu/call_gate.h"
#include "spec/gpu/capture.h"
#include "spec/gpu/clocks.h"
#include "spec/gpu/detector.h"
#include "spec/gpu/fault.h"
#include "spec/gpu/host_threads.h"
#include "spec/gpu/memory.h"
#include "spec/gpu/memory_sharing.h"
#include "spec/gpu/registrations.h"
#include "spec/gpu/scheduler.h"
#include "spec/gpu/sim_types.h"

namespace ashlar::spec {

/// What the host's clock says: simulated time passes only in waits.
class HostTime {
 public:
  std::uint64_t now_ns() const { return now_ns_; }
  void pass_ns(std::uint64_t ns) { now_ns_ += ns; }
  void pass_ms(std::uint64_t ms) { pass_ns(ms * 1'000'000); }
  /// The time in which `entries` entries run at that pace; none where the pace is 0 (unlimited).
  void pass_entries(std::uint64_t entries, std::uint64_t entries_per_ms) {
    if (entries_per_ms > 0) now_ns_ += entries * 1'000'000 / entries_per_ms;
  }

 private:
  std::uint64_t now_ns_ = 0;
};

struct MachineState {
  explicit MachineState(const SimGpuOptions& asked)
      : options(asked),
        clocks(options.drop_edges),
        memory(options, faults),
        sharing(memory, faults),
        registrations(faults),
        scheduler(options, memory, clocks, faults),
        captures(faults),
        detector(clocks, memory, captures, faults),
        gate(options, scheduler, faults) {}
  MachineState(const MachineState&) = delete;
  MachineState& operator=(const MachineState&) = delete;

  /// kCaptureUnsafe if a capture forbids the calling thread calls that are unsafe while capturing
  /// (D6); such a capture is invalidated. `call`: CUDA's name for this one.
  Status check_safe(const char* call) {
    if (captures.none_open() ||
        !captures.forbids_unsafe_call(threads.current(), threads.capture_mode(), call))
      return Status::ok();
    return Status{Code::kCaptureUnsafe, "an unsafe call while capturing"};
  }

  const SimGpuOptions options;
  FaultLog faults;
  Clocks clocks;
  Memory memory;
  MemorySharing sharing;
  Registrations registrations;
  Scheduler scheduler;
  Captures captures;
  HappensBefore detector;
  HostThreads threads;
  HostTime time;
  CallGate gate;
};

}  // namespace ashlar::spec
