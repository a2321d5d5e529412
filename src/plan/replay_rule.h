// The rule by which a replay serves a run that is not quite the recorded one, and what it counts.
//
// Thread safety: plain values.
//
// The managed allocations' events and the unmanaged ones' allocations stand in a row, as recorded, and a cursor in it.
//   (1) An allocation of zero bytes is null and moves nothing. One on another stream goes upstream and moves nothing.
//   (2) Otherwise it is taken for the first of the next kReplayLookAhead allocations from the cursor on that has its size.
//       None has: upstream, and the cursor stays. One has: the cursor goes behind it. Allocations it passes over are skipped.
//       What should have been freed among what it passes over, and is live, is late.
//   (3) An unmanaged one goes upstream. A managed one is served at its planned offset, unless there is no segment or some of
//       those bytes are late or held; then it goes upstream. Nothing else can have them: what is live, planned and not late
//       was live at this event of the recording too, and the plan keeps apart what was.
//   (4) A free ends planned memory whenever it comes. It moves the cursor behind its event when that is next, frees of what
//       is not live aside. A late one is late no more.
//   (5) Planned memory that another stream used is held from its free on: that stream may still be at it. The use is
//       recorded on the segment, so it is waited for where the segment goes back upstream; till then nobody gets the bytes.
//   (6) A rewind sets the cursor to the beginning. What is live then is late. Where nothing is, and something is held or
//       there is no segment, the segment is given back and another one asked for.
#pragma once

#include <cstdint>

namespace ashlar {
inline namespace v0 {
namespace plan {

/// Of rule (2).
inline constexpr unsigned kReplayLookAhead = 4;

/// Since the replay was made. Allocations first: each that asks for bytes is counted once.
struct ReplayCounts {
  std::uint64_t served = 0;          ///< from the segment, by offset
  std::uint64_t unmanaged = 0;       ///< sent upstream as recorded: no plan says where it goes
  // Fallbacks: sent upstream though no recording said so.
  std::uint64_t other_stream = 0;    ///< on another stream than the plan's
  std::uint64_t past_end = 0;        ///< more allocations than were recorded
  std::uint64_t unexpected_size = 0; ///< of a size that is not recorded hereabouts: another size, or one allocation more
  std::uint64_t in_use = 0;          ///< its bytes are still another's, who is late or held
  std::uint64_t no_segment = 0;      ///< upstream had none to give
  // What else was not as recorded.
  std::uint64_t skipped = 0;         ///< recorded allocations that nobody asked for
  std::uint64_t early_frees = 0;     ///< of planned memory, before the recorded event
  std::uint64_t late = 0;            ///< planned memory that was still live when its free was due, or at a rewind
  std::uint64_t uses = 0;            ///< of planned memory, by other streams
  std::uint64_t refused = 0;         ///< frees and uses of what is inside the segment and not live: typed errors
  std::uint64_t passed_on = 0;       ///< frees and uses of what is not the segment's

  constexpr std::uint64_t fallbacks() const { return other_stream + past_end + unexpected_size + in_use + no_segment; }
  friend constexpr bool operator==(const ReplayCounts&, const ReplayCounts&) = default;
};

/// Each counter by its name.
struct ReplayCounter {
  const char* name;
  std::uint64_t ReplayCounts::*count;
};
inline constexpr ReplayCounter kReplayCounters[] = {
    {"served", &ReplayCounts::served},
    {"unmanaged", &ReplayCounts::unmanaged},
    {"other_stream", &ReplayCounts::other_stream},
    {"past_end", &ReplayCounts::past_end},
    {"unexpected_size", &ReplayCounts::unexpected_size},
    {"in_use", &ReplayCounts::in_use},
    {"no_segment", &ReplayCounts::no_segment},
    {"skipped", &ReplayCounts::skipped},
    {"early_frees", &ReplayCounts::early_frees},
    {"late", &ReplayCounts::late},
    {"uses", &ReplayCounts::uses},
    {"refused", &ReplayCounts::refused},
    {"passed_on", &ReplayCounts::passed_on},
};

}  // namespace plan
}  // namespace v0
}  // namespace ashlar
