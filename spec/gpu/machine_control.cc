// The machine's side of what only a test may do: memory words, captures, planned failures, the
// ledger.
#include "spec/gpu/machine.h"

#include <algorithm>
#include <tuple>

namespace ashlar::spec {

Status Machine::write_value(const Stream& stream, Address at, std::uint64_t value) {
  const Status queued =
      enqueue(stream, Entry{EntryKind::kWriteValue, {}, 0, 0, 0, at.value(), value});
  if (!queued.is_ok()) return queued;
  const Result<std::uint32_t> lane =
      resolve(static_cast<std::uint32_t>(stream.device.value()), stream.handle);
  for (WordClock& word : word_clocks_) {
    if (word.at != at) continue;
    word.clock = clocks_.clock(lane.value());
    return queued;
  }
  word_clocks_.push_back(WordClock{at, clocks_.clock(lane.value())});
  return queued;
}

Status Machine::wait_value(const Stream& stream, Address at, std::uint64_t value, WaitRule rule) {
  const Status queued =
      enqueue(stream, Entry{EntryKind::kWaitValue, rule, 0, 0, 0, at.value(), value});
  if (!queued.is_ok()) return queued;
  const Result<std::uint32_t> lane =
      resolve(static_cast<std::uint32_t>(stream.device.value()), stream.handle);
  for (const WordClock& word : word_clocks_) {
    if (word.at == at) clocks_.join(lane.value(), word.clock, kEdgeMemoryValue);
  }
  return queued;
}

Status Machine::begin_capture(const Stream& stream, device::CaptureMode mode) {
  const auto device = static_cast<std::uint32_t>(stream.device.value());
  const Status alive = check_alive(device);
  if (!alive.is_ok()) return alive;
  const Result<std::uint32_t> lane = resolve(device, stream.handle);
  if (!lane.is_ok()) return lane.status();
  ASHLAR_REQUIRE(lane.value() + 1 != defaults_[device].legacy, Code::kCaptureUnsafe,
                 "the legacy default stream cannot capture (cudaErrorStreamCaptureUnsupported)");
  return captures_.begin(lane.value(), thread(), mode);
}

Result<GraphId> Machine::end_capture(const Stream& stream) {
  const auto device = static_cast<std::uint32_t>(stream.device.value());
  const Status alive = check_alive(device);
  const Result<std::uint32_t> lane = resolve(device, stream.handle);
  if (!alive.is_ok()) {
    // Nothing can come of it any more, and it must not stand in the way of the other devices.
    if (lane.is_ok()) captures_.abandon(lane.value());
    return alive;
  }
  if (!lane.is_ok()) return lane.status();
  Graph graph;
  const Status ended = captures_.end(lane.value(), thread(), graph.touches);
  if (!ended.is_ok()) return ended;
  graph.alive = true;
  for (Touch& touch : graph.touches) touch.tag = kNoTag;
  graphs_.push_back(std::move(graph));
  return GraphId{static_cast<std::uint32_t>(graphs_.size())};
}

Status Machine::launch_graph(const Stream& stream, GraphId graph) {
  const std::uint32_t number = graph.value();
  ASHLAR_REQUIRE(number > 0 && number <= graphs_.size() && graphs_[number - 1].alive,
                 Code::kInvalidHandle, "no such graph");
  return enqueue(stream, Entry{EntryKind::kKernel}, graphs_[number - 1].touches);
}

Status Machine::destroy_graph(GraphId graph) {
  const std::uint32_t number = graph.value();
  ASHLAR_REQUIRE(number > 0 && number <= graphs_.size() && graphs_[number - 1].alive,
                 Code::kInvalidHandle, "no such graph");
  graphs_[number - 1] = Graph{};
  return Status::ok();
}

void Machine::fail(device::CallKind kind, std::uint64_t n, FailMode mode, Code code) {
  plans_.push_back(Plan{kind, std::max<std::uint64_t>(n, 1), mode, code});
}

// The ledger.

bool Machine::leak_check(bool streams) {
  bool clean = true;
  for (std::uint32_t device = 0; device < devices_.size(); ++device) {
    if (scheduler_.is_lost(device)) continue;
    for (unsigned i = 0; i < kHeldKinds; ++i) {
      const auto kind = static_cast<HeldKind>(i);
      const HeldCount& count = memory_.ledger(device).of(kind);
      if (count.count == 0 || (kind == HeldKind::kStream && !streams)) continue;
      clean = false;
      faults_.report(FaultKind::kLeak,
                     kind == HeldKind::kStream ? Blame::kCaller : Blame::kAllocator, "C14: device ",
                     device, " still holds ", count.count, " ", held_name(kind), "s, ",
                     count.bytes.count(), " bytes");
    }
  }
  return clean;
}

std::vector<HeldHandle> Machine::held() const {
  std::vector<HeldHandle> all;
  memory_.for_each_held([&](const HeldHandle& handle) { all.push_back(handle); });
  events_.for_each([&](std::uint64_t value, const EventState& event) {
    all.push_back(HeldHandle{HeldKind::kEvent, DeviceId{static_cast<std::int32_t>(event.device)},
                             value, Bytes{0}});
  });
  streams_.for_each([&](std::uint64_t value, std::uint32_t lane) {
    const std::uint32_t device = lane_info_[lane].device;
    all.push_back(HeldHandle{HeldKind::kStream, DeviceId{static_cast<std::int32_t>(device)}, value,
                             Bytes{0}});
  });
  std::sort(all.begin(), all.end(), [](const HeldHandle& a, const HeldHandle& b) {
    return std::tie(a.kind, a.value) < std::tie(b.kind, b.value);
  });
  return all;
}

}  // namespace ashlar::spec
