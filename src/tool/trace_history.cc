#include "src/tool/trace_history.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ashlar/cache/caching_allocator.h>
#include <ashlar/cache/history_calls.h>

#include "src/tool/null_device.h"

namespace ashlar::tool {
namespace {

using cache::HistoryAction;
using cache::HistoryEvent;

constexpr DeviceId kDevice{0};
constexpr const char* kNoAddresses = "its allocations do not fit in 2^53 bytes of addresses";

/// Says the call stack of the event that is run.
class StackOfEvent final : public cache::ContextRecorder {
 public:
  cache::ContextId gather() noexcept override { return cache::ContextId{stack}; }

  std::uint32_t stack = 0;
};

/// Runs a trace and records it.
class Recording {
 public:
  explicit Recording(const Trace& trace) : trace_(trace), address_of_(trace.allocations) {
    device::Device* devices[] = {&device_};
    cache::Config config;
    config.backing = cache::Backing::kSegments;
    allocator_ = cache::CachingAllocator::create(devices, config).value();
  }

  /// nullptr, or why it failed.
  const char* run() {
    cache::HistoryOptions options;
    // Of each event at most a segment's way to another stream and the memory for it, and a free is two.
    options.events_max = 4 * std::uint64_t{trace_.events.size()} + 1;
    if (trace_.stacks.size() != 0) {
      options.recorder = &stacks_;
      options.has_free_contexts = true;
      options.live_contexts_max = trace_.allocations;
    }
    if (const Status on = start_history(*allocator_, kDevice, options); !on.is_ok())
      return on.why();
    for (const TraceEvent& event : trace_.events) {
      Status status;
      stacks_.stack = event.stack;
      switch (event.kind) {
        case TraceEvent::Kind::kAllocate: status = allocate(event); break;
        case TraceEvent::Kind::kFree: status = allocator_->free(address_of_[event.slot]); break;
        case TraceEvent::Kind::kMark:
          status = annotate(*allocator_, kDevice, trace_.marks[event.slot]);
          break;
      }
      if (!status.is_ok()) return status.why();
    }
    if (const Status taken = history_snapshot(*allocator_, kDevice, &made_); !taken.is_ok())
      return taken.why();
    return is_within_addresses() ? nullptr : kNoAddresses;
  }

  cache::HistorySnapshot result() {
    name_as_traced();
    return std::move(made_);
  }

 private:
  Status allocate(const TraceEvent& event) {
    const auto got = allocator_->allocate(std::max(event.size, 1_B), device_.stream(event.stream));
    if (!got.is_ok()) return got.status();
    ASHLAR_REQUIRE(got.value().value() < kMadeAddressMax, Code::kOutOfAddresses, kNoAddresses);
    address_of_[event.slot] = got.value();
    return Status::ok();
  }

  bool is_within_addresses() const {
    const auto& segments = made_.snapshot.segments;
    return segments.empty() ||
           segments.back().base.value() + segments.back().size.count() <= kMadeAddressMax;
  }

  StreamId traced(StreamId of) const {
    const std::uint64_t index = of.value() - 1;  // NullDevice::stream(); without a stream it wraps
    return index < trace_.streams.size() ? StreamId{trace_.streams[index]} : of;
  }

  /// Streams as the trace has them, sizes of zero, and times that count the events.
  void name_as_traced() {
    std::vector<Bytes> sizes;
    for (const TraceEvent& event : trace_.events) {
      if (event.kind == TraceEvent::Kind::kAllocate) sizes.push_back(event.size);
    }
    std::unordered_map<Address, Bytes> asked;
    std::size_t next = 0;
    for (HistoryEvent& event : made_.history.events) {
      event.time_us = event.sequence;
      event.stream = traced(event.stream);
      if (event.action == HistoryAction::kAllocate) asked[event.address] = sizes[next++];
      if (event.action <= HistoryAction::kFreeCompleted) event.size = asked[event.address];
    }
    for (cache::SnapshotSegment& segment : made_.snapshot.segments)
      segment.stream = traced(segment.stream);
    for (cache::SnapshotBlock& block : made_.snapshot.blocks) {
      block.stream = traced(block.stream);
      if (block.state == BlockState::kLive) block.requested = asked[block.address];
    }
  }

  const Trace& trace_;
  std::vector<Address> address_of_;  // by slot
  NullDevice device_;
  StackOfEvent stacks_;
  std::unique_ptr<cache::CachingAllocator> allocator_;
  cache::HistorySnapshot made_;
};

}  // namespace

std::optional<cache::HistorySnapshot> history_of(const Trace& trace, std::string* error) {
  Recording recording(trace);
  if (const char* const why = recording.run()) {
    *error = why;
    return std::nullopt;
  }
  return recording.result();
}

}  // namespace ashlar::tool
