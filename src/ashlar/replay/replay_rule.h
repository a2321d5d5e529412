// The rule by which a replay serves a run that is not quite the recorded one, and what it counts.
//
// Thread safety: plain values.
//
// The managed allocations' events and the unmanaged ones' allocations stand in a row, as recorded,
// and a cursor in it.
//   (1) An allocation of zero bytes is null and moves nothing. One on another stream goes upstream
//       and moves nothing.
//   (2) Otherwise it is taken for the first of the next kReplayLookAhead allocations from the
//       cursor on that has its size.
//       None has: upstream, and the cursor stays. One has: the cursor goes behind it. Allocations
//       it passes over are skipped. What should have been freed among what it passes over, and is
//       live, is late.
//   (3) An unmanaged one goes upstream. A managed one is served at its planned offset, unless there
//       is no segment or some of those bytes are late or held; then it goes upstream. Nothing else
//       can have them: what is live, planned and not late was live at this event of the recording
//       too, and the plan keeps apart what was.
//   (4) A free ends planned memory whenever it comes. It moves the cursor behind its event when
//       that is next, frees of what is not live aside. A late one is late no more.
//   (5) Planned memory that another stream used is held from its free on: that stream may still be
//       at it. The use is recorded on the segment, so it is waited for where the segment goes back
//       upstream; till then nobody gets the bytes.
//   (6) A rewind sets the cursor to the beginning. What is live then is late. Where nothing is, and
//       something is held or there is no segment, the segment is given back and another one asked
//       for.
#pragma once

#include <cstdint>

namespace ashlar::inline v0::replay {

/// Of rule (2).
inline constexpr unsigned kReplayLookAhead = 4;

}  // namespace ashlar::inline v0::replay
