// MapWalker: judges a whole snapshot against the books and the device's ledger, and counts it.
//
// Clauses C2, C3, C4, C7, C14, C18, DEV-2 and DEV-6 (map_clauses.h), and the recount for C15. Two
// walkers judge alike:
//   PlainWalker        judges every block of every segment and counts from nothing
//   IncrementalWalker  judges the segments that are not as they were, and counts the differences;
//                      several times as fast on large maps (props/cache/walkers_test.cc compares
//                      their verdicts and recounts at every step)
// Thread safety: none. One walker for each device.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ashlar/cache/snapshot.h>

#include "spec/model/device_books.h"
#include "spec/model/device_witness.h"
#include "spec/model/divergence.h"
#include "spec/model/figure_table.h"
#include "spec/model/map_clauses.h"

namespace ashlar::spec {

/// What a walk looks at, and what it updates.
struct MapWalk {
  const cache::Snapshot& before;  ///< the snapshot of the last walk
  const cache::Snapshot& now;     ///< with as many segments as `held`
  const std::vector<DeviceWitness::Held>& held;
  MapRules rules;
  DeviceBooks& books;  ///< pending blocks that are free now leave it
  Recount& recount;
  Verdict& verdict;
};

class MapWalker {
 public:
  virtual ~MapWalker() = default;
  /// After a verdict that is not good, books and recount are undefined. `is_whole`: nothing is
  /// taken over from the last walk.
  virtual void walk(const MapWalk& walk, bool is_whole) = 0;
};

/// A walker for one device.
using WalkerFactory = std::unique_ptr<MapWalker> (*)();
std::unique_ptr<MapWalker> make_plain_walker();
std::unique_ptr<MapWalker> make_incremental_walker();

}  // namespace ashlar::spec
