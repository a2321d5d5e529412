// Exhaustive search: every short sequence of ops over a small alphabet, in lockstep with the model,
// with the heavy checks at every node.
//
// The world begins with one segment of 4 granules. The ops: allocate 1, 2 or 3 granules; allocate 1
// granule from blocks under 3 only; free or defer any live block; complete any pending one; grow by
// 2 granules (up to 3 segments, some adjacent); shrink any idle segment; lift any free block; lower
// any block in transfer, make it live, or cut its first granule off. Another world begins with a
// segment that is one unmapped block: there any unmapped block may be lifted as well, and any block in
// transfer unmapped.
// Two searches: every sequence up to kDepth; and up to kDepthUnique, every sequence that leads to a
// new state, where a state is the map with its stamps and ordinals ranked, the counter of placements, the record
// that the free index holds outside its trees, and whether the index is moving to another window,
// with the classes that have moved so far. The counts are asserted, so that a change of
// policy or of the alphabet must change them deliberately. Slow builds (sanitizers, no
// optimisation) search less deep.
// Does not prove anything about longer sequences, more segments or other sizes.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <unordered_set>

#include <gtest/gtest.h>

#include "props/adapters/block_pool_subject.h"
#include "props/block/pool_ops.h"
#include "props/block/pool_peer.h"
#include "props/sanitizers.h"
#include "spec/lockstep/pool_lockstep.h"

namespace ashlar::props {
namespace {

using spec::Op;
using spec::PoolBlock;
using spec::PoolState;

#if defined(__OPTIMIZE__)
constexpr bool kIsSlow = kIsSanitized;
#else
constexpr bool kIsSlow = true;
#endif
constexpr unsigned kDepth = kIsSlow ? 4 : 6;
constexpr unsigned kDepthUnique = kIsSlow ? 5 : 9;
constexpr std::uint64_t kGranule = 512;
constexpr std::size_t kSegmentsMax = 3;

/// A pool and its model after a path of ops.
struct World {
  explicit World(const std::vector<Op>& path) {
    for (const Op& op : path) {
      if (!lockstep.step(op)) return;
    }
    lockstep.check();
  }
  BlockPoolSubject subject{Bytes{kGranule}};
  spec::PoolLockstep lockstep{subject, Bytes{kGranule}, 1u << 30};
};

/// Every op of the alphabet that has an effect in this state.
std::vector<Op> moves(const World& world, std::uint64_t next_pointer) {
  const auto& map = world.lockstep.model().map();
  std::vector<Op> ops;
  for (std::uint64_t n = 1; n <= 3; ++n) ops.push_back(alloc(next_pointer, n * kGranule));
  ops.push_back(alloc_limited(next_pointer, kGranule, 3 * kGranule));
  if (map.segments.size() < kSegmentsMax) ops.push_back(grow(2 * kGranule));
  std::uint64_t free = 0;
  std::uint64_t idle = 0;
  std::uint64_t lifted = 0;
  std::uint64_t unmapped = 0;
  for (const PoolBlock& block : map.blocks) {
    switch (block.state) {
      case PoolState::kLive:
        ops.push_back(free_of(spec::PoolLockstep::word_of(block.user)));
        ops.push_back(defer(spec::PoolLockstep::word_of(block.user)));
        break;
      case PoolState::kPending:
        ops.push_back(complete(spec::PoolLockstep::word_of(block.user)));
        break;
      case PoolState::kFree:
        ops.push_back(lift(free++));
        for (const auto& segment : map.segments) {
          if (segment.base == block.address && segment.size == block.size)
            ops.push_back(shrink(idle++));
        }
        break;
      case PoolState::kInTransfer:
        if (block.size > Bytes{kGranule}) ops.push_back(divide(lifted, kGranule));
        ops.push_back(take_lifted(next_pointer, lifted));
        ops.push_back(lower(lifted++));
        break;
      case PoolState::kUnmapped: ops.push_back(lift_unmapped(unmapped++)); break;
    }
  }
  const PoolBlock* const first = world.lockstep.model().nth_to_unmap(0);
  for (std::uint64_t n = 0; first != nullptr; ++n) {
    if (n > 0 && world.lockstep.model().nth_to_unmap(n) == first) break;
    ops.push_back(unmap(n));
  }
  return ops;
}

struct Search {
  explicit Search(const Op& first) : path{first} {}
  std::vector<Op> path;
  std::uint64_t sequences = 0;

