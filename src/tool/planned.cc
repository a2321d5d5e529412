#include "src/tool/planned.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include <ashlar/cache/caching_upstream.h>
#include <ashlar/plan/planner.h>
#include <ashlar/replay/recorder.h>
#include <ashlar/replay/validation.h>

#include "props/adapters/replay_subject.h"
#include "src/tool/null_device.h"
#include "src/tool/progress.h"

namespace ashlar::tool {
namespace {

struct Recorded {
  std::vector<replay::Recording> recordings;  // by stream
  std::string trouble;
};

Recorded record(const Trace& trace) {
  NullDevice null;
  device::Device* const device = &null;
  const auto allocator = cache::CachingAllocator::create(
      std::span<device::Device* const>(&device, 1), cache::Config{});
  Recorded result;
  if (!allocator.is_ok()) return {{}, allocator.status().why()};
  cache::CachingUpstream upstream(*allocator.value());
  std::vector<std::unique_ptr<replay::Recorder>> recorders;
  recorders.reserve(trace.streams.size());
  for (std::size_t s = 0; s < trace.streams.size(); ++s) {
    recorders.push_back(std::make_unique<replay::Recorder>(upstream, null.stream(s)));
  }
  std::vector<std::pair<std::uint32_t, Address>> held(trace.allocations);
  for (const TraceEvent& event : trace.events) {
    if (event.kind == TraceEvent::Kind::kAllocate) {
      const Result<Address> address =
          recorders[event.stream]->allocate(event.size, null.stream(event.stream));
      if (!address.is_ok()) return {{}, address.status().why()};
      held[event.slot] = {event.stream, address.value()};
    } else if (event.kind == TraceEvent::Kind::kFree) {
      static_cast<void>(recorders[held[event.slot].first]->free(held[event.slot].second));
    }
  }
  for (const auto& recorder : recorders) {
    Result<replay::Recording> taken = recorder->take();
    if (!taken.is_ok()) return {{}, taken.status().why()};
    result.recordings.push_back(std::move(taken).value());
  }
  return result;
}

class PlainFront final : public Front {
 public:
  explicit PlainFront(cache::CachingAllocator& allocator) : allocator_(allocator) {}
  Result<Address> allocate(std::uint32_t, Bytes size, const Stream& stream,
                           cache::OutOfMemory* why) override {
    return allocator_.allocate(size, stream, why);
  }
  Status free(std::uint32_t, Address address) override { return allocator_.free(address); }
  PlannedFigures finish() override { return {}; }

 private:
  cache::CachingAllocator& allocator_;
};

void add(replay::ReplayCounts* to, const replay::ReplayCounts& more) {
  for (const replay::ReplayCounter& counter : replay::kReplayCounters)
    to->*counter.count += more.*counter.count;
}

/// Has one replay for each recorded stream, made at the stream's first allocation.
class PlannedFront final : public Front {
 public:
  PlannedFront(cache::CachingAllocator& allocator, const PlannedTrace& planned, const Trace& trace,
               World& world, bool check)
      : upstream_(allocator),
        planned_(planned),
        trace_(trace),
        world_(world),
        check_(check),
        lanes_(planned.plans.size()) {}

  Result<Address> allocate(std::uint32_t index, Bytes size, const Stream& stream,
                           cache::OutOfMemory*) override {
    Lane& lane = lane_of(index);
    if (!lane.is_made) make(&lane);
    if (lane.lockstep != nullptr) return ++figures_.steps, lane.lockstep->allocate(size, stream);
    return lane.replay == nullptr ? upstream_.allocate(size, stream)
                                  : lane.replay->allocate(size, stream);
  }

  Status free(std::uint32_t index, Address address) override {
    const Lane& lane = lane_of(index);
    if (lane.lockstep != nullptr) return ++figures_.steps, lane.lockstep->free(address);
    return lane.replay == nullptr ? upstream_.free(address) : lane.replay->free(address);
  }

  PlannedFigures finish() override {
    for (Lane& lane : lanes_) {
      if (lane.replay != nullptr) add(&figures_.counts, lane.replay->counts());
      lane.replay.reset();
      if (lane.lockstep == nullptr) continue;
      add(&figures_.counts, lane.lockstep->counts());
      lane.lockstep->finish();
      const spec::Divergence& found = lane.lockstep->verdict().first();
      if (found && figures_.first_divergence.empty())
        figures_.first_divergence = fmt::format("{}: {}", found.clause, found.text);
    }
    return figures_;
  }

 private:
  struct Lane {
    bool is_made = false;
    std::unique_ptr<replay::Replay> replay;
    std::unique_ptr<spec::ReplayLockstep> lockstep;
  };

  Lane& lane_of(std::uint32_t index) {
    const std::size_t stream = planned_.stream_of(trace_, index);
    return lanes_[stream < lanes_.size() ? stream : 0];
  }

