// The timing pass of a trace run: times the allocator alone, on a device that costs nothing.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include <ashlar/cache/caching_allocator.h>
#include <ashlar/cache/caching_upstream.h>
#include <ashlar/replay/replay.h>

#include "src/tool/null_device.h"
#include "src/tool/progress.h"
#include "src/tool/trace_run.h"

namespace ashlar::tool {
namespace {

constexpr std::uint32_t kPassesMin = 5;
constexpr std::uint32_t kPassesMax = 101;
constexpr double kEnoughNs = 200e6;  // a short trace gets more passes, until they take this long

// One event, prepared so that no id has to be looked up; marks are left out.
struct Step {
  Bytes size;  // of an allocation
  std::uint32_t slot;
  std::uint32_t stream;  // for a free: that of its allocation
  bool is_free;
};

std::vector<Step> steps_of(const Trace& trace) {
  std::vector<Step> steps;
  std::vector<std::uint32_t> stream_of(trace.allocations);
  steps.reserve(trace.events.size());
  for (const TraceEvent& event : trace.events) {
    if (event.kind == TraceEvent::Kind::kMark) continue;
    const bool is_free = event.kind == TraceEvent::Kind::kFree;
    if (!is_free) stream_of[event.slot] = event.stream;
    steps.push_back({event.size, event.slot, stream_of[event.slot], is_free});
  }
  return steps;
}

// Allocates by the allocator itself.
class Direct {
 public:
  Direct(cache::CachingAllocator& allocator, const std::vector<Stream>& streams)
      : allocator_(allocator), streams_(streams) {}
  Result<Address> allocate(Bytes size, std::uint32_t stream) {
    return allocator_.allocate(size, streams_[stream]);
  }
  Status free(Address address, std::uint32_t) { return allocator_.free(address); }
  Status rewind() { return Status::ok(); }

 private:
  cache::CachingAllocator& allocator_;
  const std::vector<Stream>& streams_;
};

// Allocates by a replay of the plan for each recorded stream.
class Planned {
 public:
  Planned(cache::CachingAllocator& allocator, const std::vector<Stream>& streams,
          const PlannedTrace& planned, const Trace& trace)
      : upstream_(allocator), streams_(streams) {
    for (std::size_t s = 0; s < planned.plans.size(); ++s) {
      // A recorded stream that the trace does not have gets a replay that is never called.
      const auto index = std::find(trace.streams.begin(), trace.streams.end(), planned.streams[s]);
      const Stream stream = index == trace.streams.end()
                                ? Stream{}
                                : streams[static_cast<std::size_t>(index - trace.streams.begin())];
      auto made =
          replay::Replay::create(upstream_, stream, planned.recordings[s], planned.plans[s]);
      if (!made.is_ok() ||
          (made.value()->base().is_null() && planned.plans[s].spaces[0].peak != Bytes{}))
        return;
      replays_.push_back(std::move(made).value());
    }
    for (std::uint32_t s = 0; s < trace.streams.size(); ++s) {
      const std::size_t which = planned.stream_of(trace, s);
      if (!replays_.empty()) lanes_.push_back(replays_[which < replays_.size() ? which : 0].get());
    }
  }
  /// Whether every stream of the trace has a replay.
  bool is_made() const { return lanes_.size() == streams_.size(); }
  Result<Address> allocate(Bytes size, std::uint32_t stream) {
    return lanes_[stream]->allocate(size, streams_[stream]);
  }
  Status free(Address address, std::uint32_t stream) { return lanes_[stream]->free(address); }
  Status rewind() {
    Status first;
    for (const auto& replay : replays_) {
      const Status status = replay->rewind();
      if (first.is_ok()) first = status;
    }
    return first;
  }

 private:
  cache::CachingUpstream upstream_;
  const std::vector<Stream>& streams_;
  std::vector<std::unique_ptr<replay::Replay>> replays_;
  std::vector<replay::Replay*> lanes_;  // by the trace's stream
};

/// How long a pass over the trace takes, in ns. Nothing if a call failed: a refused request is not
/// timed.
template <class Subject>
std::optional<double> timed_pass(const std::vector<Step>& steps, Subject& subject,
                                 std::vector<Address>& addresses) {
  bool has_failed = false;
  const auto start = std::chrono::steady_clock::now();
  for (const Step& step : steps) {
    if (step.is_free) {
      has_failed |= !subject.free(addresses[step.slot], step.stream).is_ok();
    } else {
      const Result<Address> got = subject.allocate(step.size, step.stream);
      has_failed |= !got.is_ok();
      addresses[step.slot] = got.value_or(Address{});
    }
  }
  has_failed |= !subject.rewind().is_ok();
  const auto end = std::chrono::steady_clock::now();
  if (has_failed) return std::nullopt;
  return std::chrono::duration<double, std::nano>(end - start).count();
}

template <class Subject>
Timing time(const Trace& trace, const std::vector<Step>& steps, Subject& subject) {
  std::vector<const Step*> left_live(trace.allocations);  // by slot; null: the trace frees it
  for (const Step& step : steps) left_live[step.slot] = step.is_free ? nullptr : &step;
  std::vector<Address> addresses(trace.allocations);
  const auto free_the_rest = [&] {
    for (const Step* step : left_live) {
      if (step != nullptr) static_cast<void>(subject.free(addresses[step->slot], step->stream));
    }
  };
  timed_pass(steps, subject, addresses);  // a warm-up
  free_the_rest();
  std::vector<double> passes;
  double total = 0;
  while (passes.size() < kPassesMin || (total < kEnoughNs && passes.size() < kPassesMax)) {
    const std::optional<double> ns = timed_pass(steps, subject, addresses);
    if (!ns) return {};
    passes.push_back(*ns);
    total += *ns;
    free_the_rest();
  }
  const auto middle = passes.begin() + static_cast<std::ptrdiff_t>(passes.size() / 2);
  std::nth_element(passes.begin(), middle, passes.end());
  return {*middle / static_cast<double>(steps.size()), static_cast<std::uint32_t>(passes.size())};
}

}  // namespace

Timing timing_pass(const Trace& trace, const cache::Config& config, const PlannedTrace* planned) {
  NullDevice null;
  device::Device* const device = &null;
  auto allocator =
      cache::CachingAllocator::create(std::span<device::Device* const>(&device, 1), config);
  const std::vector<Step> steps = steps_of(trace);
  if (!allocator.is_ok() || steps.empty() || (planned != nullptr && !planned->trouble.empty()))
    return {};
  std::vector<Stream> streams;
  streams.reserve(trace.streams.size());
  for (std::size_t i = 0; i < trace.streams.size(); ++i) streams.push_back(null.stream(i));
  const Progress progress("timing " + trace.name);
  if (planned != nullptr) {
    Planned subject(*allocator.value(), streams, *planned, trace);
    return subject.is_made() ? time(trace, steps, subject) : Timing{};
  }
  Direct subject(*allocator.value(), streams);
  return time(trace, steps, subject);
}

}  // namespace ashlar::tool
