// The rule by which a replay serves a run that differs from the recorded one, and what it counts.
//
// Thread safety: plain values.
//
// The row of recorded events has the allocations and frees of managed memory, and the allocations of
// unmanaged memory. A cursor points to the next event of the run.
//   (1) An allocation of zero bytes is null and moves nothing. An allocation on another stream goes
//       upstream and moves nothing.
//   (2) Any other allocation is matched with the first of the next kReplayLookAhead recorded
//       allocations, from the cursor on, that has its size. If none has, it goes upstream, and the
//       cursor stays. Otherwise the cursor moves behind the match. Recorded allocations that the
//       cursor passes over are skipped. Planned memory whose free the cursor passes over, and which
//       is still live, is late.
//   (3) A match that is unmanaged goes upstream. A managed one is served at its planned offset,
//       unless there is no segment, or some of its bytes are late or held; then it goes upstream.
//       No other memory can be in the way: planned memory that is live and not late was also live at
//       this event of the recording, and the plan keeps apart what was live together.
//   (4) A free of planned memory ends it, whenever it comes. If its event is the next one, the cursor
//       moves behind it; frees of memory that is not live do not count as between them. Late memory
//       that is freed is no longer late.
//   (5) Planned memory that another stream used is held from its free on, because that stream may
//       still use it. The use is recorded on the segment, so upstream waits for it when the segment
//       goes back; until then the bytes are not given out.
//   (6) A rewind moves the cursor to the first event. Memory that is still live is late. If nothing
//       is live, and something is held or there is no segment, the segment is given back and a new
//       one is asked for.
#pragma once

#include <cstdint>

namespace ashlar::inline v0::replay {

/// How many recorded allocations rule (2) looks at. Measured in README.md.
inline constexpr unsigned kReplayLookAhead = 4;

}  // namespace ashlar::inline v0::replay
