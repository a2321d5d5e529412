// The segments of a snapshot in their order, and those that overlap (sort_segments), against a list
// that is built one segment at a time.
//
// Imitates: memory that changed heaps, or came back from the driver in other segments, while a
// snapshot was copied, so that an address was copied twice. Does not prove: which of the copies is
// of use to a reader; the newest is kept.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include <ashlar/cache/snapshot_copy.h>

namespace ashlar::cache {
namespace {

/// Segments in the order in which they were copied, with blocks that name their segment and place.
Snapshot copied(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& ranges) {
  Snapshot snapshot;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    SnapshotSegment segment{};
    segment.base = Address{ranges[i].first};
    segment.size = Bytes{ranges[i].second};
    segment.ordinal = i;
    segment.stream = StreamId{100 + i};
    segment.pool = i % 2 == 0 ? PoolId::kSmall : PoolId::kLarge;
    segment.block_first = static_cast<std::uint32_t>(snapshot.blocks.size());
    segment.block_count = static_cast<std::uint32_t>(1 + i % 3);
    for (std::uint32_t b = 0; b < segment.block_count; ++b) {
      SnapshotBlock block{};
      block.address = Address{1000 * i + b};
      block.state = BlockState::kLive;
      snapshot.blocks.push_back(block);
    }
    snapshot.segments.push_back(segment);
  }
  return snapshot;
}

/// The ordinals of those that stay, by base: each is compared with the one before it.
std::vector<std::uint64_t> kept_of(const Snapshot& snapshot) {
  std::vector<SnapshotSegment> kept, rest = snapshot.segments;
  while (!rest.empty()) {
    const auto next = std::min_element(rest.begin(), rest.end(), [](const auto& a, const auto& b) {
      return a.base.value() < b.base.value();
    });
    const bool overlaps =
        !kept.empty() && next->base.value() < kept.back().base.value() + kept.back().size.count();
    if (!overlaps) {
      kept.push_back(*next);
    } else if (next->ordinal > kept.back().ordinal) {
      kept.back() = *next;
    }
    rest.erase(next);
  }
  std::vector<std::uint64_t> ordinals;
  for (const SnapshotSegment& segment : kept) ordinals.push_back(segment.ordinal);
  return ordinals;
}

void expect_sorted(const Snapshot& before, Snapshot after) {
  const std::vector<std::uint64_t> kept = kept_of(before);
  const SnapshotBlock* const blocks = after.blocks.data();
  sort_segments(&after);
  ASSERT_EQ(after.segments.size(), kept.size());
  std::size_t block_count = 0;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const SnapshotSegment &now = after.segments[i], &was = before.segments[kept[i]];
    ASSERT_EQ(std::tuple(now.base, now.size, now.stream, now.ordinal, now.block_count, now.pool),
              std::tuple(was.base, was.size, was.stream, was.ordinal, was.block_count, was.pool));
    ASSERT_LE(now.block_first + now.block_count, after.blocks.size());
    for (std::uint32_t b = 0; b < now.block_count; ++b)
      ASSERT_EQ(after.blocks[now.block_first + b].address.value(), 1000 * now.ordinal + b);
    block_count += now.block_count;
  }
  ASSERT_EQ(after.blocks.size(), block_count) << "no block of a segment that was left out stays";
  if (kept.size() == before.segments.size()) {
    ASSERT_EQ(after.blocks.data(), blocks) << "10^6 blocks are not copied again for nothing";
  } else {
    for (std::size_t i = 1, next = 0; i < kept.size(); ++i)
      ASSERT_EQ(after.segments[i].block_first, next += after.segments[i - 1].block_count);
  }
}

TEST(SnapshotSortTest, OfTwoThatOverlapTheOneThatWasCopiedLastStays) {
  using Ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  for (const Ranges& ranges :
       {Ranges{}, Ranges{{20, 10}}, Ranges{{20, 10}, {30, 10}}, Ranges{{30, 10}, {20, 10}},
        Ranges{{20, 10}, {20, 10}}, Ranges{{20, 10}, {29, 10}}, Ranges{{29, 10}, {20, 10}},
        Ranges{{20, 10}, {29, 10}, {38, 10}}, Ranges{{38, 10}, {29, 10}, {20, 10}},
        Ranges{{29, 10}, {20, 10}, {38, 10}}, Ranges{{20, 40}, {25, 5}, {45, 5}},
        Ranges{{25, 5}, {45, 5}, {20, 40}}, Ranges{{25, 5}, {20, 40}, {45, 5}},
        Ranges{{0, 5}, {20, 40}, {25, 5}, {90, 5}}, Ranges{{0, 5}, {25, 5}, {20, 40}, {90, 5}}})
    expect_sorted(copied(ranges), copied(ranges));
}

TEST(SnapshotSortTest, OfARangeThatWentThroughAHundredHeapsTheLastStays) {
  for (const std::size_t heaps : {2u, 17u, 100u, 3000u}) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges(heaps, {500, 10});
    ranges.emplace_back(400, 10);
    expect_sorted(copied(ranges), copied(ranges));
  }
}

TEST(SnapshotSortTest, AnySegmentsAreSortedAndNoneOverlap) {
  for (std::uint64_t seed = 1; seed <= 2000 && !testing::Test::HasFatalFailure(); ++seed) {
    std::mt19937_64 random(seed);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
    std::vector<std::uint64_t> bases;
    for (std::uint64_t i = 0; i < 200; ++i) bases.push_back(i * 2);
    std::shuffle(bases.begin(), bases.end(), random);
    for (std::uint64_t i = 0; i < seed % 30; ++i)
      ranges.emplace_back(bases[i], seed % 3 == 0 ? 2 : 1 + random() % 20);
    expect_sorted(copied(ranges), copied(ranges));
  }
}

}  // namespace
}  // namespace ashlar::cache