  void make(Lane* lane) {
    lane->is_made = true;
    const auto which = static_cast<std::size_t>(lane - lanes_.data());
    const auto index =
        std::find(trace_.streams.begin(), trace_.streams.end(), planned_.streams[which]);
    if (index == trace_.streams.end()) return;  // only streams that were not recorded use it
    const Result<Stream> made_stream =
        world_.stream(static_cast<std::uint32_t>(index - trace_.streams.begin()));
    if (!made_stream.is_ok()) return;
    const Stream stream = made_stream.value();
    if (check_) {
      lane->lockstep = std::make_unique<spec::ReplayLockstep>(
          upstream_,
          spec::ReplayLockstep::Setting{stream, planned_.recordings[which], planned_.plans[which]},
          props::replay_factory());
      return;
    }
    auto made = replay::Replay::create(upstream_, stream, planned_.recordings[which],
                                       planned_.plans[which]);
    if (made.is_ok()) {
      lane->replay = std::move(made).value();
    } else if (figures_.first_divergence.empty()) {
      figures_.first_divergence = made.status().why();
    }
  }

  cache::CachingUpstream upstream_;
  const PlannedTrace& planned_;
  const Trace& trace_;
  World& world_;
  const bool check_;
  std::vector<Lane> lanes_;  // by recorded stream
  PlannedFigures figures_;
};

}  // namespace

Bytes PlannedTrace::peak() const {
  Bytes sum;
  for (const plan::Plan& plan : plans) sum += plan.spaces[0].peak;
  return sum;
}

Bytes PlannedTrace::lower_bound() const {
  Bytes sum;
  for (const plan::Plan& plan : plans) sum += plan.spaces[0].lower_bound;
  return sum;
}

std::uint64_t PlannedTrace::managed() const {
  std::uint64_t sum = 0;
  for (const plan::Plan& plan : plans) sum += plan.offsets.size();
  return sum;
}

std::size_t PlannedTrace::stream_of(const Trace& trace, std::uint32_t stream) const {
  const auto found = std::find(streams.begin(), streams.end(), trace.streams[stream]);
  return static_cast<std::size_t>(found - streams.begin());
}

namespace {

PlannedTrace recorded_trace(const Trace& trace) {
  Recorded recorded = record(trace);
  PlannedTrace planned;
  planned.streams = trace.streams;
  planned.recordings = std::move(recorded.recordings);
  planned.trouble = std::move(recorded.trouble);
  return planned;
}

}  // namespace

PlannedTrace plan_trace(const Trace& trace, const PlanLimits& limits) {
  using Clock = std::chrono::steady_clock;
  PlannedTrace planned = recorded_trace(trace);
  plan::PlanOptions options = options_of(limits, {std::nullopt, kReplayWorkDefault});
  const Progress progress("planning " + trace.name);
  const auto start = Clock::now();
  const auto deadline = start + options.time_limit.value_or(Clock::duration{});
  for (std::size_t s = 0; s < planned.recordings.size(); ++s) {
    if (options.time_limit) {  // an equal share of the time that is left
      options.time_limit = std::max(deadline - Clock::now(), Clock::duration{}) /
                           static_cast<std::int64_t>(planned.recordings.size() - s);
    }
    planned.plans.push_back(plan::make_plan(replay::problem_of(planned.recordings[s]), options));
  }
  planned.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return planned;
}

PlannedTrace with_plan(const Trace& trace, const plan::Plan& plan) {
  PlannedTrace planned = recorded_trace(trace);
  for (const plan::SpaceAnswer& space : plan.spaces) planned.plans.push_back({{}, {space}, {}});
  planned.plans.resize(planned.recordings.size());
  std::size_t buffer = 0;
  for (const TraceEvent& event : trace.events) {
    if (event.kind != TraceEvent::Kind::kAllocate || event.size == Bytes{}) continue;
    planned.plans[event.stream].offsets.push_back(plan.offsets[buffer++]);
  }
  return planned;
}

std::string first_difference(const PlannedTrace& planned, const Trace& run) {
  const Recorded recorded = record(run);
  for (std::uint32_t s = 0; s < recorded.recordings.size(); ++s) {
    const std::size_t stream = planned.stream_of(run, s);
    if (stream == planned.streams.size()) continue;
    const auto found = replay::first_difference(planned.recordings[stream], recorded.recordings[s]);
    if (found) return fmt::format("stream {}: {}", run.streams[s], text_of(*found));
  }
  return recorded.trouble;
}

std::unique_ptr<Front> make_plain_front(cache::CachingAllocator& allocator) {
  return std::make_unique<PlainFront>(allocator);
}

std::unique_ptr<Front> make_planned_front(cache::CachingAllocator& allocator,
                                          const PlannedTrace& planned, const Trace& trace,
                                          World& world, bool check) {
  return std::make_unique<PlannedFront>(allocator, planned, trace, world, check);
}

}  // namespace ashlar::tool
