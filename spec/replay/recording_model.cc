#include "spec/replay/recording_model.h"

#include <algorithm>

namespace ashlar::spec {
namespace {

using Kind = replay::Difference::Kind;

// What happens at an event of a recording, found by a scan of the whole recording.
struct Happening {
  enum class What : std::uint8_t { kNothing, kAllocation, kFree };
  What what = What::kNothing;
  std::uint32_t allocation = 0;
};

Happening at(const replay::Recording& recording, plan::Time event) {
  for (std::uint32_t a = 0; a < recording.allocations.size(); ++a) {
    if (recording.allocations[a].allocated == event) return {Happening::What::kAllocation, a};
    if (recording.allocations[a].freed == event) return {Happening::What::kFree, a};
  }
  return {};
}

Bytes size_of(const replay::Recording& recording, std::uint32_t allocation) {
  return allocation < recording.allocations.size() ? recording.allocations[allocation].size : 0_B;
}

}  // namespace

replay::Recording recording_of(const std::vector<RunEvent>& run) {
  replay::Recording recording;
  std::vector<std::uint64_t> names;  // by allocation
  for (const RunEvent& event : run) {
    if (event.kind == RunEvent::Kind::kAllocate) {
      recording.allocations.push_back({event.size, recording.events++, replay::kNeverFreed, false});
      names.push_back(event.name);
      continue;
    }
    const auto name = std::find(names.begin(), names.end(), event.name);
    if (name == names.end()) continue;
    replay::RecordedAllocation& allocation =
        recording.allocations[static_cast<std::size_t>(name - names.begin())];
    if (event.kind == RunEvent::Kind::kUseElsewhere) {
      allocation.is_used_elsewhere = true;
    } else {
      allocation.freed = recording.events++;
    }
  }
  return recording;
}

std::optional<replay::Difference> difference_of(const replay::Recording& recorded,
                                                const replay::Recording& run) {
  using What = Happening::What;
  const auto say = [&](Kind kind, std::uint32_t a, plan::Time e) {
    return replay::Difference{kind, a, e, size_of(recorded, a), size_of(run, a)};
  };
  for (plan::Time e = 0; e < std::max(recorded.events, run.events); ++e) {
    const Happening then = at(recorded, e);
    const Happening now = at(run, e);
    if (now.what == What::kFree && then.what == What::kFree && now.allocation == then.allocation)
      continue;
    if (now.what == What::kFree) return say(Kind::kFreedEarly, now.allocation, e);
    if (then.what == What::kFree) return say(Kind::kFreedLate, then.allocation, e);
    if (then.what == What::kNothing) return say(Kind::kExtraAllocation, now.allocation, e);
    if (now.what == What::kNothing) return say(Kind::kMissingAllocation, then.allocation, e);
    // Both allocate; all events before agree, so it is the same allocation.
    if (size_of(recorded, then.allocation) != size_of(run, now.allocation))
      return say(Kind::kSize, now.allocation, e);
  }
  for (std::uint32_t a = 0; a < run.allocations.size(); ++a) {
    if (recorded.allocations[a].is_used_elsewhere == run.allocations[a].is_used_elsewhere) continue;
    return say(Kind::kUsedElsewhere, a, run.allocations[a].allocated);
  }
  return std::nullopt;
}

}  // namespace ashlar::spec
