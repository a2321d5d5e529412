#include <ashlar/replay/recording.h>

#include <ashlar/base/checked.h>

namespace ashlar::inline v0::replay {

Status check_recording(const Recording& recording) {
  ASHLAR_REQUIRE(recording.allocations.size() <= plan::kBuffersMax, Code::kSizeOverflow,
                 "over 2^28 allocations");
  const auto most = static_cast<plan::Time>(2 * recording.allocations.size());
  ASHLAR_REQUIRE(recording.events >= 0 && recording.events <= most, Code::kInvalidArgument,
                 "more events than allocations can have");
  std::vector<bool> is_taken(static_cast<std::size_t>(recording.events));
  plan::Time events = 0;
  const auto take = [&](plan::Time event) {
    if (event < 0 || event >= recording.events || is_taken[static_cast<std::size_t>(event)])
      return false;
    ++events;
    return static_cast<bool>(is_taken[static_cast<std::size_t>(event)] = true);
  };
  plan::Time before = -1;
  Bytes total;
  for (const RecordedAllocation& allocation : recording.allocations) {
    ASHLAR_REQUIRE(allocation.size != Bytes{}, Code::kInvalidArgument, "an allocation of no bytes");
    ASHLAR_REQUIRE(allocation.allocated > before, Code::kInvalidArgument,
                   "allocations out of order");
    before = allocation.allocated;
    ASHLAR_REQUIRE(take(allocation.allocated), Code::kInvalidArgument,
                   "an event taken twice or past the end");
    // As check_problem() counts it, each may waste up to its alignment.
    ASHLAR_REQUIRE(allocation.size < plan::kPlanBytesMax - total, Code::kSizeOverflow,
                   "sizes add up to over 2^62");
    total += allocation.size;
    ASHLAR_REQUIRE(kReplayAlignmentMax < plan::kPlanBytesMax - total, Code::kSizeOverflow,
                   "sizes add up to over 2^62");
    total += kReplayAlignmentMax;
    if (allocation.freed == kNeverFreed) continue;
    ASHLAR_REQUIRE(allocation.freed > allocation.allocated, Code::kInvalidArgument,
                   "a free before its allocation");
    ASHLAR_REQUIRE(take(allocation.freed), Code::kInvalidArgument,
                   "an event taken twice or past the end");
  }
  ASHLAR_REQUIRE(events == recording.events, Code::kInvalidArgument, "an event is missing");
  return Status::ok();
}

std::vector<RecordedEvent> events_of(const Recording& recording) {
  std::vector<RecordedEvent> events(static_cast<std::size_t>(recording.events));
  for (std::uint32_t a = 0; a < recording.allocations.size(); ++a) {
    const RecordedAllocation& allocation = recording.allocations[a];
    events[static_cast<std::size_t>(allocation.allocated)] = {a, false};
    if (allocation.freed != kNeverFreed)
      events[static_cast<std::size_t>(allocation.freed)] = {a, true};
  }
  return events;
}

plan::Problem problem_of(const Recording& recording, Bytes alignment) {
  ASHLAR_ASSERT(is_power_of_two(alignment.count()) && alignment <= kReplayAlignmentMax,
                "plan: the alignment of a replay");
  plan::Problem problem;
  for (const RecordedAllocation& allocation : recording.allocations) {
    if (!allocation.is_managed()) continue;
    plan::Buffer buffer;
    buffer.life = {allocation.allocated, allocation.freed};
    buffer.size = allocation.size;
    buffer.alignment = alignment;
    problem.buffers.push_back(buffer);
  }
  return problem;
}

}  // namespace ashlar::inline v0::replay
