// C27, C28, C30, C32: what is complete comes back, waits end, refused calls leave no trace. See
// cache_clauses.h.
//
// The judge does not follow events. It asks for progress only where the subject can know all: all
// work is done, no capture is underway, no device call has failed, and no use or stream is left
// without an event. Then an event that was recorded before the call is done, and one question
// about it says so.
#include <algorithm>

#include "spec/model/cache_clauses.h"

namespace ashlar::spec {

namespace {

/// How many pending blocks of a heap one miss is sure to ask about (it polls 64 events, and a block
/// may wait for several).
constexpr std::uint64_t kPendingAskedMax = 16;
/// How many heaps of other streams one miss is sure to ask.
constexpr std::ptrdiff_t kOtherHeapsAskedMax = 2;

/// The first run of free or pending blocks in the segment that fits, in bytes; 0 if none does.
std::uint64_t knowable_run(const CacheState& state, const cache::Snapshot& map,
                           const cache::SnapshotSegment& segment, std::uint64_t rounded) {
  const auto is_idle = [](const cache::SnapshotBlock& block) {
    return block.state == BlockState::kFree || block.state == BlockState::kPending;
  };
  std::uint64_t run = 0;
  for (std::uint32_t i = 0; i < segment.block_count; ++i) {
    const cache::SnapshotBlock* const block = &map.blocks[segment.block_first + i];
    run = is_idle(*block) ? run + block->size.count() : 0;
    const bool is_end = i + 1 == segment.block_count || !is_idle(block[1]);
    if (is_end && state.rules.fits(run, rounded)) return run;
  }
  return 0;
}

/// May all of the segment, of a stream that was announced dead, go to the memory pool that is asked?
bool is_known_left(const CacheState& state, const cache::Snapshot& map,
                   const cache::SnapshotSegment& segment, std::uint64_t rounded) {
  // With reuse:own the call may have made the stream's own heap of the dead one, with its segments.
  if (segment.memory_pool.is_default() && state.rules.config().reuse == cache::Reuse::kOwn)
    return false;
  return may_take_over(state, segment, rounded) &&
         knowable_run(state, map, segment, rounded) == segment.size.count();
}

}  // namespace

bool is_all_knowable(const CacheState& state) {
  const WorldState& world = state.world;
  return world.is_quiet && !world.callback_ran && !world.may_be_unrecorded &&
         !world.has_planned_failures && !state.streams.is_capturing() &&
         !state.streams.any_unknown() && !any_failure_but_growth(state);
}

void judge_returns(CacheState& state, const JudgedDevice& device, std::uint64_t rounded,
                   const Stream& stream) {
  // The map of before the call: it has not been walked since.
  if (!device.map.is_fresh || !device.ledger.has_grown()) return;
  if (!is_all_knowable(state) || device.ledger.any_failure()) return;
  const cache::Snapshot& map = device.map.view;
  const auto pending = static_cast<std::uint64_t>(std::count_if(
      map.blocks.begin(), map.blocks.end(),
      [](const cache::SnapshotBlock& block) { return block.state == BlockState::kPending; }));
  if (pending > kPendingAskedMax) return;
  const auto& heaps = device.recount.heaps;
  const auto others = std::count_if(heaps.begin(), heaps.end(), [&stream](const auto& each) {
    return each.heap != stream.id.value();
  });
  const bool asks_all_heaps = others <= kOtherHeapsAskedMax;
  for (const cache::SnapshotSegment& segment : map.segments) {
    const std::uint64_t heap = heap_of(segment);
    const bool is_own = heap == stream.id.value();
    const bool is_dead =
        asks_all_heaps && (state.asked.is_pool ? is_known_left(state, map, segment, rounded)
                                               : state.streams.is_retired(heap));
    if (segment.pool != state.rules.pool_of(rounded) || (!is_own && !is_dead)) continue;
    const std::uint64_t run = knowable_run(state, map, segment, rounded);
    if (run == 0) continue;
    state.verdict.report("C27", "new memory for ", rounded, " bytes, but ", run,
                         " whose work is done are in segment ", segment.ordinal, " of a stream ",
                         is_own ? "that asks" : "that is dead");
    return;
  }
}

void judge_recovers(CacheState& state, const JudgedDevice& device, Status got) {
  std::uint64_t refused = 0;
  for (const device::CallKind kind :
       {device::CallKind::kSegmentFree, device::CallKind::kPageUnmap,
        device::CallKind::kPageRelease, device::CallKind::kAddressRelease})
    refused += device.ledger.failed(kind);
  if (refused != 0 && got.is_ok())
    state.verdict.report("C28", "a trim answered ok, but the device took ", refused,
                         " segments or pages not back");
  // Of any device: the users of the trimmed one's blocks may be streams of another.
  if (state.world.is_quiet && !any_failure_but_growth(state) && got.code() == Code::kNotReady)
    state.verdict.report("C28", "all work is done, but a trim says that it is not");
}

void judge_time(CacheState& state, const JudgedDevice& device) {
  const std::uint32_t permitted_ms = state.rules.config().wait_ms;
  if (permitted_ms == device::kWaitForever) return;
  const std::uint64_t elapsed_ms = device.ledger.elapsed_ms();
  if (elapsed_ms <= permitted_ms) return;
  state.verdict.report("C30", "a call waited for ", elapsed_ms, " ms, ", permitted_ms,
                       " are permitted");
}

void judge_no_trace(CacheState& state, const JudgedDevice& device, const JudgedCall& call,
                    std::uint64_t streams_known) {
  // A stream of one device may use another's memory, whose statistics were not read then.
  if (state.devices.size() != 1 || !state.reads_every_call) return;
  if (!(call.fails || call.is_query) || call.allocates) return;
  // An allocation that the device or the host fails may leave its stream's record.
  if (call.is_allocation && call.is_broken_off) return;
  if (device.stats.streams == streams_known) return;
  state.verdict.report("C32", call.is_query ? "a query" : "a call that was refused", " left ",
                       device.stats.streams, " streams known, not ", streams_known);
}

}  // namespace ashlar::spec
