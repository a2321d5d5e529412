// C15: every statistic against the recount of the map and the model's own history.
//
//   current     equals the recount, at a walk; between walks those that need no map: allocations,
//               segments, bytes of both
//   increased   equals the model's sum of rises; of free splits, at least what walks saw rise.
//               increased - decreased == current, always
//   peak        between what walks saw and what the calls since the walk before can have added:
//               equal where every call is walked, one heap allocates and nothing completes. A
//               device's is the sum of its heaps' (stats.h). Free splits have no upper bound where
//               not every call is walked: a call may make and lose any number
//   the rest    counted: calls by kind, waits, out-of-memories; retries and steals by
//   cache_ladder.cc
#include <algorithm>
#include <bit>
#include <cstring>

#include "spec/model/cache_model.h"

namespace ashlar::spec {

namespace {

constexpr const char* kPoolNames[cache::kStatPools] = {"", " (small)", " (large)"};

bool is_segment_figure(unsigned figure) {
  return figure == number_of(Figure::kSegments) || figure == number_of(Figure::kReservedBytes);
}
bool is_split_figure(unsigned figure) {
  return figure == number_of(Figure::kInactiveSplits) ||
         figure == number_of(Figure::kInactiveSplitBytes);
}
constexpr FigureSet figure_bit(unsigned figure, unsigned pool) {
  return FigureSet{1} << (figure * cache::kStatPools + pool);
}
constexpr FigureSet every_pool(Figure figure) {
  return figure_bit(number_of(figure), 0) | figure_bit(number_of(figure), 1) |
         figure_bit(number_of(figure), 2);
}
constexpr FigureSet kSegmentFigures =
    every_pool(Figure::kSegments) | every_pool(Figure::kReservedBytes);
/// Of small and large alone: those of both are their sums.
constexpr FigureSet kSplitFigures =
    (every_pool(Figure::kInactiveSplits) | every_pool(Figure::kInactiveSplitBytes)) &
    ~(figure_bit(number_of(Figure::kInactiveSplits), 0) |
      figure_bit(number_of(Figure::kInactiveSplitBytes), 0));

}  // namespace

void CacheModel::expect_stat(const char* name, std::uint64_t is, std::uint64_t must) {
  if (is != must) report("C15", name, " is ", is, ", the recount says ", must);
}

/// Every figure in one pass without a branch: conserved, risen as much as counted, and (where the
/// map is fresh) as the recount and within its peak's bounds. What is wrong is worked out by
/// explain_figures and explain_peaks.
bool CacheModel::has_wrong_figure(const Device& device, const cache::DeviceStats& stats) {
  const std::uint64_t* raised = &device.raised[0][0];
  const std::uint64_t* sum = &device.sum[0][0];
  const std::uint64_t* least = &device.peaks_least[0][0];
  const std::uint64_t* most = &device.peaks_most[0][0];
  const std::uint64_t is_fresh = device.is_fresh ? ~std::uint64_t{0} : 0;
  std::uint64_t wrong = 0;
  for (unsigned figure = 0; figure < kFigures; ++figure) {
    const std::uint64_t is_counted =
        is_segment_figure(figure) || is_split_figure(figure) ? 0 : ~std::uint64_t{0};
    const cache::Stat* stat = figure_of(stats, figure).data();
    for (unsigned pool = 0; pool < cache::kStatPools;
         ++pool, ++stat, ++raised, ++sum, ++least, ++most) {
      const cache::Stat is = *stat;
      const std::uint64_t must_rise = *raised;
      wrong |= (is.increased - is.decreased) ^ is.current;
      wrong |= (is.increased ^ must_rise) & is_counted;
      wrong |= static_cast<std::uint64_t>(is.increased < must_rise || is.decreased > is.increased);
      wrong |= (is.current ^ *sum) & is_fresh;
      wrong |= static_cast<std::uint64_t>(is.peak < is.current);
      wrong |= static_cast<std::uint64_t>(is.peak < *least || is.peak > *most) & is_fresh;
    }
  }
  return wrong != 0;
}

void CacheModel::explain_figures(const Device& device, const cache::DeviceStats& stats) {
  for (unsigned figure = 0; figure < kFigures; ++figure) {
    for (unsigned pool = 0; pool < cache::kStatPools; ++pool) {
      const cache::Stat& stat = figure_of(stats, figure)[pool];
      const std::string name = std::string(kFigureRows[figure].name) + kPoolNames[pool];
      const std::uint64_t raised = device.raised[figure][pool];
      const bool is_conserved = stat.increased - stat.decreased == stat.current &&
                                stat.peak >= stat.current && stat.decreased <= stat.increased;
      const bool is_counted = !is_segment_figure(figure) && !is_split_figure(figure);
      if (is_conserved && stat.increased >= raised && (!is_counted || stat.increased == raised)) {
        if (device.is_fresh) expect_stat(name.c_str(), stat.current, device.sum[figure][pool]);
        continue;
      }
      return report("C15", name, ": current ", stat.current, ", peak ", stat.peak, ", increased ",
                    stat.increased, ", decreased ", stat.decreased, ", rises counted ", raised);
    }
  }
}

/// The call just judged, for the bounds at the next walk.
void CacheModel::note_added(Device& device, const Call& call) {
  Added& added = device.added;
  added.calls += 1;
  const std::uint64_t grants = delta(device, device::CallKind::kSegmentAlloc) -
                               failed(device, device::CallKind::kSegmentAlloc);
  added.grants += grants;
  added.granted_bytes += grants * device.witness->segment_asked();
  if (!call.allocates || call.fails) return;
  if (!walk_is_due()) heap_of(device, call.stream);  // by the next walk it may hold nothing again
  for (const unsigned pool : {0u, call.pool}) {
    added.blocks[pool] += 1;
    added.bytes[pool] += call.size;
    added.requested[pool] += call.requested;
  }
}

/// Brings every bound up to date with the map of the walk just made.
void CacheModel::raise_bounds(Device& device) {
  const Added& added = device.added;
  Rises& rises = rises_;
  rises.set = 0;
  if (added.blocks[0] != 0 || added.completed != 0) note_rises(added, &rises);
  const bool may_rise = added.completed != 0 || (added.calls > 1 && added.blocks[0] != 0);
  for (HeapFigures& heap : device.heaps) {
    // What has not risen on this heap, and cannot have between the walks, is within its bounds as
    // it was: most calls touch few figures of one heap of several.
    const FigureSet figures = heap.risen | (heap.has_changed || may_rise ? rises.set : 0);
    if (figures != 0) raise_heap_bounds(device, heap, figures & ~kSegmentFigures, rises);
  }
  if (device.has_segment_change || added.grants != 0) raise_segment_bounds(device);
  device.added = {};
}

void CacheModel::note_rises(const Added& added, Rises* rises) {
  const auto rise = [rises](Figure figure, unsigned pool, std::uint64_t by) {
    rises->set |= figure_bit(number_of(figure), pool);
    rises->by[number_of(figure) * cache::kStatPools + pool] = by;
  };
  for (unsigned pool = 0; pool < cache::kStatPools; ++pool) {
    if (added.blocks[pool] != 0) {
      rise(Figure::kAllocations, pool, added.blocks[pool]);
      rise(Figure::kActive, pool, added.blocks[pool]);
      rise(Figure::kAllocatedBytes, pool, added.bytes[pool]);
      rise(Figure::kActiveBytes, pool, added.bytes[pool]);
      rise(Figure::kRequestedBytes, pool, added.requested[pool]);
    }
    if (added.completed == 0) continue;
    // Every block that completes may make a split before the next one merges it away.
    rise(Figure::kInactiveSplits, pool, added.completed);
    rise(Figure::kInactiveSplitBytes, pool, added.completed_bytes);
  }
}

/// The device's bounds of segments are raise_segment_bounds'.
void CacheModel::raise_heap_bounds(Device& device, HeapFigures& heap, FigureSet figures,
                                   const Rises& rises) {
  const std::uint64_t* now = &heap.now[0][0];
  std::uint64_t* least = &heap.peak_least[0][0];
  std::uint64_t* most = &heap.peak_most[0][0];
  for (; figures != 0; figures &= figures - 1) {
    const FigureSet bit = figures & (~figures + 1);
    const auto i = static_cast<unsigned>(std::countr_zero(figures));
    const std::uint64_t is = now[i];
    const std::uint64_t was = (heap.changed & bit) != 0 ? (&heap.before[0][0])[i] : is;
    const std::uint64_t high = std::max(is, was + ((rises.set & bit) != 0 ? rises.by[i] : 0));
    if (is > was && (bit & kSplitFigures) != 0) {
      std::uint64_t* const raised = &device.raised[i / cache::kStatPools][0];
      raised[0] += is - was;
      raised[i % cache::kStatPools] += is - was;
    }
    if (is > least[i]) {
      (&device.peaks_least[0][0])[i] += is - least[i];
      least[i] = is;
    }
    if (high > most[i]) {
      (&device.peaks_most[0][0])[i] += high - most[i];
      most[i] = high;
    }
  }
}

/// Segments are kept device-wide. One grant in one call: their peaks exactly. Else some may have
/// gone before others came: at most what was held and every grant since.
void CacheModel::raise_segment_bounds(Device& device) {
  const Added& added = device.added;
  for (const Figure figure : {Figure::kSegments, Figure::kReservedBytes}) {
    const std::uint64_t granted =
        figure == Figure::kReservedBytes ? added.granted_bytes : added.grants;
    for (unsigned pool = 0; pool < cache::kStatPools; ++pool) {
      const std::uint64_t now = device.sum[number_of(figure)][pool];
      std::uint64_t& before = device.sum_before[number_of(figure)][pool];
      std::uint64_t& least = device.peaks_least[number_of(figure)][pool];
      std::uint64_t& most = device.peaks_most[number_of(figure)][pool];
      const bool is_exact = added.calls == 1 && added.grants <= 1;
      least = std::max(least, now);
      most = std::max({most, now, is_exact ? 0 : before + granted});
      before = now;
    }
  }
}

void CacheModel::explain_peaks(const Device& device, const cache::DeviceStats& stats) {
  if (has_lost_peaks_) return;
  for (unsigned figure = 0; figure < kFigures; ++figure) {
    for (unsigned pool = 0; pool < cache::kStatPools; ++pool) {
      const std::uint64_t low = device.peaks_least[figure][pool];
      const std::uint64_t high = device.peaks_most[figure][pool];
      const std::uint64_t peak = figure_of(stats, figure)[pool].peak;
      if (peak >= low && (peak <= high || (walk_every_ != 1 && is_split_figure(figure)))) continue;
      return report("C15", kFigureRows[figure].name, kPoolNames[pool], "'s peak is ", peak,
                    ", must be in ", low, " .. ", high);
    }
  }
}

/// What is simply counted.
void CacheModel::judge_counters(Device& device, const cache::DeviceStats& stats) {
  for (unsigned pool = 0; pool < cache::kStatPools; ++pool) {
    expect_stat("allocations", figure_of(stats, Figure::kAllocations)[pool].current,
                device.live[pool]);
    expect_stat("allocated_bytes", figure_of(stats, Figure::kAllocatedBytes)[pool].current,
                device.live_bytes[pool]);
  }
  expect_stat("segments", figure_of(stats, Figure::kSegments)[0].current,
              device.witness->segments().size());
  expect_stat("reserved_bytes", figure_of(stats, Figure::kReservedBytes)[0].current,
              device.witness->segment_bytes());
  expect_stat("segments increased", figure_of(stats, Figure::kSegments)[0].increased,
              device.witness->calls_of(device::CallKind::kSegmentAlloc) -
                  device.witness->failures_of(device::CallKind::kSegmentAlloc));
  if (std::memcmp(stats.device_calls.data(), device.witness->calls().data(),
                  sizeof stats.device_calls) != 0) {
    for (unsigned kind = 0; kind < device::kCallKinds; ++kind) {
      expect_stat(device::call_name(static_cast<device::CallKind>(kind)), stats.device_calls[kind],
                  device.witness->calls()[kind]);
    }
  }
  expect_stat("ooms", stats.ooms, device.ooms);
  settle_count("alloc_retries", stats.alloc_retries, &device.retries);
  settle_count("steals", stats.steals, &device.steals);
  if (shortages_observed_ != shortages_)
    report("DEV-13", "an observer was not told of an out-of-memory, or told twice");
  // A wait for a use on another device's stream is made on that device, and counted where memory
  // was short.
  std::uint64_t waits = 0;
  for (const Device& each : devices_) {
    waits += each.witness->calls_of(device::CallKind::kEventSynchronize) +
             each.witness->calls_of(device::CallKind::kSynchronize);
  }
  if (stats.waits > waits || devices_.size() == 1) expect_stat("waits", stats.waits, waits);
}

void CacheModel::judge_oversize(Device& device, const cache::DeviceStats& stats) {
  std::uint64_t live = 0;
  std::uint64_t active = 0;
  std::uint64_t segments = 0;
  if (rules_.has_max_split_size()) {
    for (const cache::SnapshotSegment& segment : device.view.segments)
      segments += segment.size.count() >= rules_.max_split_size();
    for (const cache::SnapshotBlock& block : device.view.blocks) {
      const bool is_oversize = block.size.count() >= rules_.max_split_size();
      live += is_oversize && block.state == BlockState::kLive;
      active += is_oversize && block.state != BlockState::kFree;
    }
  }
  expect_stat("oversize_segments", stats.oversize_segments.current, segments);
  const std::uint64_t oversize = stats.oversize_allocations.current;
  if (oversize < live || oversize > active) expect_stat("oversize_allocations", oversize, live);
}

void CacheModel::judge_stats(Device& device) {
  if (!verdict_.is_good()) return;
  cache::DeviceStats& stats = device.stats;
  if (!subject_.stats(device.id, &stats).is_ok())
    return report("C15", "no statistics could be read");
  judge_counters(device, stats);
  const bool is_wrong = has_wrong_figure(device, stats);
  if (is_wrong) explain_figures(device, stats);
  if (!device.is_fresh) return;
  judge_oversize(device, stats);
  if (is_wrong) explain_peaks(device, stats);
}

}  // namespace ashlar::spec
