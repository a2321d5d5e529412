// A trace as the events that a benchmark replays.
//
// Purpose: reading and laying out a trace is not timed, so that is done once, before.
// Thread safety: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ashlar::tool {
struct Trace;
}

namespace ashlar::bench {

struct Event {
  std::uint64_t bytes;  ///< 0: a free
  std::uint32_t slot;
  std::uint32_t stream;
};

struct Program {
  std::vector<Event> events;
  std::size_t slots = 0;
};

/// What a trace leaves live is freed at the end. A slot is used again once its allocation is freed:
/// the table of what is live stays as small as the workload's.
Program lay_out(const tool::Trace& trace);

/// One pass. `blocks` has an element for each slot.
template <class Adapter>
void pass(Adapter& adapter, const Program& program, std::vector<typename Adapter::Handle>& blocks) {
  for (const Event& event : program.events) {
    if (event.bytes == 0) {
      adapter.free(blocks[event.slot]);
    } else {
      blocks[event.slot] = adapter.allocate(event.bytes, event.stream);
    }
  }
}

}  // namespace ashlar::bench
