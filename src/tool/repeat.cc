#include "src/tool/repeat.h"

#include <algorithm>
#include <map>
#include <regex>
#include <utility>
#include <vector>

namespace ashlar::tool {
namespace {

/// The events of the last step: [begin, end).
struct Step {
  std::size_t begin = 0;
  std::size_t end = 0;
};

std::optional<Step> find_last_step(const Trace& trace) {
  static const std::regex begins("step [0-9]+ begin");
  static const std::regex ends("step [0-9]+ end");
  std::optional<Step> last;
  std::optional<std::size_t> begin;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    if (trace.events[i].kind != TraceEvent::Kind::kMark) continue;
    const std::string& text = trace.marks[trace.events[i].slot];
    if (std::regex_match(text, begins)) begin = i;
    if (std::regex_match(text, ends) && begin) last = Step{*begin, i};
  }
  return last;
}

/// By size and stream, slots in the order of their allocation.
using Slots = std::map<std::pair<Bytes, std::uint32_t>, std::vector<std::uint32_t>>;

/// The slot of the step that takes the place of each slot from before that the step frees; nothing if
/// they do not match.
std::optional<std::map<std::uint32_t, std::uint32_t>> match(const Trace& trace, const Step& step) {
  std::vector<std::pair<Bytes, std::uint32_t>> kind_of(trace.allocations);
  for (const TraceEvent& event : trace.events) {
    if (event.kind == TraceEvent::Kind::kAllocate) kind_of[event.slot] = {event.size, event.stream};
  }
  std::vector<bool> is_of_step(trace.allocations);
  Slots left;
  Slots freed;
  for (std::size_t i = step.begin; i < step.end; ++i) {
    const TraceEvent& event = trace.events[i];
    if (event.kind == TraceEvent::Kind::kMark) continue;
    std::vector<std::uint32_t>& here = left[kind_of[event.slot]];
    if (event.kind == TraceEvent::Kind::kAllocate) {
      is_of_step[event.slot] = true;
      here.push_back(event.slot);
    } else if (is_of_step[event.slot]) {
      here.erase(std::find(here.begin(), here.end(), event.slot));
    } else {
      freed[kind_of[event.slot]].push_back(event.slot);
    }
  }
  std::erase_if(left, [](const auto& each) { return each.second.empty(); });
  std::map<std::uint32_t, std::uint32_t> successor_of;
  if (left.size() != freed.size()) return std::nullopt;
  for (auto& [kind, before] : freed) {
    const std::vector<std::uint32_t>& after = left[kind];
    if (after.size() != before.size()) return std::nullopt;
    std::sort(before.begin(), before.end());
    for (std::size_t i = 0; i < before.size(); ++i) successor_of[before[i]] = after[i];
  }
  return successor_of;
}

}  // namespace

std::optional<Trace> repeat_last_step(const Trace& trace, std::string* why) {
  const std::optional<Step> step = find_last_step(trace);
  if (!step) {
    *why = "it has no marks `step N begin` and `step N end`";
    return std::nullopt;
  }
  const auto successor_of = match(trace, *step);
  if (!successor_of) {
    *why = "its last step frees other sizes than it leaves";
    return std::nullopt;
  }
  TraceBuilder builder(trace.name);
  std::vector<std::uint32_t> slot_now(trace.allocations);  // in the new trace, by the old slot
  const auto play = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const TraceEvent& event = trace.events[i];
      if (event.kind == TraceEvent::Kind::kFree) builder.free(slot_now[event.slot]);
      if (event.kind != TraceEvent::Kind::kAllocate) continue;
      const auto slot = builder.allocate(event.size, trace.streams[event.stream]);
      if (!slot) return false;
      slot_now[event.slot] = *slot;
    }
    return true;
  };
  bool fits = play(0, step->begin);
  for (unsigned n = 0; n < kRepeats && fits; ++n) {
    builder.mark(kRepeatMark);
    fits = play(step->begin, step->end);
    for (const auto& [before, after] : *successor_of) slot_now[before] = slot_now[after];
  }
  builder.mark(kRepeatMark);
  if (!fits) {
    *why = "repeated, it has more allocations than a trace may have";
    return std::nullopt;
  }
  return std::move(builder.trace());
}

}  // namespace ashlar::tool
