// The rule by which a replay serves a run that differs from the recorded one. What it counts:
// replay_counts.h.
//
// Thread safety: plain values.
//
// The sequence of recorded events has the allocations and frees of managed memory (managed: placed
// by the plan), and the allocations of unmanaged memory. A cursor points to the event that the run
// is expected to make next.
//   (1) An allocation of zero bytes returns null and does not move the cursor. An allocation on
//       another stream goes upstream and does not move the cursor.
//   (2) Any other allocation is matched with the first of the next kReplayLookAhead recorded
//       allocations, from the cursor on, that has its size. If none has, it goes upstream, and the
//       cursor stays. Otherwise the cursor moves behind the match. Recorded allocations that the
//       cursor passes over are skipped. Planned memory whose free the cursor passes over, and which
//       is still live, is late.
//   (3) A match that is unmanaged goes upstream. A managed one is served at its planned offset,
//       unless there is no segment, or some of its bytes are late or held (rule 5); then it goes
//       upstream. No other memory can be in the way: planned memory that is live and not late was
//       also live at this event of the recording, and the plan keeps apart what was live together.
//   (4) A free of planned memory ends its life, whenever the free comes. If the memory is late, it
//       is no longer late and the cursor stays. Otherwise the cursor first skips recorded frees
//       whose memory is not live, or is late. If this free's event is then the next one, the cursor
//       moves behind it; if not, the free is early and the cursor stays there.
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
