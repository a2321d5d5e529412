#include "bench/cases/event_program.h"

#include <algorithm>

#include "bench/adapters/adapter.h"
#include "src/tool/trace.h"

namespace ashlar::bench {

Program lay_out(const tool::Trace& trace) {
  Program program;
  std::vector<std::uint32_t> slot_of(trace.allocations), unused;
  std::vector<bool> is_live(trace.allocations);
  const auto free = [&](std::uint32_t allocation) {
    program.events.push_back({0, slot_of[allocation], 0});
    unused.push_back(slot_of[allocation]);
    is_live[allocation] = false;
  };
  for (const tool::TraceEvent& event : trace.events) {
    if (event.kind == tool::TraceEvent::Kind::kMark) continue;
    if (event.kind == tool::TraceEvent::Kind::kFree) {
      free(event.slot);
      continue;
    }
    if (unused.empty()) unused.push_back(static_cast<std::uint32_t>(program.slots++));
    slot_of[event.slot] = unused.back();
    unused.pop_back();
    is_live[event.slot] = true;
    // A null block is nothing to free in any adapter's terms, and no sample trace has one: take a
    // byte for it.
    const std::uint64_t bytes = std::max<std::uint64_t>(1, event.size.count());
    program.events.push_back({bytes, slot_of[event.slot], event.stream % kStreamsMax});
  }
  for (std::uint32_t i = 0; i < trace.allocations; ++i) {
    if (is_live[i]) free(i);
  }
  return program;
}

}  // namespace ashlar::bench
