// C13, C16, DEV-14: what a call may answer and do when the host has no memory for the subject's
// records. See cache_clauses.h.
#include <algorithm>

#include "spec/model/cache_clauses.h"

namespace ashlar::spec {

namespace {

/// Was the device short of memory too, or its limit reached? Then a reclaim is right, whatever the
/// host refuses later.
bool was_device_short(const CacheState& state, const JudgedDevice& device, std::uint64_t rounded) {
  const Room room = room_before(state, device);
  return device.ledger.refused_growths() != 0 || !room.is_known ||
         room.bytes < growth_size(state, rounded);
}

}  // namespace

bool was_refused_by_host(const CacheState& state) {
  const WorldState& world = state.world;
  return world.host_refusals && world.host_refusals() != world.host_refusals_before;
}

bool is_host_refusal(CacheState& state, Code code) {
  if (code != Code::kHostOutOfMemory) return false;
  if (!was_refused_by_host(state))
    state.verdict.report("C16", "the answer is host-out-of-memory, but the host refused nothing");
  return true;
}

void judge_host_refusal(CacheState& state, const JudgedDevice& device, std::uint64_t rounded,
                        const cache::OutOfMemory& account) {
  static_cast<void>(is_host_refusal(state, Code::kHostOutOfMemory));
  if (account.rounded != Bytes{})
    state.verdict.report("DEV-14", "the account of the device was filled for the host's shortage");
  if (was_device_short(state, device, rounded)) return;
  const CallLedger& ledger = device.ledger;
  // What was granted in the call goes back: there was no memory for its records. So does, where
  // nothing is cached, what was freed before and is finished now.
  if (ledger.plain_freed() > ledger.segments_granted() && !may_give_back_first(state, device))
    state.verdict.report("C13", "memory went back to the device because the host had none");
  if (ledger.waits() != 0)
    state.verdict.report("C13", "a call that the host had no memory for waited for the device");
}

}  // namespace ashlar::spec