  void run(unsigned depth) {
    const World world(path);
    ASSERT_FALSE(world.lockstep.diverged()) << world.lockstep.report();
    sequences += 1;
    if (depth == 0) return;
    for (const Op& op : moves(world, path.size())) {
      path.push_back(op);
      run(depth - 1);
      path.pop_back();
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
};

/// The state's name: states with equal names answer all later ops alike. The shape of the free
/// index's trees is left out: it determines where a search looks, never what it finds; validate()
/// and the model check that at every step.
std::string canonical(World& world) {
  const auto& map = world.lockstep.model().map();
  std::vector<std::uint64_t> stamps;
  for (const PoolBlock& block : map.blocks) stamps.push_back(block.stamp);
  std::sort(stamps.begin(), stamps.end());
  stamps.erase(std::unique(stamps.begin(), stamps.end()), stamps.end());

  block::BlockPool& pool = world.subject.pool();
  std::string name = std::to_string(world.lockstep.grows());
  for (block::FreeIndex* index : {&block::PoolPeer::index(pool), block::PoolPeer::unmapped(pool)}) {
    if (index == nullptr) continue;
    const std::uint32_t latest = block::PoolPeer::latest(*index);
    const Address latest_address =
        latest == block::kNone ? Address{} : pool.address(block::BlockIndex{latest});
    name += "," + std::to_string(latest_address.value()) + "," +
            std::to_string(block::PoolPeer::move(*index)) + "," +
            std::to_string(block::PoolPeer::group_bits(*index));
  }
  for (const spec::PoolSegment& segment : map.segments) {
    name += "," + std::to_string(std::count_if(
                      map.segments.begin(), map.segments.end(),
                      [&segment](const auto& other) { return other.ordinal < segment.ordinal; }));
  }
  for (const PoolBlock& block : map.blocks) {
    const auto rank = std::lower_bound(stamps.begin(), stamps.end(), block.stamp) - stamps.begin();
    name += ";" + std::to_string(block.address.value() / kGranule) + "," +
            std::to_string(block.size.count() / kGranule) + "," +
            std::to_string(static_cast<unsigned>(block.state)) + "," + std::to_string(rank) +
            (block.address == block.segment ? "[" : "");
  }
  return name;
}

std::uint64_t count_sequences(const Op& first) {
  Search search(first);
  search.run(kDepth);
  std::printf("sequences to depth %u: %llu\n", kDepth,
              static_cast<unsigned long long>(search.sequences));
  return search.sequences;
}

TEST(BlockPoolExhaustive, EverySequenceAgreesWithTheModel) {
  EXPECT_EQ(count_sequences(grow(4 * kGranule)), kDepth == 4 ? 4'379u : 400'495u);
}

TEST(BlockPoolExhaustive, EverySequenceWithUnmappedBlocksAgreesWithTheModel) {
  EXPECT_EQ(count_sequences(reserve(4 * kGranule)), kDepth == 4 ? 2'962u : 253'702u);
}

std::size_t count_states(const Op& first) {
  std::unordered_set<std::string> seen;
  std::vector<std::vector<Op>> layer{{first}};
  std::uint64_t tried = 0;
  for (unsigned depth = 0; depth < kDepthUnique; ++depth) {
    std::vector<std::vector<Op>> next;
    for (std::vector<Op>& path : layer) {
      const std::vector<Op> ops = moves(World(path), path.size());
      for (const Op& op : ops) {
        path.push_back(op);
        World world(path);
        EXPECT_FALSE(world.lockstep.diverged()) << world.lockstep.report();
        if (world.lockstep.diverged()) return 0;
        tried += 1;
        if (seen.insert(canonical(world)).second) next.push_back(path);
        path.pop_back();
      }
    }
    layer = std::move(next);
  }
  std::printf("to depth %u: %llu sequences tried, %zu states\n", kDepthUnique,
              static_cast<unsigned long long>(tried), seen.size());
  return seen.size();
}

TEST(BlockPoolExhaustive, EverySequenceToANewStateAgreesWithTheModel) {
  EXPECT_EQ(count_states(grow(4 * kGranule)), kDepthUnique == 5 ? 1'697u : 125'068u);
}

TEST(BlockPoolExhaustive, EverySequenceToANewStateWithUnmappedBlocksAgreesWithTheModel) {
  EXPECT_EQ(count_states(reserve(4 * kGranule)), kDepthUnique == 5 ? 600u : 54'600u);
}

}  // namespace
}  // namespace ashlar::props
