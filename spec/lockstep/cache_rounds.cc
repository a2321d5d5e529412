// The rounds, their figures, and the two judges: see cache_rounds.h.
#include "spec/lockstep/cache_rounds.h"

#include <algorithm>

#include "spec/ops/opcode_table.h"

namespace ashlar::spec {

namespace {

constexpr const char* kGrown = "C29";
constexpr const char* kUnsettled = "C20";

/// How a figure may rise from the second third to the last: by `units`, and by a quarter of what it
/// was where it depends on the adversary's choices. Both are above what worlds were seen to vary
/// by; a leak of one in a round exceeds the units after three times as many rounds.
struct Slack {
  const char* name;
  std::uint64_t units;
  bool has_part;
};
constexpr std::uint64_t kReservedSlack = std::uint64_t{64} << 20;
constexpr std::array<Slack, kRoundFigures> kSlacks{{{"records of streams", 6, false},
                                                    {"events held", 24, false},
                                                    {"pending blocks", 8, false},
                                                    {"device calls in a round", 16, true},
                                                    {"reserved bytes", kReservedSlack, false}}};

std::uint64_t highest(const std::vector<RoundFigures>& rounds, std::size_t first, std::size_t end,
                      unsigned figure) {
  std::uint64_t high = 0;
  for (std::size_t i = first; i < end; ++i) high = std::max(high, rounds[i].now[figure]);
  return high;
}

/// The figures of every device, one list each.
class Recorder {
 public:
  explicit Recorder(CacheLockstep& lockstep) : lockstep_(lockstep) {}

  void take() {
    SimGpu& gpu = *lockstep_.gpu();
    if (devices_.empty()) devices_.resize(gpu.device_count());
    for (std::uint32_t i = 0; i < gpu.device_count(); ++i) take(device_id(i), &devices_[i]);
    lockstep_.model()->told().step_addresses = {};
  }
  std::size_t count() const { return devices_.size(); }
  const std::vector<RoundFigures>& rounds(std::size_t device) const {
    return devices_[device].rounds;
  }

 private:
  struct Device {
    std::vector<RoundFigures> rounds;
    std::uint64_t calls = 0;  ///< at the last rest
    std::uint64_t memory_calls = 0;
    std::uint64_t waits = 0;
  };

  void take(DeviceId id, Device* device) {
    const DeviceWitness& witness = lockstep_.model()->device(id).ledger.witness();
    RoundFigures round;
    cache::DeviceStats stats;
    round.is_gone = lockstep_.model()->end_of(id) != Code::kOk ||
                    !lockstep_.subject()->stats(id, &stats).is_ok();
    const std::uint64_t calls = witness.calls_in_all();
    const std::uint64_t memory_calls = witness.calls_of(device::CallKind::kSegmentAlloc) +
                                       witness.calls_of(device::CallKind::kSegmentFree) +
                                       witness.calls_of(device::CallKind::kPageMap) +
                                       witness.calls_of(device::CallKind::kPageUnmap);
    round.now = {stats.streams, witness.events(),
                 stats.active[0].current - stats.allocations[0].current, calls - device->calls,
                 witness.reserved_bytes()};
    round.memory_calls = memory_calls - device->memory_calls;
    const std::uint64_t waits = witness.calls_of(device::CallKind::kEventSynchronize) +
                                witness.calls_of(device::CallKind::kSynchronize) -
                                witness.waits().questions;
    round.waits = waits - device->waits;
    round.addresses = lockstep_.model()->told().step_addresses.value();
    round.ooms = stats.ooms;
    device->waits = waits;
    device->calls = calls;
    device->memory_calls = memory_calls;
    device->rounds.push_back(round);
  }

