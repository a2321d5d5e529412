// SimCaller: what the allocator's caller does with a GPU: streams, work, captures.
//
// Purpose: the caller's side of the simulated machine, the part of CUDA that the allocator's caller
// uses and Device does not have. SimGpu inherits it. (Events: Device::event_record and
// stream_wait.)
// A function that takes a Stream uses its handle and device only, as the driver does; pending uses
// its identity. A dead or foreign handle is reported as a fault and answered with kInvalidHandle or
// kWrongDevice. A function that enqueues may block (SimGpuOptions::queue_depth), and answers
// kDeadlock when it would block for ever. Work and captures on a lost device answer kDeviceLost;
// after tear_down they answer kTornDown. Misuse is blamed on the caller, not on the allocator.
// Thread safety: any thread at any time (the machine's lock).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "spec/gpu/captured_graph.h"
#include "spec/gpu/sim_types.h"

namespace ashlar::spec {

class Machine;

class SimCaller {
 public:
  Result<Stream> create_stream(DeviceId id, StreamKind kind = StreamKind::kNonBlocking);
  /// Legal with work pending: the work runs on. The handle is dead at once.
  Status destroy_stream(const Stream& stream);
  /// The stream that kDefaultStream, kLegacyStream or (for the calling thread) kPerThreadStream
  /// means on that device.
  Stream default_stream(DeviceId id, StreamHandle which = kLegacyStream);
  /// The number of entries enqueued and not finished, for a destroyed stream too.
  std::uint64_t pending(const Stream& stream) const;
  std::uint64_t pending(DeviceId id) const;

  // Work. On a stream that captures, these add to the captured graph instead.
  Status launch(const Stream& stream, std::span<const Touch> touches);
  Status launch(const Stream& stream, const Touch& touch) {
    return launch(stream, std::span<const Touch>(&touch, 1));
  }
  /// A host function: holds the stream until `flag` is raised, then runs `body` (may be empty). The
  /// body runs under the machine's lock and may call nothing of the machine.
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

  // Capture (cudaStreamBeginCapture, EndCapture, GraphLaunch, GraphDestroy).
  Status begin_capture(const Stream& stream, device::CaptureMode mode);
  Result<GraphId> end_capture(const Stream& stream);
  /// A conditional is added to the graph that `parent` captures, and `stream` begins to capture its body
  /// (cudaGraphAddNode, cudaStreamBeginCaptureToGraph). kBusy if `stream` captures, kInvalidArgument if
  /// `parent` does not, kCaptureInvalidated.
  Status begin_body(const Stream& stream, const Stream& parent);
  Status end_body(const Stream& stream);
  /// Enqueues the graph as one entry that touches everything its kernels touch, of its bodies those that
  /// run. The touches have no tag: the detector watches those of a GraphGroup and ignores the others, but
  /// bytes that are not mapped are reported.
  Status launch_graph(const Stream& stream, GraphId graph, BodyRuns runs = BodyRuns::once());
  Status destroy_graph(GraphId graph);
  /// What the graph's kernels touch, with the tags that they named.
  CapturedGraph graph_contents(GraphId graph) const;

 protected:
  /// `machine` must outlive this.
  explicit SimCaller(Machine& machine) : machine_(machine) {}
  ~SimCaller() = default;

 private:
  Machine& machine_;
};

}  // namespace ashlar::spec
