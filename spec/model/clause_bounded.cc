// C9, C13, C17, C26, DEV-2, DEV-12: what a device was asked during a call. See cache_clauses.h.
#include <algorithm>
#include <cmath>

#include "spec/model/cache_clauses.h"

namespace ashlar::spec {

namespace {

constexpr std::uint64_t kPage = 2u << 20;
constexpr std::uint64_t kHitPollsMax = 16;

/// The bound of a miss, event queries apart: 8, and 4
///   for each page of the segment asked for;
///   for each segment given back (its return, and the event by which its last use was known);
///   for each heap in the first search, and in the search after each wait (who its stream is, an
///   event and its record, the growth tried again);
///   for each call that failed;
///   for each use whose event had to wait.
std::uint64_t miss_calls_max(const CacheState& state, const JudgedDevice& device,
                             std::uint64_t segment) {
  const CallLedger& ledger = device.ledger;
  const std::uint64_t heaps = device.recount.heaps.size();
  const std::uint64_t searches = 1 + ledger.calls(device::CallKind::kEventSynchronize) +
                                 ledger.calls(device::CallKind::kSynchronize);
  // A miss makes up for uses that no event could be recorded for at the free (a capture, a
  // failure).
  const std::uint64_t unrecorded =
      state.world.may_be_unrecorded
          ? (device.books.completed_in_call() + device.books.owned().size()) * heaps
          : 0;
  return 8 + 4 * unrecorded + 4 * ((segment + kPage - 1) / kPage) +
         4 * ledger.calls(device::CallKind::kSegmentFree) + searches * 4 * (1 + heaps) +
         4 * ledger.failures();
}

/// C17, C9: a hit polls a few events and asks for nothing else.
void judge_hit(CacheState& state, std::uint64_t queries, std::uint64_t others) {
  if (others != 0)
    state.verdict.report("C17", "a hit made ", others, " device calls beside its polls");
  if (queries > kHitPollsMax) state.verdict.report("C17", "a hit polled ", queries, " events");
  if (state.streams.is_capturing() && queries != 0)
    state.verdict.report("C9", "an event was polled while a capture is underway");
}

}  // namespace

Code end_of(const CacheState& state, const JudgedDevice& device) {
  const Code own = device.ledger.witness().sticky();
  if (own != Code::kOk) return own;
  const bool is_unloaded = std::any_of(
      state.devices.begin(), state.devices.end(),
      [](const JudgedDevice& each) { return each.ledger.witness().sticky() == Code::kTornDown; });
  return is_unloaded ? Code::kTornDown : Code::kOk;
}

bool any_failure_but_growth(const CacheState& state) {
  return std::any_of(state.devices.begin(), state.devices.end(), [](const JudgedDevice& each) {
    return each.ledger.failures() != each.ledger.failed(device::CallKind::kSegmentAlloc);
  });
}

bool is_gone_answer(CacheState& state, const JudgedDevice& device, Code code) {
  const Code end = end_of(state, device);
  if (device.was_gone && code != end)
    state.verdict.report("C26", "the device is gone, but the call answered ", code_name(code));
  if (end != Code::kOk && code == end) return true;
  // A use on another device, gone by now, may be answered with that device's error.
  return std::any_of(state.devices.begin(), state.devices.end(), [code](const JudgedDevice& each) {
    const Code sticky = each.ledger.witness().sticky();
    return sticky != Code::kOk && sticky == code;
  });
}

void judge_silence(CacheState& state) {
  for (const JudgedDevice& each : state.devices) {
    if (each.was_gone && each.ledger.calls() != 0)
      state.verdict.report("C26", "a device call was made after the device was gone");
  }
}

void judge_atomic(CacheState& state, const JudgedDevice& device, const JudgedCall& call,
                  bool had_view) {
  if (!(call.fails || call.is_query) || call.allocates || call.is_broken_off) return;
  // Whom a handle names may be asked before the call is refused.
  if (device.ledger.calls() != device.ledger.calls(device::CallKind::kIdentify))
    state.verdict.report("C13", call.is_query ? "a query" : "a call that was refused",
                         " made device calls");
  if (had_view && device.map.is_fresh && device.books.completed_in_call() != 0)
    state.verdict.report("C13", call.is_query ? "a query" : "a call that was refused",
                         " completed pending blocks");
}

void judge_limit(CacheState& state, JudgedDevice& device) {
  const DeviceWitness& witness = device.ledger.witness();
  MemoryBounds& memory = device.memory;
  const double fraction = state.rules.config().memory_fraction;
  if (!memory.has_limit && fraction < 1 && witness.total() != 0) {
    memory.has_limit = true;
    // Up to a whole byte: a limit is never one byte short.
    memory.limit = static_cast<std::uint64_t>(
        std::ceil(static_cast<long double>(fraction) * static_cast<long double>(witness.total())));
  }
  if (device.ledger.segments_granted() != 0 && witness.segment_bytes() > memory.limit) {
    state.verdict.report("DEV-12", "reserved ", witness.segment_bytes(), " bytes, over the limit ",
                         memory.limit);
  }
}

void judge_bounded(CacheState& state, const JudgedDevice& device, std::uint64_t rounded,
                   bool is_hit) {
  const CallLedger& ledger = device.ledger;
  const std::uint64_t queries = ledger.calls(device::CallKind::kEventQuery);
  const std::uint64_t others = ledger.calls() - queries;
  if (is_hit) return judge_hit(state, queries, others);
  const std::uint64_t segment = state.rules.segment_size(rounded);
  const std::uint64_t most = miss_calls_max(state, device, segment);
  if (others > most) {
    state.verdict.report("C17", "a miss made ", others, " device calls, ", most, " are allowed");
  }
  const std::uint64_t asked = ledger.witness().segment_asked();
  if (ledger.calls(device::CallKind::kSegmentAlloc) != 0 && asked != segment) {
    state.verdict.report("DEV-2", "a segment of ", asked, " bytes was asked for, not ", segment);
  }
}

}  // namespace ashlar::spec