  CacheLockstep& lockstep_;
  std::vector<Device> devices_;
};

LockstepResult run_once(const OpFile& file, std::uint32_t rounds,
                        const CacheLockstep::Options& options) {
  CacheLockstep lockstep(options);
  Recorder recorder(lockstep);
  const auto run_one = [&] {
    for (const Op& op : file.ops) {
      if (!lockstep.step(op)) return false;
    }
    return lockstep.rest();
  };
  for (std::uint32_t round = 0; round < rounds; ++round) {
    if (!run_one()) return lockstep.finish();
    recorder.take();
  }
  const bool settles = may_settle(file);
  const SettledAfter after{kSettledAfter, may_march(file) ? kNotJudged : kSettledAfter};
  for (std::size_t i = 0; i < recorder.count(); ++i) {
    const std::string device = "device " + std::to_string(i) + ": ";
    std::string found = grown_figure(recorder.rounds(i));
    if (!found.empty()) lockstep.report(kGrown, device + found);
    found = settles ? unsettled_round(recorder.rounds(i), after) : std::string();
    if (!found.empty()) lockstep.report(kUnsettled, device + found);
  }
  return lockstep.finish();
}

}  // namespace

std::string grown_figure(const std::vector<RoundFigures>& rounds) {
  if (rounds.size() < kRoundsMin || rounds.back().is_gone) return {};
  const std::size_t third = rounds.size() / 3;
  const std::size_t last = rounds.size() - third;
  for (unsigned figure = 0; figure < kRoundFigures; ++figure) {
    const Slack& slack = kSlacks[figure];
    const std::uint64_t before = highest(rounds, last - third, last, figure);
    const std::uint64_t after = highest(rounds, last, rounds.size(), figure);
    const std::uint64_t permitted = before + slack.units + (slack.has_part ? before / 4 : 0);
    if (after <= permitted) continue;
    return joined(slack.name, ": up to ", after, " in the last ", third, " of ", rounds.size(),
                  " rounds, ", before, " in as many before them; ", permitted, " are permitted");
  }
  return {};
}

std::string unsettled_round(const std::vector<RoundFigures>& rounds, const SettledAfter& after) {
  const std::size_t later = after.addresses == kNotJudged ? after.calls : after.addresses;
  if (rounds.size() < 2 * std::max(after.calls, later)) return {};
  // A step that runs out of memory asks the driver every time.
  if (rounds.back().is_gone || rounds.back().ooms != 0) return {};
  for (std::size_t i = after.calls; i < rounds.size(); ++i) {
    if (rounds[i].memory_calls == 0 && rounds[i].waits == 0) continue;
    return joined("round ", i + 1, " of a step that repeats made ", rounds[i].memory_calls,
                  " driver memory calls and ", rounds[i].waits, " waits");
  }
  if (after.addresses == kNotJudged) return {};
  const auto repeats_after = [&](std::size_t period) {
    for (std::size_t i = after.addresses + period; i < rounds.size(); ++i) {
      if (rounds[i].addresses != rounds[i - period].addresses) return false;
    }
    return true;
  };
  const std::size_t longest = (rounds.size() - after.addresses) / 2;
  for (std::size_t period = 1; period <= longest; ++period) {
    if (repeats_after(period)) return {};
  }
  return joined("the addresses of a step that repeats are in no cycle of ", longest,
                " rounds after round ", after.addresses);
}

bool may_march(const OpFile& file) {
  return std::any_of(file.ops.begin(), file.ops.end(), [](const Op& op) {
    return op.slot == slot::kFreeOn || op.slot == slot::kUse || op.slot == slot::kKernel;
  });
}

bool may_settle(const OpFile& file) {
  const auto holds = [](const Op& op) {
    switch (op.slot) {
      case slot::kSeed: return op.arg[0] % 4 == 0;  // no progress by chance
      case slot::kDevice: return op.arg[1] == 0;
      case slot::kConf: return op.text.find("cache:off") == std::string::npos;
      case slot::kAlloc:
      case slot::kFree:
      case slot::kFreeOn:
      case slot::kUse:
      case slot::kKernel:
      case slot::kStep:
      case slot::kDrain:
      case slot::kStreamCreate: return true;
      default: return false;
    }
  };
  return std::all_of(file.ops.begin(), file.ops.end(), holds);
}

LockstepResult run_rounds(const OpFile& file, std::uint32_t rounds,
                          const CacheLockstep::Options& options) {
  const LockstepResult result = run_once(file, rounds, options);
  const bool is_grown = result.divergence.clause == kGrown;
  if (!is_grown && result.divergence.clause != kUnsettled) return result;
  const LockstepResult longer = run_once(file, rounds * kConfirmation, options);
  return is_grown || longer.is_good() ? longer : result;
}

}  // namespace ashlar::spec
