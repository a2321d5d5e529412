// The protocol of judging, walks, and allocations: see cache_model.h.
#include "spec/model/cache_model.h"

#include <algorithm>

#include "spec/model/cache_clauses.h"
#include "spec/model/settings.h"

namespace ashlar::spec {

namespace {

/// A request over this is refused (row DEV-20).
constexpr std::uint64_t kRequestMax = std::uint64_t{1} << 60;

/// What most worlds stay below, so that theirs do not grow step by step.
void make_room(MapView* map) {
  constexpr std::size_t kSegments = 16;
  constexpr std::size_t kBlocks = 64;
  if (map->next.segments.capacity() != 0) return;
  map->next.segments.reserve(kSegments);
  map->next.blocks.reserve(kBlocks);
}

/// Did a device refuse a growth so? Another one may have refused access to new pages.
bool any_refused_growth(const CacheState& state, Code code) {
  return std::any_of(state.devices.begin(), state.devices.end(), [code](const JudgedDevice& each) {
    return each.ledger.witness().has_refused_growth(code);
  });
}

/// Which segments had blocks released, for DEV-13.
void note_releases(JudgedDevice* device, std::uint64_t walk) {
  for (const std::uint64_t address : device->books.released()) {
    const cache::SnapshotSegment* const segment = find_segment(device->map.view.segments, address);
    if (segment == nullptr) continue;  // given back in the same call
    std::vector<std::uint64_t>& in_walk = device->releases.found_in;
    if (in_walk.size() <= segment->ordinal) in_walk.resize(segment->ordinal + 1);
    in_walk[segment->ordinal] = walk;
  }
}

}  // namespace

CacheModel::CacheModel(CacheSubject& subject, const std::vector<DeviceWitness*>& witnesses,
                       const Options& options)
    : state_(subject, options.settings.value_or(subject.config())),
      schedule_(options.walk_every, options.stats_every, options.validate_every) {
  state_.walks_every_call = schedule_.walks_every_call();
  state_.reads_every_call = schedule_.reads_stats_every_call();
  state_.world.host_refusals = options.host_refusals;
  state_.devices.reserve(witnesses.size());
  state_.histories.resize(witnesses.size());
  for (std::size_t i = 0; i < witnesses.size(); ++i) {
    const DeviceId id{static_cast<std::int32_t>(i)};
    state_.devices.emplace_back(id, *witnesses[i], options.walker());
    state_.devices.back().map.is_fresh = true;  // nothing is held yet
    if (i < options.sources.size()) state_.devices.back().ledger.set_source(options.sources[i]);
    if (state_.rules.is_paged() && state_.rules.config().reuse == cache::Reuse::kOwn)
      state_.devices.back().bounds.let_heaps_pass_on_splits();
  }
}

// The protocol.

void CacheModel::begin(DeviceId device, bool is_quiet) {
  if (state_.world.callbacks != 0) return;  // inside another call, which is judged as a whole
  state_.world.callback_ran = false;
  state_.world.calls_back = 0;
  state_.world.is_quiet = is_quiet;
  if (state_.world.host_refusals) state_.world.host_refusals_before = state_.world.host_refusals();
  current_ = device;
  for (JudgedDevice& each : state_.devices) {
    each.ledger.begin();
    each.was_gone = spec::end_of(state_, each) != Code::kOk;
  }
}

namespace {

std::uint64_t mapped_bytes(const CallLedger& ledger) {
  return ledger.done(device::CallKind::kPageMap) * kPageBytes;
}

/// How many pages went back or moved in a call, or were to go and stayed, because the device refused; at
/// least one if it gave back a segment and reserved addresses. Then what it held in between is not known.
std::uint64_t pages_gone(const CallLedger& ledger) {
  const std::uint64_t mapped = mapped_bytes(ledger);
  const std::uint64_t moved = mapped - std::min(mapped, ledger.gained_bytes());
  const std::uint64_t pages =
      (ledger.lost_bytes() + moved) / kPageBytes + ledger.failed(device::CallKind::kPageUnmap);
  const bool is_mixed =
      ledger.done(device::CallKind::kAddressReserve) != 0 && ledger.segments_returned() != 0;
  return std::max(pages, is_mixed ? std::uint64_t{1} : 0);
}

}  // namespace

void CacheModel::end(JudgedDevice& device, JudgedCall call) {
  if (state_.world.callbacks != 0) return;
  schedule_.count_call();
  judge_silence(state_);
  const bool had_view = device.map.is_fresh;
  const bool is_shortage = call.fails && (call.allocates || call.lacks_addresses);
  device.map.is_fresh = false;
  const CallLedger& ledger = device.ledger;
  const std::uint64_t segments = ledger.segments_entered();
  // In a world of pages a memory pool without splits has segments.
  const std::uint64_t plain = state_.rules.is_paged() ? ledger.plain_granted() : segments;
  const std::uint64_t plain_bytes = plain * ledger.witness().segment_asked();
  device.bounds.add_call(segments,
                         std::max(ledger.gained_bytes(), mapped_bytes(ledger)) + plain_bytes,
                         pages_gone(ledger));
  const bool learns_heap = call.stream == kNoHeap && call.allocates;
  if (schedule_.walk_is_due() || is_shortage || learns_heap) {
    walk(device);
    follow_pool_heap(state_, device, call);
  } else if (call.allocates) {
    // By the next walk the heap may hold nothing again; what it can have held is judged then.
    device.recount.heap_of(call.stream);
  }
  count_ladder(state_, device, call, had_view);
  judge_collected(state_, device, call, had_view, schedule_.walks());
  judge_room(state_, device, call, had_view);
  judge_atomic(state_, device, call, had_view);
  judge_page_budget(state_, device);
  judge_isolated(state_, device, call, had_view);
  judge_source(state_, device, call);
  judge_short_call(state_, call);
  judge_conduct(state_, device, call, had_view);
  judge_limit(state_, device);
  judge_uncached(state_, device, call);
  // Without a cache an allocation and a free mark every alive stream.
  const bool marks = !state_.rules.caches() && (call.allocates || call.frees);
  if (marks && !state_.streams.is_capturing() && !any_failure_but_growth(state_))
    device.releases.marked_in = schedule_.walks();
  judge_backing(state_);
  const std::uint64_t streams_known = device.stats.streams;
  if (!schedule_.stats_are_due()) return;
  judge_accounted(state_, device);
  judge_no_trace(state_, device, call, streams_known);
}

void CacheModel::walk(JudgedDevice& device, bool is_whole) {
  // What a walk would report comes too late, and one that ends early leaves its walker half way.
  if (!verdict().is_good()) return;
  schedule_.count_walk();
  if (schedule_.validation_is_due()) judge_structure();
  make_room(&device.map);
  cache::Snapshot& next = device.map.next;
  const std::vector<DeviceWitness::Held>& held = device.ledger.witness().segments();
  if (!state_.subject.snapshot(device.id, &next).is_ok())
    return report("C3", "no snapshot could be taken");
  if (next.segments.size() != held.size()) {
    return report("C14", "the snapshot has ", next.segments.size(),
                  " segments, the device gave out ", held.size());
  }
  device.walker->walk({.before = device.map.view,
                       .now = next,
                       .held = held,
                       .rules = {state_.rules.granule(), state_.streams.any_lost(), &state_.streams,
                                 &state_.pools, spec::end_of(state_, device) != Code::kOk},
                       .books = device.books,
                       .recount = device.recount,
                       .verdict = state_.verdict},
                      is_whole);
  if (!verdict().is_good()) return;
  std::swap(device.map.view, next);
  device.map.is_fresh = true;
  judge_pages(state_, device);
  judge_shown_backing(state_, device);
  note_releases(&device, schedule_.walks());
  device.bounds.raise(device.recount, device.books.completed_since_walk(),
                      device.ledger.witness().taken_bytes());
  device.books.end_walk();
}

void CacheModel::judge_structure() {
  if (state_.world.callbacks != 0) return;  // inside a call, the subject is not at rest
  if (const char* broken = state_.subject.validate())
    report("C5", "the subject's own walk: ", broken);
}

void CacheModel::judge_maps() {
  for (JudgedDevice& device : state_.devices) {
    // the last call's judgement still stands
    if (device.map.is_fresh && schedule_.reads_stats_every_call()) continue;
    device.books.begin_call();
    walk(device, true);
    judge_accounted(state_, device);
  }
}

void CacheModel::resume_walks() {
  if (!schedule_.is_deferring()) return;
  schedule_.set_deferring(false);
  state_.has_lost_peaks = true;
  judge_maps();
}

void CacheModel::judge_empty(DeviceId id) {
  JudgedDevice& device = state_.at(id);
  if (!device.map.is_fresh) walk(device);
  if (!device.books.owned().empty())
    report("C14", "after everything was freed, a free is still pending");
  if (!device.ledger.witness().segments().empty() ||
      device.ledger.witness().pages().held_bytes() != 0) {
    report("C14", "after everything was freed and trimmed, ", reserved_bytes(id),
           " bytes are still reserved");
  }
}

// Queries.

bool CacheModel::is_live_anywhere(std::uint64_t address) const {
  for (const JudgedDevice& device : state_.devices) {
    if (device.books.find_live(address) != nullptr) return true;
  }
  return false;
}

std::uint64_t CacheModel::live_count() const {
  std::uint64_t count = 0;
  for (const JudgedDevice& device : state_.devices) count += device.books.live();
  return count;
}

void CacheModel::live_addresses(DeviceId device, std::vector<std::uint64_t>* addresses) const {
  addresses->clear();
  for (const auto& [address, block] : state_.at(device).books.owned()) {
    if (!block.is_pending) addresses->push_back(address);
  }
}

Code CacheModel::end_of(DeviceId device) const { return spec::end_of(state_, state_.at(device)); }

// Allocations.

void CacheModel::judge_allocate(std::uint64_t tag, std::uint64_t size, const Stream& stream,
                                const Result<Address>& got, const cache::OutOfMemory& account) {
  if (state_.world.callbacks != 0) {
    if (got.code() != Code::kReentrant)
      report("C24", "an allocation in a callback answered ", code_name(got.code()));
    return;
  }
  JudgedDevice& device = state_.at(stream.device);
  device.books.begin_call();
  JudgedCall call;
  call.is_allocation = true;
  if (size == 0 && got.is_ok()) {
    if (!got.value().is_null()) report("DEV-20", "zero bytes did not give the null address");
    return end(device, call);
  }
  call.fails = true;
  call.is_broken_off =
      device.ledger.any_failure() || (state_.rules.is_paged() && any_failure_but_growth(state_));
  if (is_gone_answer(state_, device, got.code())) {
    // Of the driver's unloading it may have learnt on another device, whose stream used memory of this.
    call.is_broken_off = sum_over_devices(state_, [](const CallLedger& each) {
                           return std::uint64_t{each.any_failure()};
                         }) != 0;
    return end(device, call);
  }
  if (size > kRequestMax) {
    call.is_broken_off = false;
    if (got.code() != Code::kSizeOverflow)
      report("C16", "a request over 1 EiB was not refused as kSizeOverflow");
    return end(device, call);
  }
  // To the judge a memory pool's heap is that of a stream of its own.
  const std::vector<Stream> parents = state_.streams.parents_of(stream);
  const MemoryPoolBook::Pool* const pool = state_.pools.routed(parents);
  if (pool != nullptr && state_.streams.has_body(stream))
    return judge_refused(device, got.status(), Code::kBusy, Code::kBusy,
                         "an allocation beside a body of the stream's capture");
  call.lacks_addresses = got.code() == Code::kOutOfAddresses;
  state_.asked = {};
  if (pool != nullptr)
    state_.asked = {true, pool->id, pool->options.no_split, pool->options.growth != nullptr};
  const Stream owner = pool == nullptr ? stream : parents.back();
  Stream asking = owner;
  call.capture = state_.streams.capture_of(stream);
  if (pool != nullptr) {
    call.pool = pool->id;
    asking.id = StreamId{MemoryPoolBook::heap_in(*pool, owner.id.value())};
  }
  judge_served(device, tag, size, owner, asking, got, account, call);
  const OwnedBlock* const given =
      got.is_ok() ? device.books.find_live(got.value().value()) : nullptr;
  if (given != nullptr && !call.pool.is_default())
    state_.pools.note_given(device.id, call.pool, got.value().value(), given->size);
  state_.asked = {};
}

/// An allocation that a device which is there was to serve. `named` is the stream whose memory it is,
/// `stream` is what the judge takes for it (judge_allocate).
void CacheModel::judge_served(JudgedDevice& device, std::uint64_t tag, std::uint64_t size,
                              const Stream& named, const Stream& stream, const Result<Address>& got,
                              const cache::OutOfMemory& account, JudgedCall call) {
  const std::uint64_t rounded = state_.rules.rounded(size);
  const std::uint64_t address = got.is_ok() ? got.value().value() : 0;
  const cache::SnapshotBlock* const best =
      device.map.is_fresh ? best_fit(state_.rules, device.map.view, stream.id.value(), rounded)
                          : nullptr;
  const std::uint64_t best_address = best == nullptr ? 0 : best->address.value();
  const bool had_view = device.map.is_fresh;
  call.is_hit = best != nullptr;
  call.takes_own_fit = best != nullptr && address == best_address;
  if (got.is_ok()) {
    follow_allocation(state_, device, tag, size, named, address);
    call.fails = call.is_broken_off = false;
    call.allocates = true;
  } else if (got.code() == Code::kOutOfMemory) {
    call.allocates = true;
    ++device.ladder.ooms;
    ++state_.world.shortages;
  } else if (got.code() == Code::kHostOutOfMemory) {
    judge_host_refusal(state_, device, rounded, account);
    call.is_broken_off = true;
  } else if (!any_refused_growth(state_, got.code())) {
    const bool is_gone = end_of(stream.device) != Code::kOk;
    report(is_gone ? "C26" : "C16", "an allocation answered ", code_name(got.code()),
           ", as no device call did");
  }
  call.named = named.id;
  call.stream = stream.id.value();
  call.address = address;
  call.requested = size;
  judge_returns(state_, device, rounded, stream);
  judge_time(state_, device);
  judge_called_back(state_, device, got.code() == Code::kOutOfMemory);
  end(device, call);
  if (!verdict().is_good()) return;
  // A poll may merge the block that fitted into one too large to take (max_split_size): a miss,
  // then. Without the map after the call nobody knows whether one did.
  const bool has_completed = device.books.completed_in_call() != 0;
  const bool may_outgrow =
      state_.rules.has_max_split_size() && (has_completed || !device.map.is_fresh);
  const bool callback_ran = state_.world.callback_ran;
  // Nor is one a hit that the host refused memory at first.
  const bool is_hit = call.is_hit && !callback_ran && !may_outgrow && !was_refused_by_host(state_);
  judge_bounded(state_, device, rounded, is_hit);
  if (!is_hit && call.allocates) judge_questions(state_, device, call);
  if (got.code() == Code::kOutOfMemory) {
    judge_complete(state_, device, size, stream, account.wait_ran_out);
    judge_account(state_, device, size, stream, account);
    if (!state_.streams.is_capturing() && !any_failure_but_growth(state_))
      device.releases.marked_in = schedule_.walks();
  }
  if (got.code() == Code::kOutOfAddresses) judge_addresses(state_, device);
  if (got.is_ok() && !has_completed && !callback_ran) judge_cut(state_, device, call, had_view);
  const GivenPlace place{stream.id.value(), rounded, address};
  const bool is_judged = device.map.is_fresh && !has_completed && !callback_ran;
  if (got.is_ok() && is_judged) judge_fit(state_, device, place, best_address);
  if (got.is_ok() && state_.rules.is_paged()) device.books.note_place(place);
}

}  // namespace ashlar::spec
