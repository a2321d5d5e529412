// C13, C17, C26, DEV-2: what a device was asked during a call. See cache_clauses.h.
#include <algorithm>

#include "spec/model/cache_clauses.h"
#include "spec/model/settings.h"

namespace ashlar::spec {

namespace {

constexpr std::uint64_t kHitPollsMax = 16;
constexpr std::uint64_t kMissPollsMax = 64;
/// In a capture it asks about so many of the uses that were freed there.
constexpr std::uint64_t kCoversMax = 16;
/// A miss polls 4 events of each heap that it searches, and with two of those that may have a fit 16
/// events more, and twice the 4 marks and the last event.
constexpr std::uint64_t kQuestionsPerHeap = 4;
constexpr std::uint64_t kMarksAsked = 2 * 5;
constexpr std::uint64_t kQuestionsOfOthers = 2 * (16 + kMarksAsked);
/// The first call that names a stream asks of 4 dead ones whether they are done: twice the 4 marks and
/// the last event, and 8 uses.
constexpr std::uint64_t kQuestionsOfNewStream = 4 * (2 * 5 + 8);
/// For a use: whether its stream captures, whom the handle names, an event, its record; a refused event is given up.
constexpr std::uint64_t kCallsOfUse = 5;
/// Besides, whether it captures and whom its handle names; and of the 8 uses of each dead one without an event
/// what each use takes, and whether the device is done, twice.
constexpr std::uint64_t kCallsOfNewStream = 2 + kQuestionsOfNewStream + 4 * (8 * kCallsOfUse + 2);

/// Uses that no event could be recorded for at the free (a capture, a failure): a call that looks at all that is
/// pending makes up for them.
std::uint64_t unrecorded_uses_max(const CacheState& state, const JudgedDevice& device) {
  if (!state.world.may_be_unrecorded) return 0;
  return (device.books.completed_in_call() + device.books.owned().size()) *
         device.recount.heaps.size();
}

/// The bound of a miss, event queries apart: 8, and 4
///   for each page of the segment asked for, each time it is asked for (of a page's four calls it takes
///   two to create and map it, and two to take that back);
///   for each segment given back (its return, and the event by which its last use was known);
///   for each call that failed;
/// and kCallsOfUse
///   for each heap in the first search, and in the search after each wait (whether its stream captures, who
///   that is, an event and its record, the growth tried again);
///   for each use whose event had to wait.
std::uint64_t miss_calls_max(const CacheState& state, const JudgedDevice& device,
                             std::uint64_t segment) {
  const CallLedger& ledger = device.ledger;
  const std::uint64_t heaps = device.recount.heaps.size();
  const std::uint64_t searches = 1 + ledger.calls(device::CallKind::kEventSynchronize) +
                                 ledger.calls(device::CallKind::kSynchronize);
  const std::uint64_t unrecorded = unrecorded_uses_max(state, device);
  // A collection, or a move before growth, asks of each heap what a search after a wait does.
  const bool is_eager = state.rules.is_paged() && state.rules.config().move == cache::Move::kEager;
  const std::uint64_t collections =
      (may_give_back_first(state, device) ? 2 : 0) + (is_eager ? 1 : 0);
  const std::uint64_t tries =
      1 + (state.rules.is_paged() ? ledger.failures() + 2 * (searches - 1) : 0);
  // A page that moves or goes back is unmapped and released. One that the device had refused is only released.
  const std::uint64_t lost_pages = ledger.lost_bytes() / kPageBytes;
  const std::uint64_t released_pages = ledger.done(device::CallKind::kPageRelease);
  return 8 + kCallsOfUse * unrecorded + 4 * tries * ((segment + kPageBytes - 1) / kPageBytes) +
         4 * (ledger.calls(device::CallKind::kSegmentFree) + lost_pages) + released_pages +
         (searches + collections) * kCallsOfUse * (1 + heaps) + 4 * ledger.failures();
}

/// C17: a hit polls a few events, of whatever device, and asks for nothing else.
void judge_hit(CacheState& state) {
  const std::uint64_t queries = sum_over_devices(
      state, [](const CallLedger& each) { return each.calls(device::CallKind::kEventQuery); });
  const std::uint64_t others =
      sum_over_devices(state, [](const CallLedger& each) { return each.calls(); }) - queries;
  if (others != 0)
    state.verdict.report("C17", "a hit made ", others, " device calls beside its polls");
  if (queries > kHitPollsMax) state.verdict.report("C17", "a hit polled ", queries, " events");
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
    return each.ledger.failures() != each.ledger.refused_growths();
  });
}

bool is_gone_answer(CacheState& state, const JudgedDevice& device, Code code, const Stream* user) {
  const Code end = end_of(state, device);
  if (device.was_gone && code != end)
    state.verdict.report("C26", "the device is gone, but the call answered ", code_name(code));
  if (end != Code::kOk && code == end) return true;
  const Code end_of_user = user == nullptr ? Code::kOk : end_of(state, state.at(user->device));
  return end_of_user != Code::kOk && code == end_of_user;
}

void judge_silence(CacheState& state) {
  for (const JudgedDevice& each : state.devices) {
    if (each.was_gone && each.ledger.calls() != 0)
      state.verdict.report("C26", "a device call was made after the device was gone");
  }
}

