#include "src/tool/alter.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include <ashlar/base/mix.h>
#include <ashlar/plan/problem.h>

#include "spec/ops/random.h"

namespace ashlar::tool {
namespace {

using Kind = TraceEvent::Kind;

constexpr std::uint64_t kFar = 64;  // the maximum number of events by which a free is moved
constexpr Bytes kAnySizeMax = 64_MiB;

class Alteration {
 public:
  Alteration(const Trace& trace, double fraction, std::uint64_t seed)
      : trace_(trace),
        random_(seed),
        chance_(static_cast<std::uint64_t>(fraction * static_cast<double>(kUnit))) {
    for (const TraceEvent& event : trace.events) {
      if (event.kind == Kind::kAllocate) sizes_.push_back(event.size);
    }
    is_dropped_.resize(trace.allocations);
    allocated_at_.resize(trace.allocations);
  }

  AlteredTrace run() {
    for (std::size_t i = 0; i < trace_.events.size(); ++i) {
      TraceEvent event = trace_.events[i];
      if (event.kind == Kind::kMark) continue;
      std::uint64_t key = kStride * (i + 1);
      const bool is_altered = random_.below(kUnit) < chance_;
      altered_ += is_altered;
      const bool stays = event.kind == Kind::kAllocate ? allocation(&event, key, is_altered)
                                                       : free(event, &key, is_altered);
      if (stays) events_.push_back({key, events_.size(), event});
    }
    std::sort(events_.begin(), events_.end(), [](const Keyed& a, const Keyed& b) {
      return a.key != b.key ? a.key < b.key : a.number < b.number;
    });
    return {build(), altered_};
  }

 private:
  // An event and its place in the order. Original events are kStride apart.
  struct Keyed {
    std::uint64_t key;
    std::size_t number;  // orders equal keys
    TraceEvent event;
  };
  static constexpr std::uint64_t kStride = 4;
  static constexpr std::uint64_t kUnit = std::uint64_t{1} << 53;

  Bytes other_size() {
    return random_.one_in(2) ? sizes_[random_.below(sizes_.size())]
                             : Bytes{1 + random_.below(kAnySizeMax.count())};
  }

  bool allocation(TraceEvent* event, std::uint64_t key, bool is_altered) {
    allocated_at_[event->slot] = key;
    if (!is_altered) return true;
    switch (random_.below(4)) {
      case 0: event->size = other_size(); return true;
      case 1: event->stream = static_cast<std::uint32_t>(trace_.streams.size()); return true;
      case 2: is_dropped_[event->slot] = true; return false;
      default: put_in(event->stream, key); return true;
    }
  }

  void put_in(std::uint32_t stream, std::uint64_t key) {
    TraceEvent event;
    event.kind = Kind::kAllocate;
    event.slot = trace_.allocations + put_in_++;
    event.stream = stream;
    event.size = other_size();
    events_.push_back({key - 2, events_.size(), event});
    event.kind = Kind::kFree;
    events_.push_back({key + kStride * random_.below(kFar) + 1, events_.size(), event});
  }

  bool free(const TraceEvent& event, std::uint64_t* key, bool is_altered) {
    if (is_dropped_[event.slot]) return false;
    if (!is_altered) return true;
    const std::uint64_t far = kStride * (1 + random_.below(kFar));
    switch (random_.below(3)) {
      case 0: *key += far + 1; return true;
      case 1:
        *key = std::max(allocated_at_[event.slot] + 1, *key - std::min(*key, far));
        return true;
      default: return false;
    }
  }

  Trace build() {
    TraceBuilder builder(trace_.name);
    std::vector<std::optional<std::uint32_t>> slot(trace_.allocations + put_in_);
    // The number of a stream that is not in the trace.
    std::uint64_t other_stream = 0;
    while (std::find(trace_.streams.begin(), trace_.streams.end(), other_stream) !=
           trace_.streams.end())
      ++other_stream;
    for (const Keyed& keyed : events_) {
      const TraceEvent& event = keyed.event;
      if (event.kind == Kind::kFree) {
        if (slot[event.slot]) builder.free(*slot[event.slot]);
        continue;
      }
      const bool is_other_stream = event.stream == trace_.streams.size();
      slot[event.slot] = builder.allocate(
          event.size, is_other_stream ? other_stream : trace_.streams[event.stream]);
    }
    return closed(builder.trace());
  }

  const Trace& trace_;
  spec::Random random_;
  const std::uint64_t chance_;
  std::vector<Bytes> sizes_;
  std::vector<bool> is_dropped_;             // by slot
  std::vector<std::uint64_t> allocated_at_;  // key by slot
  std::vector<Keyed> events_;
  std::uint32_t put_in_ = 0;
  std::uint64_t altered_ = 0;
};

}  // namespace

Trace closed(const Trace& trace) {
  Trace result = trace;
  std::vector<bool> is_live(trace.allocations, true);
  for (const TraceEvent& event : trace.events) {
    if (event.kind == Kind::kFree) is_live[event.slot] = false;
  }
  for (const TraceEvent& event : trace.events) {
    if (event.kind != Kind::kAllocate || !is_live[event.slot]) continue;
    TraceEvent free = event;
    free.kind = Kind::kFree;
    result.events.push_back(free);
    ++result.frees;
  }
  return result;
}

Trace perturbed(const Trace& trace, Perturb what, std::uint64_t seed) {
  constexpr std::uint64_t kWhole = 1'000'000;
  Trace result = trace;
  if (trace.peak_live > plan::kPlanBytesMax) return result;
  result.peak_live = Bytes{};
  result.stated_peak_live = std::nullopt;
  std::vector<Bytes> size_of(trace.allocations);
  Bytes live;
  for (TraceEvent& event : result.events) {
    if (event.kind == Kind::kFree) live -= size_of[event.slot];
    if (event.kind != Kind::kAllocate) continue;
    const std::uint64_t size = event.size.count();
    if (event.size > kPerturbedAbove) {
      const std::uint64_t key = what == Perturb::kSizes ? size : event.slot;
      const std::uint64_t factor = kWhole * 9 / 10 + mix(mix(seed) + key) % (kWhole / 5 + 1);
      const std::uint64_t changed = size / kWhole * factor + size % kWhole * factor / kWhole;
      event.size = std::min(Bytes{changed}, kTraceAllocationMax);
    }
    size_of[event.slot] = event.size;
    live += event.size;
    result.peak_live = std::max(result.peak_live, live);
  }
  return result;
}

AlteredTrace alter(const Trace& trace, double fraction, std::uint64_t seed) {
  return Alteration(trace, fraction, seed).run();
}

}  // namespace ashlar::tool
