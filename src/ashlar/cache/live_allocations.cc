#include <ashlar/cache/live_allocations.h>

#include <algorithm>
#include <iterator>

namespace ashlar::inline v0::cache {

LiveDifference compare_live(const Snapshot& snapshot, MemoryPoolId pool,
                            std::span<const Address> expected) {
  std::vector<Address> live;
  for (const SnapshotSegment& segment : snapshot.segments) {
    if (segment.memory_pool != pool) continue;
    for (std::uint32_t i = 0; i < segment.block_count; ++i) {
      const SnapshotBlock& block = snapshot.blocks[segment.block_first + i];
      if (block.state == BlockState::kLive) live.push_back(block.address);
    }
  }
  std::vector<Address> listed(expected.begin(), expected.end());
  std::sort(listed.begin(), listed.end());
  LiveDifference difference;
  std::set_difference(live.begin(), live.end(), listed.begin(), listed.end(),
                      std::back_inserter(difference.unexpected));
  std::set_difference(listed.begin(), listed.end(), live.begin(), live.end(),
                      std::back_inserter(difference.missing));
  return difference;
}

}  // namespace ashlar::inline v0::cache
