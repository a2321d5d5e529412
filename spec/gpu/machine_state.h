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
#include "spec/gpu/scheduler.h"
#include "spec/gpu/sim_types.h"

namespace ashlar::spec {

struct MachineState {
  explicit MachineState(const SimGpuOptions& asked)
      : options(asked),
        clocks(options.drop_edges),
        memory(options, faults),
        scheduler(options, memory, clocks, faults),
        captures(faults),
        detector(clocks, faults),
        gate(options, scheduler, faults) {}
  MachineState(const MachineState&) = delete;
  MachineState& operator=(const MachineState&) = delete;

  /// kCaptureUnsafe if a capture forbids the calling thread calls that are unsafe while capturing
  /// (D6); such a capture is invalidated.
  Status check_safe() {
    if (captures.none_open() ||
        !captures.forbids_unsafe_call(threads.current(), threads.capture_mode()))
      return Status::ok();
    return Status{Code::kCaptureUnsafe, "an unsafe call while capturing"};
  }

  const SimGpuOptions options;
  FaultLog faults;
  Clocks clocks;
  Memory memory;
  Scheduler scheduler;
  Captures captures;
  HappensBefore detector;
  HostThreads threads;
  CallGate gate;
};

}  // namespace ashlar::spec
