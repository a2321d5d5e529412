// Rounds: a file of cache ops run again and again in one world, and a judge of what piles up.
//
// Purpose: a leak of one record or one block in a round breaks no clause of a single call. After
// each round the world rests: failures are healed, captures ended, all work finished. Figures are
// taken there, and judged over the rounds:
//   C29  the figures of the last third exceed those of the second by no more than the slack;
//   C20  a step of long-lived streams makes no driver memory call and no wait from its 11th round on, and
//        gets its addresses in a fixed cycle of rounds.
// Any file may be repeated: its set-up ops run once, an op whose name is already bound is skipped.
// So what is live, alive or named is bounded by the file, and a reduced file is judged as before.
// Thread safety: none.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "spec/lockstep/cache_lockstep.h"

namespace ashlar::spec {

/// What is judged of one device.
enum class RoundFigure : std::uint8_t {
  kStreams,   ///< records of streams (DeviceStats::streams)
  kEvents,    ///< events held of the device
  kPending,   ///< blocks freed and not known to be complete
  kCalls,     ///< device calls of the round
  kReserved,  ///< bytes held of the device
};
inline constexpr unsigned kRoundFigures = 5;

/// The figures of one device, at the rest after one round.
struct RoundFigures {
  std::array<std::uint64_t, kRoundFigures> now{};
  std::uint64_t memory_calls =
      0;                        ///< of the round: segment_alloc, segment_free, page_map, page_unmap
  std::uint64_t waits = 0;      ///< for events or the device, of the round
  std::uint64_t addresses = 0;  ///< a hash of those of the round's allocations, on all devices
  std::uint64_t ooms = 0;       ///< out-of-memories so far
  bool is_gone = false;         ///< lost or torn down: nothing is judged from here on
};

/// C29: what is reported of these rounds of a device, or nothing. Fewer than kRoundsMin rounds are
/// not judged.
std::string grown_figure(const std::vector<RoundFigures>& rounds);
inline constexpr std::size_t kRoundsMin = 30;
inline constexpr std::uint32_t kConfirmation = 4;

/// The number of rounds after which a step that repeats has settled.
struct SettledAfter {
  std::size_t calls;      ///< it asks the driver for no memory, and does not wait
  std::size_t addresses;  ///< they come round in a cycle; kNotJudged
};
inline constexpr std::size_t kNotJudged = static_cast<std::size_t>(-1);
/// C20: likewise, of a file that may_settle(): what was asked of the driver after that many rounds, or that the
/// addresses of the rounds since then repeat in no cycle of at most half of them. Less than twice as many rounds
/// are not judged.
std::string unsettled_round(const std::vector<RoundFigures>& rounds, const SettledAfter& after);
/// By this round a repeated step has settled, and in so many rounds it is seen to have.
inline constexpr std::size_t kSettledAfter = 10;
inline constexpr std::size_t kSettledRounds = 2 * kSettledAfter;

/// Does a step that repeats these ops have to settle? Its streams live on, the devices are
/// unlimited and never fail, their answers do not depend on chance, and it gives no memory back by
/// itself. Captures and callbacks are left out.
bool may_settle(const OpFile& file);

/// May its addresses march through all free memory of a heap before they come round? A block that other streams use
/// comes back at a miss, and until then each round takes what is free elsewhere.
bool may_march(const OpFile& file);

/// Runs the file that often, judges every call, and then the rounds. A rise (C29), or a step that does not settle
/// (C20), is reported only if it shows again over kConfirmation times as many rounds: what rises slowly to a bound is no
/// growth, and addresses may come round in a longer cycle.
LockstepResult run_rounds(const OpFile& file, std::uint32_t rounds,
                          const CacheLockstep::Options& options);

}  // namespace ashlar::spec
