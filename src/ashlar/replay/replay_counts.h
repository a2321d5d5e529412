// What a replay counts. The rule by which it serves and counts: replay_rule.h.
//
// Thread safety: plain values.
#pragma once

#include <cstdint>

namespace ashlar::inline v0::replay {

/// Counted since the replay was made. Each allocation of more than zero bytes is counted once, among
/// the first seven.
struct ReplayCounts {
  std::uint64_t served = 0;     ///< allocated in the segment, at the planned offset
  std::uint64_t unmanaged = 0;  ///< sent upstream as recorded: the plan does not place it
  // Fallbacks: sent upstream although the recording says otherwise.
  std::uint64_t other_stream = 0;  ///< on another stream than the replay's
  std::uint64_t past_end = 0;      ///< after the last recorded allocation
  /// of a size that the next recorded allocations do not have: another size, or one allocation more
  std::uint64_t unexpected_size = 0;
  std::uint64_t in_use = 0;      ///< some of its planned bytes are late or held
  std::uint64_t no_segment = 0;  ///< upstream had no memory for the segment
  // Other deviations from the recording.
  std::uint64_t skipped = 0;      ///< recorded allocations that the run did not make
  std::uint64_t early_frees = 0;  ///< frees of planned memory before the recorded event
  /// planned memory that was still live at the event of its free, or at a rewind
  std::uint64_t late = 0;
  std::uint64_t uses = 0;  ///< uses of planned memory by other streams
  /// frees and uses, refused with a typed error, of an address in the segment that is not live
  std::uint64_t refused = 0;
  std::uint64_t passed_on = 0;  ///< frees and uses of addresses outside the segment

  /// How many allocations fell back to the upstream.
  constexpr std::uint64_t fallbacks() const {
    return other_stream + past_end + unexpected_size + in_use + no_segment;
  }
  /// Equal if every counter is.
  friend constexpr bool operator==(const ReplayCounts&, const ReplayCounts&) = default;
};

/// A counter and its name.
struct ReplayCounter {
  const char* name;                    ///< as in ReplayCounts
  std::uint64_t ReplayCounts::*count;  ///< the counter
};
/// Every counter, in the order of ReplayCounts.
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

}  // namespace ashlar::inline v0::replay