void judge_atomic(CacheState& state, const JudgedDevice& device, const JudgedCall& call,
                  bool had_view) {
  if (!(call.fails || call.is_query)) return;
  const CallLedger& ledger = device.ledger;
  // What is granted to a call that fails goes back in the same call, unless the device refuses it.
  // A range of addresses holds no memory: it stays.
  if (!state.rules.is_paged() && ledger.segments_entered() != 0 &&
      ledger.failed(device::CallKind::kSegmentFree) == 0)
    state.verdict.report("C13", "a call that failed kept a segment that it was granted");
  if (call.fails && ledger.gained_bytes() > ledger.lost_bytes() &&
      ledger.failed(device::CallKind::kPageUnmap) == 0 && !was_refused_by_host(state))
    state.verdict.report("C13", "a call that failed kept pages that it was granted");
  if (call.allocates || call.is_broken_off) return;
  for (const JudgedDevice& each : state.devices) {
    // By a failing call of another device this one may have learnt of its own end.
    if (each.id != device.id && each.ledger.any_failure()) continue;
    // Whom a handle names may be asked before the call is refused, and before that whether it captures.
    if (each.ledger.calls() != each.ledger.calls(device::CallKind::kIdentify) +
                                   each.ledger.calls(device::CallKind::kCaptureStatus))
      state.verdict.report("C13", call.is_query ? "a query" : "a call that was refused",
                           " made device calls");
  }
  if (had_view && device.map.is_fresh && device.books.completed_in_call() != 0)
    state.verdict.report("C13", call.is_query ? "a query" : "a call that was refused",
                         " completed pending blocks");
}

void judge_bounded(CacheState& state, const JudgedDevice& device, std::uint64_t rounded,
                   bool is_hit) {
  const CallLedger& ledger = device.ledger;
  const std::uint64_t others = ledger.calls() - ledger.calls(device::CallKind::kEventQuery);
  if (is_hit) return judge_hit(state);
  const std::uint64_t segment = growth_size(state, rounded);
  const std::uint64_t most = miss_calls_max(state, device, segment);
  if (others > most) {
    state.verdict.report("C17", "a miss made ", others, " device calls, ", most, " are allowed");
  }
  const std::uint64_t asked = ledger.witness().segment_asked();
  if (ledger.plain_asked() == 0) return;
  if (state.rules.is_paged() && !state.asked.has_segments())
    return judge_segment_of_pages(state, device, rounded);
  if (asked != segment)
    state.verdict.report("DEV-2", "a segment of ", asked, " bytes was asked for, not ", segment);
}

void judge_questions(CacheState& state, const JudgedDevice& device, const JudgedCall& call) {
  // A reclaim asks about everything that is pending, in each round of its wait; without a cache each miss does.
  if (!state.rules.caches() || retry_in(state, device, call) != Happened::kNo) return;
  const std::uint64_t heaps = device.recount.heaps.size();
  const std::uint64_t most = kMissPollsMax * (1 + (state.world.calls_back != 0)) + kHitPollsMax +
                             kQuestionsPerHeap * (1 + heaps) + kQuestionsOfOthers +
                             kQuestionsOfNewStream +
                             (may_collect(state, device) ? kMarksAsked * heaps : 0);
  const std::uint64_t queries = device.ledger.calls(device::CallKind::kEventQuery);
  if (queries > most)
    state.verdict.report("C17", "a miss asked about ", queries, " events, ", most, " are allowed");
  const std::uint64_t covers = device.ledger.calls(device::CallKind::kCaptureCovers);
  if (covers > kCoversMax * (1 + (state.world.calls_back != 0)))
    state.verdict.report("C17", "a miss asked ", covers, " times about the order of a graph");
}

std::uint64_t calls_max_of_uses(std::uint64_t uses, bool names_stream) {
  return kCallsOfUse * uses + (names_stream ? kCallsOfNewStream : 0);
}

void judge_short_call(CacheState& state, const JudgedCall& call) {
  if (call.device_calls_max == ~std::uint64_t{0}) return;
  std::uint64_t calls = 0;
  std::uint64_t most = call.device_calls_max;
  for (const JudgedDevice& each : state.devices) {
    const CallLedger& ledger = each.ledger;
    calls += ledger.calls();
    if (call.frees && !state.rules.caches()) {
      // It asks about all that is pending, and gives back what is done.
      calls -= ledger.calls(device::CallKind::kEventQuery) + ledger.plain_freed();
      most += 8 * (1 + each.recount.heaps.size()) + kCallsOfUse * unrecorded_uses_max(state, each);
    }
    for (const device::CallKind kind :
         {device::CallKind::kSegmentAlloc, device::CallKind::kSegmentFree,
          device::CallKind::kStreamAlloc, device::CallKind::kStreamFree,
          device::CallKind::kAddressReserve, device::CallKind::kPageCreate,
          device::CallKind::kPageMap, device::CallKind::kPageUnmap}) {
      const bool may_call =
          (kind == device::CallKind::kSegmentFree || kind == device::CallKind::kStreamFree) &&
          call.frees && !state.rules.caches();
      if (ledger.calls(kind) != 0 && !may_call)
        state.verdict.report("C17", "a call that is no allocation called ",
                             device::call_name(kind));
    }
    if (ledger.waits() != 0) state.verdict.report("C17", "a call that is no allocation waited");
  }
  if (calls > most)
    state.verdict.report("C17", "a call that is no allocation made ", calls, " device calls, ",
                         most, " are allowed");
}

}  // namespace ashlar::spec
