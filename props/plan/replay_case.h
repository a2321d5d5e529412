// A case of record, validate and replay, decoded from bytes: random bytes in the property suite, or
// the fuzz target's.
//
// A run of few slots and sizes is recorded and planned. Then steps, each of which is the run with some
// edits, are replayed one after another over one segment; what a step leaves live stays live. Every
// byte string is a case.
//
//   byte 0           alignment of the plan, and of upstream's addresses; from 200 on, upstream has
//                    no memory for the segment at first
//   byte 1           how many ops the run has
//   2 for each op    what (allocate, free or use; its stream), which slot and size
//   4 for each edit  which step, where, what, how far or how large
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
    kAllocate,  ///< slot, size, stream. An allocation that the slot still has stays live
    /// slot. If it is empty, its last address is freed: a double free, or a foreign one
    kFree,
    kUse,         ///< slot, stream
    kFreeInside,  ///< the address `size` bytes into the segment, modulo its size
    kFreeAbroad,  ///< an address that was never handed out
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

/// The result: what all steps counted, and the first divergence from the model.
struct ReplayOutcome {
  replay::ReplayCounts counts;
  std::uint64_t managed = 0;      ///< allocations of the recording that are managed
  std::uint64_t differences = 0;  ///< steps that differ, as validation says
  spec::Divergence divergence;
};

/// Records the run, validates each step and replays it, each in lockstep with its model.
ReplayOutcome run_replay_case(const ReplayCase& replay_case,
                              const spec::ReplayLockstep::Factory& factory);

}  // namespace ashlar::props
