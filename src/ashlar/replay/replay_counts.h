// What a replay counts (the rule by which it serves and counts: replay_rule.h).
//
// Thread safety: plain values.
#pragma once

#include <cstdint>

namespace ashlar::inline v0::replay {

/// Since the replay was made. Allocations first: each that asks for bytes is counted once.
struct ReplayCounts {
  std::uint64_t served = 0;     ///< from the segment, by offset
  std::uint64_t unmanaged = 0;  ///< sent upstream as recorded: no plan says where it goes
  // Fallbacks: sent upstream though no recording said so.
  std::uint64_t other_stream = 0;  ///< on another stream than the plan's
  std::uint64_t past_end = 0;      ///< more allocations than were recorded
  /// of a size that is not recorded hereabouts: another size, or one allocation more
  std::uint64_t unexpected_size = 0;
  std::uint64_t in_use = 0;      ///< its bytes are still another's, who is late or held
  std::uint64_t no_segment = 0;  ///< upstream had none to give
  // What else was not as recorded.
  std::uint64_t skipped = 0;      ///< recorded allocations that nobody asked for
  std::uint64_t early_frees = 0;  ///< of planned memory, before the recorded event
  /// planned memory that was still live when its free was due, or at a rewind
  std::uint64_t late = 0;
  std::uint64_t uses = 0;  ///< of planned memory, by other streams
  /// frees and uses of what is inside the segment and not live: typed errors
  std::uint64_t refused = 0;
  std::uint64_t passed_on = 0;  ///< frees and uses of what is not the segment's

  constexpr std::uint64_t fallbacks() const {
    return other_stream + past_end + unexpected_size + in_use + no_segment;
  }
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

}  // namespace ashlar::inline v0::replay
