// C9, C17, DEV-13, DEV-22: what no call may do, whatever it is for. See cache_clauses.h.
//
//   any call          takes no memory from another device, and gives it none; asks no event while a
//                     capture is announced
//   zero bytes        are given without a device call
//   a miss            waits, or gives memory back, only after the device or the limit has refused a
//                     growth; makes a stream wait only with reuse:ordered; takes no memory of a
//                     stream that is alive with reuse:own
#include <string>

#include "spec/model/cache_clauses.h"
#include "spec/model/settings.h"

namespace ashlar::spec {

namespace {

using device::CallKind;

std::string number_of(const JudgedDevice& device) { return std::to_string(device.id.value()); }

void judge_elsewhere(CacheState& state, const JudgedDevice& device) {
  for (const JudgedDevice& each : state.devices) {
    if (each.id == device.id) continue;
    for (const CallKind kind :
         {CallKind::kSegmentAlloc, CallKind::kSegmentFree, CallKind::kStreamAlloc,
          CallKind::kStreamFree, CallKind::kAddressReserve, CallKind::kPageCreate,
          CallKind::kPageMap, CallKind::kPageUnmap}) {
      if (each.ledger.calls(kind) != 0)
        state.verdict.report("C17", "a call on device ", number_of(device), " called ",
                             device::call_name(kind), " of device ", number_of(each));
    }
  }
}

void judge_capture_silence(CacheState& state, const JudgedCall& call) {
  if (!state.streams.is_capturing() || call.is_capture_edge) return;
  const std::uint64_t queries = sum_over_devices(
      state, [](const CallLedger& each) { return each.calls(CallKind::kEventQuery); });
  if (queries != 0)
    state.verdict.report("C9", queries, " events were asked while a capture is announced");
  const std::uint64_t lost = sum_over_devices(state, [](const CallLedger& each) {
    // What a growth that failed had mapped before, it may unmap.
    return each.unmapped_bytes();
  });
  if (lost != 0)
    state.verdict.report("C9", lost, " bytes were unmapped while a capture is announced");
}

/// May the device, or the limit, have refused a growth? True where the judge cannot know.
bool may_have_been_refused(const CacheState& state, const JudgedDevice& device,
                           const JudgedCall& call) {
  if (any_failure_but_growth(state) || was_refused_by_host(state)) return true;
  return retry_in(state, device, call) != Happened::kNo;
}

/// Bytes of pages that were mapped in the call and had been elsewhere before.
std::uint64_t moved_bytes(const CallLedger& ledger) {
  const std::uint64_t mapped = ledger.done(CallKind::kPageMap);
  return kPageBytes * (mapped - std::min(mapped, ledger.done(CallKind::kPageCreate)));
}

/// How many an allocation may move before it asks the device for more. In microseconds a page's move costs 64.
std::uint64_t eager_bytes_max(const cache::Config& config) {
  constexpr std::uint64_t kMoveUs = 64;
  return config.move == cache::Move::kEager ? config.move_us_max / kMoveUs * kPageBytes : 0;
}

/// REQUIRES: the call is an allocation.
void judge_need(CacheState& state, const JudgedDevice& device, const JudgedCall& call) {
  const std::uint64_t stream_waits = sum_over_devices(
      state, [](const CallLedger& each) { return each.calls(CallKind::kStreamWait); });
  if (stream_waits != 0 && state.rules.config().reuse != cache::Reuse::kOrdered)
    state.verdict.report("DEV-22", "a stream was made to wait, though reuse is not ordered");
  if (may_have_been_refused(state, device, call)) return;
  if (device.ledger.segments_returned() != 0 && !may_give_back_first(state, device))
    state.verdict.report("DEV-13", "an allocation gave ", device.ledger.segments_returned(),
                         " segments back, though no growth was refused");
  const std::uint64_t moved_max = eager_bytes_max(state.rules.config());
  if (moved_bytes(device.ledger) > moved_max && !has_refused_pages(state, device))
    state.verdict.report("DEV-10", "an allocation moved ", moved_bytes(device.ledger),
                         " bytes of pages, ", moved_max,
                         " are permitted, and no growth was refused");
  if (device.ledger.lost_bytes() > moved_max && !may_collect(state, device))
    state.verdict.report("DEV-13", "an allocation took ", device.ledger.lost_bytes(),
                         " bytes of pages away, though no growth was refused");
  const std::uint64_t waits =
      sum_over_devices(state, [](const CallLedger& each) { return each.waits(); });
  if (waits != 0)
    state.verdict.report("C17", "an allocation waited ", waits,
                         " times, though no growth was refused");
}

/// DEV-22, where the map after the call is at hand; of a segment that changed hands, where the one
/// before is too.
void judge_lender(CacheState& state, const JudgedDevice& device, const JudgedCall& call,
                  bool had_view) {
  if (call.fails || !call.allocates || !device.map.is_fresh ||
      state.rules.config().reuse != cache::Reuse::kOwn || state.streams.any_dead() ||
      state.pools.any_overflow())
    return;
  const cache::SnapshotSegment* const now = find_segment(device.map.view.segments, call.address);
  if (now == nullptr) return;  // the walk has said so
  const bool is_lent = heap_of(*now) != call.stream;
  if (is_lent || (had_view && is_adopted(device, *now)))
    state.verdict.report("DEV-22", "the block is in segment ", now->ordinal,
                         " of another stream, which is alive, though reuse is own");
}

}  // namespace

void judge_conduct(CacheState& state, const JudgedDevice& device, const JudgedCall& call,
                   bool had_view) {
  if (state.world.callback_ran) return;  // it may do anything that a caller may
  judge_elsewhere(state, device);
  judge_capture_silence(state, call);
  if (!call.is_allocation) return;
  if (call.requested == 0 && !call.fails) {
    if (sum_over_devices(state, [](const CallLedger& each) { return each.calls(); }) != 0)
      state.verdict.report("C17", "an allocation of zero bytes made device calls");
    return;
  }
  judge_need(state, device, call);
  judge_lender(state, device, call, had_view);
}

}  // namespace ashlar::spec
