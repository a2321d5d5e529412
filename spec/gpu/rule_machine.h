// RuleMachine: what a rule case needs of the machine it runs on, beside ashlar::Device.
//
// Purpose: the same `.ops` cases run on the simulated GPU and, later, on a real one. Device is what
// the allocator calls; here is what a test does itself: make streams, launch, capture, and decide
// progress and failures, where the machine lets it.
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <ashlar/device/device.h>

#include "spec/gpu/sim_gpu.h"

namespace ashlar::spec {

/// Every function answers kUnsupported where the machine cannot do it; a case that needs it is then
/// not run.
class RuleMachine {
 public:
  virtual ~RuleMachine() = default;

  virtual std::uint32_t device_count() const = 0;
  virtual device::Device& device(std::uint32_t index) = 0;
  /// From now on the calls are those of the n-th host thread.
  virtual Status act_as_thread(std::uint32_t n) = 0;

  // What CUDA offers and Device does not have: any GPU can do these.
  virtual Result<Stream> create_stream(std::uint32_t device, StreamKind kind) = 0;
  virtual Result<Stream> default_stream(std::uint32_t device, StreamHandle which) = 0;
  virtual Status destroy_stream(const Stream& stream) = 0;
  virtual Status launch(const Stream& stream, std::span<const Touch> touches) = 0;
  /// A kernel that faults.
  virtual Status launch_faulty(const Stream& stream) = 0;
  /// A host function that waits for a flag (0: none).
  virtual Status host_function(const Stream& stream, HostFlag flag) = 0;
  /// A host function that makes a device call; body_outcome returns that call's outcome.
  virtual Status host_function_calling(const Stream& stream, std::uint32_t device) = 0;
  virtual Status body_outcome() = 0;
  virtual Status raise(HostFlag flag) = 0;
  virtual Status write_value(const Stream& stream, std::uint32_t word, std::uint64_t value) = 0;
  virtual Status wait_value(const Stream& stream, std::uint32_t word, std::uint64_t value) = 0;
  virtual Status host_write_value(std::uint32_t word, std::uint64_t value) = 0;
  virtual Status collective(const Stream& stream, std::uint32_t group, std::uint32_t members) = 0;
  virtual Status begin_capture(const Stream& stream, device::CaptureMode mode) = 0;
  virtual Result<GraphId> end_capture(const Stream& stream) = 0;
  virtual Status begin_body(const Stream& stream, const Stream& parent) = 0;
  virtual Status end_body(const Stream& stream) = 0;
  virtual Status launch_graph(const Stream& stream, GraphId graph, BodyRuns runs) = 0;
  virtual Status destroy_graph(GraphId graph) = 0;

  // What only a machine can do whose progress and failures the test decides.
  /// kOk if n entries finished, kNotReady if fewer could.
  virtual Status step(const Stream& stream, std::uint64_t n) = 0;
  virtual Status drain(std::uint32_t device) = 0;
  virtual Status drain_all() = 0;
  virtual Result<std::uint64_t> pending(const Stream& stream) = 0;
  virtual Status set_lag(std::uint64_t ticks) = 0;
  virtual void tick() = 0;
  virtual Status set_capacity(std::uint32_t device, Bytes capacity) = 0;
  virtual Status fail(device::CallKind kind, std::uint64_t n, FailMode mode) = 0;
  virtual Status heal() = 0;
  virtual Status lose(std::uint32_t device) = 0;
  virtual Status tear_down() = 0;
  /// Does the machine report misuse as faults?
  virtual bool reports_faults() const = 0;
  /// The names of the faults since the last call, each followed by a space.
  virtual std::string take_faults() = 0;
};

/// A simulated machine with those options.
std::unique_ptr<RuleMachine> make_simulated_machine(const SimGpuOptions& options);

}  // namespace ashlar::spec
