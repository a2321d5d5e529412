// What the simulated GPU's suites share: a machine, short names for its calls, and a check that
// every fault is expected.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "spec/gpu/sim_gpu.h"

namespace ashlar::spec {

inline constexpr DeviceId kFirstDevice{0};

/// Who is to blame for each fault since the last call, and its name; not of faults of the kind `but_for`.
inline std::string blames_of(SimGpu& sim, std::optional<FaultKind> but_for = std::nullopt) {
  std::string text;
  for (const Fault& fault : sim.take_faults()) {
    if (fault.kind == but_for) continue;
    text += std::string(fault.by == Blame::kAllocator ? "allocator " : "caller ") +
            fault_name(fault.kind) + "; ";
  }
  return text;
}

/// A test that fails if its machine has an unexpected fault at the end.
class SimTest : public testing::Test {
 public:
  explicit SimTest(const SimGpuOptions& options = {}) : sim(options) {}

  Stream make(StreamKind kind = StreamKind::kNonBlocking) {
    return sim.create_stream(kFirstDevice, kind).value();
  }
  Status kernel(const Stream& stream) { return sim.launch(stream, std::span<const Touch>{}); }
  Status kernel(const Stream& stream, Address at, Bytes size, AllocationTag tag = kNoTag) {
    return sim.launch(stream, Touch{at, size, Access::kReadWrite, tag});
  }
  /// A new event recorded on the stream.
  EventHandle recorded(const Stream& stream) {
    const EventHandle event = gpu.event_create().value();
    EXPECT_TRUE(gpu.event_record(event, stream.handle).is_ok());
    return event;
  }
  /// Expects exactly that one fault since the last call.
  void expect_fault(FaultKind kind, Blame by = Blame::kAllocator) {
    const std::vector<Fault> faults = sim.take_faults();
    ASSERT_EQ(faults.size(), 1u) << fault_name(kind) << " expected";
    EXPECT_EQ(fault_name(faults[0].kind), fault_name(kind)) << faults[0].text;
    EXPECT_EQ(faults[0].by, by) << faults[0].text;
  }
  void TearDown() override {
    for (const Fault& fault : sim.take_faults())
      ADD_FAILURE() << fault_name(fault.kind) << ": " << fault.text;
  }

  SimGpu sim;
  device::Device& gpu = sim.device();
};

}  // namespace ashlar::spec
