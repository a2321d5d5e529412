// The statistics that exist for all / small / large, as a table: the judge works on them by number.
//
// Thread safety: plain values.
#pragma once

#include <ashlar/base/pool_id.h>
#include <ashlar/cache/stats.h>

namespace ashlar::spec {

using cache::StatFigure;  ///< numbers kFigureRows
inline constexpr unsigned kFigures = 9;

struct FigureRow {
  const char* name;
  cache::StatByPool cache::DeviceStats::*field;
};
inline constexpr FigureRow kFigureRows[kFigures] = {
    {"allocations", &cache::DeviceStats::allocations},
    {"segments", &cache::DeviceStats::segments},
    {"active", &cache::DeviceStats::active},
    {"inactive_split", &cache::DeviceStats::inactive_splits},
    {"allocated_bytes", &cache::DeviceStats::allocated_bytes},
    {"reserved_bytes", &cache::DeviceStats::reserved_bytes},
    {"active_bytes", &cache::DeviceStats::active_bytes},
    {"inactive_split_bytes", &cache::DeviceStats::inactive_split_bytes},
    {"requested_bytes", &cache::DeviceStats::requested_bytes},
};

constexpr unsigned number_of(StatFigure figure) { return static_cast<unsigned>(figure); }
/// Where a pool's statistics stand in a StatByPool; 0 is both pools'.
constexpr unsigned stat_pool(PoolId pool) { return 1 + static_cast<unsigned>(pool); }

/// One figure of the statistics, by pool.
inline const cache::StatByPool& figure_of(const cache::DeviceStats& stats, unsigned figure) {
  return stats.*kFigureRows[figure].field;
}
inline const cache::StatByPool& figure_of(const cache::DeviceStats& stats, StatFigure figure) {
  return figure_of(stats, number_of(figure));
}
inline cache::StatByPool& figure_of(cache::DeviceStats& stats, unsigned figure) {
  return stats.*kFigureRows[figure].field;
}

}  // namespace ashlar::spec
