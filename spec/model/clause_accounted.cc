// C15, DEV-13: every statistic against the recount of the map and the judge's own history.
//
//   current     equals the recount, where the map is fresh; otherwise those that need no map:
//               allocations, segments, bytes of both
//   increased, peak   within StatBounds (stat_bounds.h); increased - decreased == current - what was
//               held at the last reset of totals, always
//   the rest    counted: calls by kind, waits, out-of-memories; retries and steals by
//               clause_ladder.cc
#include <set>
#include <string>

#include "spec/model/cache_clauses.h"

namespace ashlar::spec {

namespace {

constexpr const char* kPoolNames[cache::kStatPools] = {"", " (small)", " (large)"};

void expect_stat(Verdict& verdict, const char* name, std::uint64_t is, std::uint64_t must) {
  if (is != must) verdict.report("C15", name, " is ", is, ", the recount says ", must);
}

/// The count must be within its bounds; what is read settles what was in doubt.
void settle_count(Verdict& verdict, const char* name, std::uint64_t is, BoundedCount* count) {
  if (is < count->least || is > count->most) {
    verdict.report("C15", name, " is ", is, ", must be in ", count->least, " .. ", count->most);
  }
  *count = {is, is};
}

/// `start`: what was held when totals were last reset.
bool is_consistent(const cache::Stat& stat, std::uint64_t start) {
  return start + stat.increased - stat.decreased == stat.current &&
         stat.decreased <= start + stat.increased && stat.peak >= stat.current;
}
bool is_risen_as_counted(const cache::Stat& stat, std::uint64_t increased, bool is_exact) {
  return is_exact ? stat.increased == increased : stat.increased >= increased;
}

/// Names what is wrong with the figure, where something is.
[[gnu::noinline]] void report_figure(const CacheState& state, const JudgedDevice& device,
                                     unsigned figure, unsigned pool, Verdict& verdict) {
  const cache::Stat& stat = figure_of(device.stats, figure)[pool];
  const unsigned i = figure * cache::kStatPools + pool;
  const std::string name = std::string(kFigureRows[figure].name) + kPoolNames[pool];
  const std::uint64_t increased = device.bounds.increased().cell[i];
  const bool is_exact = !is_segment_figure(figure) && !is_split_figure(figure);
  const std::uint64_t start = device.bounds.start().cell[i];
  if (!is_consistent(stat, start) || !is_risen_as_counted(stat, increased, is_exact)) {
    return verdict.report("C15", name, ": current ", stat.current, ", peak ", stat.peak,
                          ", increased ", stat.increased, ", decreased ", stat.decreased,
                          ", rises counted ", increased, ", at the start ", start);
  }
  if (!device.map.is_fresh) return;
  expect_stat(verdict, name.c_str(), stat.current, device.recount.sum.cell[i]);
  if (state.has_lost_peaks) return;
  const std::uint64_t least = device.bounds.peak_least().cell[i];
  const std::uint64_t most = device.bounds.peak_most().cell[i];
  const bool has_upper_bound = state.walks_every_call || !is_split_figure(figure);
  if (stat.peak < least || (has_upper_bound && stat.peak > most)) {
    verdict.report("C15", name, "'s peak is ", stat.peak, ", must be in ", least, " .. ", most);
  }
}

/// The figures of one kind, every pool; is one of them not what it must be?
bool is_any_wrong(const JudgedDevice& device, unsigned figure) {
  const cache::StatByPool& stats = figure_of(device.stats, figure);
  const unsigned first = figure * cache::kStatPools;
  const bool is_exact = !is_segment_figure(figure) && !is_split_figure(figure);
  bool is_wrong = false;
  for (unsigned pool = 0; pool < cache::kStatPools; ++pool) {
    const cache::Stat& stat = stats[pool];
    const unsigned i = first + pool;
    is_wrong |= !is_consistent(stat, device.bounds.start().cell[i]);
    is_wrong |= !is_risen_as_counted(stat, device.bounds.increased().cell[i], is_exact);
    if (!device.map.is_fresh) continue;
    is_wrong |= stat.current != device.recount.sum.cell[i];
    is_wrong |= stat.peak < device.bounds.peak_least().cell[i];
    is_wrong |= stat.peak > device.bounds.peak_most().cell[i];
  }
  return is_wrong;
}

void judge_figures(const CacheState& state, const JudgedDevice& device, Verdict& verdict) {
  for (unsigned figure = 0; figure < kFigures; ++figure) {
    if (!is_any_wrong(device, figure)) continue;
    for (unsigned pool = 0; pool < cache::kStatPools; ++pool)
      report_figure(state, device, figure, pool, verdict);
  }
}

/// Segments that the device gave out, less those that went back in the same call.
std::uint64_t segments_kept(const DeviceWitness& witness) {
  std::uint64_t granted = 0;
  for (const device::CallKind kind :
       {device::CallKind::kSegmentAlloc, device::CallKind::kStreamAlloc,
        device::CallKind::kAddressReserve})
    granted += witness.calls_of(kind) - witness.failures_of(kind);
  return granted - witness.grants().undone();
}

/// Waits on every device, so far.
std::uint64_t waits_in_all(const CacheState& state) {
  std::uint64_t waits = 0;
  for (const JudgedDevice& each : state.devices) {
    waits += each.ledger.witness().calls_of(device::CallKind::kEventSynchronize) +
             each.ledger.witness().calls_of(device::CallKind::kSynchronize) -
             each.ledger.witness().waits().questions;
  }
  return waits;
}

/// What is known without a map.
void judge_totals(CacheState& state, const JudgedDevice& device) {
  Verdict& verdict = state.verdict;
  const cache::DeviceStats& stats = device.stats;
  const DeviceWitness& witness = device.ledger.witness();
  for (unsigned pool = 0; pool < cache::kStatPools; ++pool) {
    expect_stat(verdict, "allocations", stats.allocations[pool].current, device.books.live(pool));
    expect_stat(verdict, "allocated_bytes", stats.allocated_bytes[pool].current,
                device.books.live_bytes(pool));
  }
  expect_stat(verdict, "segments", stats.segments[0].current, witness.segments().size());
  if (!has_refused_pages(state, device))
    expect_stat(verdict, "reserved_bytes", stats.reserved_bytes[0].current,
                witness.reserved_bytes());
  expect_stat(verdict, "segments increased", stats.segments[0].increased,
              segments_kept(witness) - device.totals_start.segments);
}

void judge_device_calls(const JudgedDevice& device, Verdict& verdict) {
  DeviceWitness::Counts must = device.ledger.witness().calls();
  for (unsigned kind = 0; kind < device::kCallKinds; ++kind)
    must[kind] -= device.totals_start.device_calls[kind];
  if (device.stats.device_calls == must) return;
  for (unsigned kind = 0; kind < device::kCallKinds; ++kind) {
    expect_stat(verdict, device::call_name(static_cast<device::CallKind>(kind)),
                device.stats.device_calls[kind], must[kind]);
  }
}

/// Out-of-memories, retries, steals, waits; DEV-13.
void judge_ladder_counts(CacheState& state, JudgedDevice& device) {
  const cache::DeviceStats& stats = device.stats;
  expect_stat(state.verdict, "ooms", stats.ooms, device.ladder.ooms);
  settle_count(state.verdict, "alloc_retries", stats.alloc_retries, &device.ladder.retries);
  settle_count(state.verdict, "steals", stats.steals, &device.ladder.steals);
  if (state.world.shortages_observed != state.world.shortages) {
    state.verdict.report("DEV-13", "an observer was not told of an out-of-memory, or told twice");
  }
  // A wait for a use on another device's stream is made on that device, and counted where memory
  // was short.
  const std::uint64_t waits = waits_in_all(state) - device.totals_start.waits;
  if (stats.waits > waits || state.devices.size() == 1)
    expect_stat(state.verdict, "waits", stats.waits, waits);
}

/// Blocks and segments of max_split_size or more.
void judge_oversize(CacheState& state, const JudgedDevice& device) {
  std::uint64_t live = 0;
  std::uint64_t active = 0;
  std::uint64_t segments = 0;
  if (state.rules.has_max_split_size()) {
    const std::uint64_t oversize = state.rules.max_split_size();
    for (const cache::SnapshotSegment& segment : device.map.view.segments)
      segments += segment.size.count() >= oversize;
    for (const cache::SnapshotBlock& block : device.map.view.blocks) {
      const bool is_oversize = block.size.count() >= oversize;
      live += is_oversize && block.state == BlockState::kLive;
      active += is_oversize && block.state != BlockState::kFree;
    }
  }
  const cache::DeviceStats& stats = device.stats;
  expect_stat(state.verdict, "oversize_segments", stats.oversize_segments.current, segments);
  const std::uint64_t allocations = stats.oversize_allocations.current;
  if (allocations < live || allocations > active)
    expect_stat(state.verdict, "oversize_allocations", allocations, live);
}

void judge_oversize_totals(const JudgedDevice& device, Verdict& verdict) {
  const cache::DeviceStats& stats = device.stats;
  if (!is_consistent(stats.oversize_allocations, device.totals_start.oversize_allocations))
    verdict.report("C15", "oversize_allocations: totals, peak and current do not agree");
  if (!is_consistent(stats.oversize_segments, device.totals_start.oversize_segments))
    verdict.report("C15", "oversize_segments: totals, peak and current do not agree");
}

}  // namespace

namespace {

/// C15: every stream with memory has a record.
void judge_streams(CacheState& state, const JudgedDevice& device) {
  std::set<std::uint64_t> with_memory;
  for (const cache::SnapshotSegment& segment : device.map.view.segments)
    with_memory.insert(heap_of(segment));
  if (device.stats.streams < with_memory.size())
    state.verdict.report("C15", "streams is ", device.stats.streams, ", but ", with_memory.size(),
                         " have memory");
}

}  // namespace

void judge_accounted(CacheState& state, JudgedDevice& device) {
  if (!state.verdict.is_good()) return;
  if (!state.subject.stats(device.id, &device.stats).is_ok())
    return state.verdict.report("C15", "no statistics could be read");
  judge_totals(state, device);
  judge_device_calls(device, state.verdict);
  judge_ladder_counts(state, device);
  judge_figures(state, device, state.verdict);
  judge_oversize_totals(device, state.verdict);
  if (!device.map.is_fresh) return;
  judge_oversize(state, device);
  judge_streams(state, device);
}

void restart_totals(CacheState& state, JudgedDevice& device) {
  if (!state.verdict.is_good()) return;
  if (!state.subject.stats(device.id, &device.stats).is_ok())
    return state.verdict.report("C15", "no statistics could be read");
  const DeviceWitness& witness = device.ledger.witness();
  // The oversize figures' current values are judged at every reading.
  device.totals_start = {.device_calls = witness.calls(),
                         .waits = waits_in_all(state),
                         .segments = segments_kept(witness),
                         .oversize_allocations = device.stats.oversize_allocations.current,
                         .oversize_segments = device.stats.oversize_segments.current};
  device.ladder = {};
  device.bounds.reset_totals(device.recount);
}

}  // namespace ashlar::spec
