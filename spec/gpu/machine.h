// Machine: the whole simulated machine behind SimGpu and its devices, under one lock.
//
// Purpose: owns the shared state and the parts that translate calls into changes of it; what
// concerns all parts at once is a function here.
// Thread safety: callers hold mutex() for every function but the constructor, device_count and
// device.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "spec/gpu/capture_calls.h"
#include "spec/gpu/enqueuer.h"
#include "spec/gpu/event_calls.h"
#include "spec/gpu/machine_state.h"
#include "spec/gpu/memory_calls.h"
#include "spec/gpu/sim_device.h"
#include "spec/gpu/sim_streams.h"

namespace ashlar::spec {

class Machine {
 public:
  explicit Machine(const SimGpuOptions& options);
  ~Machine();

  std::mutex& mutex() { return mutex_; }
  std::uint32_t device_count() const { return static_cast<std::uint32_t>(devices_.size()); }
  SimDevice& device(std::uint32_t device) { return devices_[device]; }

  MachineState& state() { return state_; }
  SimStreams& streams() { return streams_; }
  Enqueuer& work() { return work_; }
  EventCalls& events() { return events_; }
  MemoryCalls& memory() { return memory_; }
  CaptureCalls& captures() { return captures_; }

  /// Blocks until all work of the device is done.
  Status synchronize(std::uint32_t device);
  /// The same for at most `timeout_ms`.
  Status synchronize_for(std::uint32_t device, std::uint32_t timeout_ms);
  /// Reports what is still held, for each kind (C14); true when nothing is.
  bool leak_check(bool streams);
  /// Every handle held, in order of kind and value.
  std::vector<HeldHandle> held() const;

 private:
  Status refuse_in_capture();
  Status learn_all_done(std::uint32_t device);

  std::mutex mutex_;
  MachineState state_;
  SimStreams streams_{state_};
  Enqueuer work_{state_, streams_};
  EventCalls events_{state_, streams_, work_};
  MemoryCalls memory_{state_};
  CaptureCalls captures_{state_, streams_, work_};
  std::vector<SimDevice> devices_;
};

}  // namespace ashlar::spec
