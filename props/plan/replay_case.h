// One case of record, validate and replay, from bytes: for the property suite, which rolls them,
// and the fuzz target.
//
// A run of few slots and sizes is recorded and planned; then steps, each the run with some edits,
// are replayed one after another over one segment, without anybody freeing in between what a step
// leaves live. Every byte string is a case.
//
//   byte 0      alignment of the plan, and of upstream's addresses; from 200 on, upstream has no
//   segment at first byte 1      how many ops the run has
//   2 bytes each op: what (allocate, free or use; its stream), which slot and size
//   then 4 bytes each edit: which step, where, what, how far or how large
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "spec/replay/replay_lockstep.h"

namespace ashlar::props {

struct RunOp {
  enum class Kind : std::uint8_t {
    kAllocate,  ///< slot, size, stream. What the slot had and nobody freed is left live
    /// slot; an empty one is a free of what it had last: a double free, or a foreign one
    kFree,
    kUse,         ///< slot, stream
    kFreeInside,  ///< the address so many bytes into the segment, modulo its size
    kFreeAbroad,  ///< an address that nobody handed out
    kFail,        ///< upstream's call number `size` from here on fails
  };
  Kind kind = Kind::kAllocate;
  std::uint32_t slot = 0;
  Bytes size;
  std::uint32_t stream = 0;
};

inline constexpr std::uint32_t kReplaySlots = 24;
inline constexpr std::size_t kReplaySteps = 3;

struct ReplayCase {
  Bytes alignment{1};
  Bytes upstream_alignment{1};
  bool has_segment = true;
  std::vector<RunOp> run;
  std::vector<std::vector<RunOp>> steps;
};

ReplayCase replay_case_of(std::span<const std::uint8_t> bytes);

/// What it came to: the sum of what the steps counted, and what broke first.
struct ReplayOutcome {
  replay::ReplayCounts counts;
  std::uint64_t managed = 0;      ///< of the recording
  std::uint64_t differences = 0;  ///< steps that validation says differ
  spec::Divergence divergence;
};

/// Records the run, validates each step, replays them; each beside its model.
ReplayOutcome run_replay_case(const ReplayCase& replay_case,
                              const spec::ReplayLockstep::Factory& factory);

}  // namespace ashlar::props
