// The free index in its hardest cases: deep trees, wide and moving address windows, the limits of
// every class.
//
// Imitates: mostly pools whose segments are single free blocks, so that only the index matters; a
// sorted set is the model. Does not prove the pool's other operations (block_pool_test, lockstep).
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "props/block/by_address.h"
#include "props/block/pool_peer.h"
#include "spec/ops/random.h"

namespace ashlar::block {
namespace {

using Sorted = std::set<std::pair<std::uint64_t, std::uint64_t>>;  // size, address

/// next_fit() behind a place where there may be no block any more, as of a walk that goes on.
void expect_next(const BlockPool& pool, const Sorted& sorted, std::uint64_t size,
                 std::uint64_t address) {
  const auto expected = sorted.upper_bound({size, address});
  const BlockIndex next = pool.next_fit(Bytes{size}, Position{address});
  ASSERT_EQ(next == kNoBlock, expected == sorted.end());
  if (next == kNoBlock) return;
  ASSERT_EQ(pool.size(next).count(), expected->first);
  ASSERT_EQ(pool.address(next).value(), expected->second);
}

void expect_order(const BlockPool& pool, const Sorted& sorted) {
  ASSERT_STREQ(pool.validate(), nullptr);
  BlockIndex b = pool.best_fit(pool.granule(), Bytes::max());
  for (const auto& [size, address] : sorted) {
    ASSERT_NE(b, kNoBlock);
    ASSERT_EQ(pool.size(b).count(), size);
    ASSERT_EQ(pool.address(b).value(), address);
    b = pool.next_fit(b);
    const std::uint64_t granule = pool.granule().count();
    expect_next(pool, sorted, size, address);
    expect_next(pool, sorted, size, address - granule);
    expect_next(pool, sorted, size, address + size / 2 / granule * granule);
    expect_next(pool, sorted, size + granule, address);
    expect_next(pool, sorted, size, 0);
    expect_next(pool, sorted, size, ~std::uint64_t{0} - granule + 1);
  }
  EXPECT_EQ(b, kNoBlock);
  EXPECT_EQ(pool.largest_free().count(), sorted.empty() ? 0 : sorted.rbegin()->first);
}

TEST(FreeIndex, TheWorkedExampleAtTheHeadOfBlockPoolIsTrue) {
  BlockPool pool{512_B};
  FreeIndex& index = PoolPeer::index(pool);
  add_by_address(pool, kBase, 2_MiB, 0, 0);
  const auto take = [&pool](std::uint64_t granules) {
    const Bytes size = 512_B * granules;
    return pool.take(pool.best_fit(size, Bytes::max()), size, true, size, 0);
  };
  const BlockIndex d = take(1);
  take(7);
  const BlockIndex b = take(6);
  take(18);
  const BlockIndex a = take(5);
  take(59);
  const BlockIndex c = pool.best_fit(512_B, Bytes::max());
  pool.release(b, 0);
  pool.release(a, 0);
  pool.release(d, 0);
  EXPECT_EQ(pool.address(a), kBase + 16_KiB);
  EXPECT_EQ(pool.address(b), kBase + 4_KiB);
  EXPECT_EQ(pool.address(d), kBase);
  EXPECT_EQ(pool.size(c), 512_B * 4000);
  EXPECT_EQ(pool.address(c) + pool.size(c), kBase + 2_MiB);
  EXPECT_EQ(PoolPeer::latest(index), raw(d));

  EXPECT_EQ(PoolPeer::window_bits(index), 22u);
  const Address window{PoolPeer::window_base(index)};
  EXPECT_EQ(kBase - window, 1_MiB);
  const auto place_of = [&](BlockIndex block) {
    return PoolPeer::place_of(index, pool.size(block), pool.address(block) - window);
  };
  EXPECT_EQ(place_of(a).size_class, 74u);
  EXPECT_EQ(place_of(b).size_class, 82u);
  EXPECT_EQ(place_of(c).size_class, 382u);
  // The offsets 0100000100... and 0100000001..., less the three bits that belong to the class.
  EXPECT_EQ(place_of(a).key >> (64 - 7), 0b0000100u);
  EXPECT_EQ(place_of(b).key >> (64 - 7), 0b0000001u);
  constexpr unsigned kClassesPerGroup = 1u << PoolPeer::kClassBits;
  for (unsigned size_class = 0; size_class < PoolPeer::kGroups * kClassesPerGroup; ++size_class) {
    const std::uint32_t bits = PoolPeer::class_bits(index, size_class / kClassesPerGroup);
    EXPECT_EQ((bits >> size_class % kClassesPerGroup & 1) != 0,
              size_class == 74 || size_class == 82 || size_class == 382)
        << size_class;
  }

  EXPECT_EQ(PoolPeer::place_of(index, 512_B * 5, 0_B).size_class, 72u);
  EXPECT_EQ(pool.best_fit(512_B * 5, Bytes::max()), a);
  EXPECT_EQ(PoolPeer::place_of(index, 512_B * 7, 0_B).size_class, 88u);
  EXPECT_EQ(pool.best_fit(512_B * 7, Bytes::max()), c);
  take(7);
  EXPECT_EQ(pool.size(pool.next(c)), 512_B * 3993) << "C is split";
}

TEST(FreeIndex, OrdersSizesAroundEveryClassLimit) {
  BlockPool pool{16_B};
  Sorted sorted;
  std::uint64_t base = 1u << 20;
  for (unsigned octave = 0; octave < 24; ++octave) {
    for (const std::uint64_t sub : {32u, 33u, 47u, 63u}) {
      for (const std::uint64_t off : {~std::uint64_t{0}, std::uint64_t{0}, std::uint64_t{1}}) {
        const std::uint64_t size = ((sub << octave) + off) * 16;
        add_by_address(pool, Address{base}, Bytes{size}, 0, 0);
        sorted.emplace(size, base);
        base += size + 16;
      }
    }
  }
  expect_order(pool, sorted);
  for (const auto& [size, address] : sorted) {
    const BlockIndex fit = pool.best_fit(Bytes{size}, Bytes::max());
    EXPECT_EQ(pool.size(fit).count(), size);
  }
}

TEST(FreeIndex, FindsTheNextLargerWhenTheClassHasOnlySmallerOnes) {
  BlockPool pool{512_B};
  add_by_address(pool, Address{1u << 30}, Bytes{512 * 1000}, 0, 0);
  add_by_address(pool, Address{2u << 30}, Bytes{512 * 1015}, 0, 0);
  add_by_address(pool, Address{3u << 30}, Bytes{512 * 900000}, 0, 0);
  add_by_address(pool, Address{7u << 20}, 512_B, 0, 0);
  EXPECT_EQ(pool.size(pool.best_fit(Bytes{512 * 1001}, Bytes::max())).count(), 512u * 1015);
  EXPECT_EQ(pool.size(pool.best_fit(Bytes{512 * 1016}, Bytes::max())).count(), 512u * 900000);
  EXPECT_EQ(pool.best_fit(Bytes{512 * 900001}, Bytes::max()), kNoBlock);
}

TEST(FreeIndex, FindsAnExactFitAtTheStartOfTheWindow) {
  // The block's address bits are all zero, so that its key equals the key searched for.
  BlockPool pool{512_B};
  add_by_address(pool, Address{512}, 1_MiB, 0, 0);
  add_by_address(pool, Address{4u << 20}, 1_MiB, 0, 0);
  add_by_address(pool, Address{6u << 20}, 512_B, 0, 0);
  EXPECT_EQ(pool.address(pool.best_fit(1_MiB, Bytes::max())), Address{512});
  expect_order(pool, {{512, 6u << 20}, {1u << 20, 512}, {1u << 20, 4u << 20}});
}

TEST(FreeIndex, AChainOfNestedPrefixesStaysWithinItsStatedSteps) {
  // Equal sizes at the addresses 2^k: each has one more leading zero bit than the next.
  for (const Bytes granule : {16_B, 512_B}) {
    BlockPool pool{granule};
    Sorted sorted;
    for (std::uint64_t bit = granule.count(); bit < std::uint64_t{1} << 62; bit <<= 1) {
      add_by_address(pool, Address{bit}, granule, 0, 0);
      sorted.emplace(granule.count(), bit);
    }
    expect_order(pool, sorted);
    unsigned deepest = 0;
    auto& records = PoolPeer::records(pool);
    FreeIndex& index = PoolPeer::index(pool);
    for (std::uint32_t i = 1; i <= sorted.size(); ++i) {
      if (PoolPeer::latest(index) == i) continue;
      unsigned depth = 1;
      std::uint32_t up = PoolPeer::leaf_of(index, records.link(i)).parent;
      for (; up != kNoNode; up = PoolPeer::branch(index, up).parent) depth += 1;
      deepest = std::max(deepest, depth);
    }
    EXPECT_GE(deepest, 20u) << "the test needs a deep tree";
    EXPECT_LE(deepest, kFitStepsMax);
  }
}

TEST(FreeIndex, TheWindowChangesALogarithmicNumberOfTimesWhileSegmentsComeFromBothSides) {
  BlockPool pool{512_B};
  Sorted sorted;
  unsigned windows = 0;
  unsigned bits_before = 0;
  for (std::uint64_t i = 1; i <= 2000; ++i) {
    const std::uint64_t middle = std::uint64_t{1} << 45;
    // Alternately above and below, as mmap grows down.
    const std::uint64_t base = i % 2 == 0 ? middle + i * 0x200000 : middle - i * 0x200000;
    add_by_address(pool, Address{base}, 4_KiB, 0, 0);
    sorted.emplace(4096, base);
    const unsigned bits = PoolPeer::window_bits(PoolPeer::index(pool));
    windows += bits != bits_before;
    EXPECT_GE(bits, bits_before);
    bits_before = bits;
  }
  EXPECT_LE(windows, 25u);
  expect_order(pool, sorted);
}

/// Adds segments of one granule at `addresses`, in that order, and removes them again. They are all
/// in the tree of one class.
void expect_one_class_sorted(const std::vector<std::uint64_t>& addresses) {
  BlockPool pool{512_B};
  // A segment far away makes the window wide from the start.
  add_by_address(pool, Address{std::uint64_t{1} << 46}, 512_B, 0, 0);
  std::map<std::uint64_t, SegmentIndex> segments;
  Sorted sorted{{512, std::uint64_t{1} << 46}};
  for (const std::uint64_t address : addresses) {
    segments[address] = add_by_address(pool, Address{address}, 512_B, 0, 0);
    sorted.emplace(512, address);
    ASSERT_STREQ(pool.validate(), nullptr);
  }
  ASSERT_GT(PoolPeer::branches_touched(PoolPeer::index(pool)), 0u) << "no leaf was ever split";
  expect_order(pool, sorted);
  // They are removed in another order, so that leaves become empty beside full ones.
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const std::uint64_t address = addresses[i * 7 % addresses.size()];
    pool.lift(pool.view(segments[address]).first);
    pool.remove_segment(segments[address]);
    sorted.erase({512, address});
    ASSERT_STREQ(pool.validate(), nullptr);
    const BlockIndex least = pool.best_fit(512_B, Bytes::max());
    ASSERT_EQ(pool.address(least).value(), sorted.begin()->second);
  }
  expect_order(pool, sorted);
}

TEST(FreeIndex, LeavesAreSplitAndDroppedWhateverTheOrderOfInsertion) {
  std::vector<std::uint64_t> up;
  for (std::uint64_t i = 1; i <= 120; ++i) up.push_back(i * 4096);
  std::vector<std::uint64_t> down(up.rbegin(), up.rend());
  expect_one_class_sorted(up);
  expect_one_class_sorted(down);
  // Two dense clusters far apart, and one address between them that differs from the bits that a
  // branch's keys share.
  std::vector<std::uint64_t> clusters;
  for (std::uint64_t i = 0; i < 40; ++i) {
    clusters.push_back((std::uint64_t{1} << 40) + i * 1024);
    clusters.push_back((std::uint64_t{1} << 41) + (std::uint64_t{1} << 30) + i * 1024);
  }
  clusters.push_back((std::uint64_t{1} << 40) + (std::uint64_t{1} << 37));
  expect_one_class_sorted(clusters);
  spec::Random dice(7);
  std::set<std::uint64_t> distinct;
  while (distinct.size() < 200) distinct.insert((1 + dice.below(std::uint64_t{1} << 30)) * 4096);
  std::vector<std::uint64_t> shuffled(distinct.begin(), distinct.end());
  for (std::size_t i = shuffled.size(); i > 1; --i)
    std::swap(shuffled[i - 1], shuffled[dice.below(i)]);
  expect_one_class_sorted(shuffled);
}

TEST(FreeIndex, AgreesWithAWalkOverThousandsOfSmallBlocks) {
  // Few different sizes, so that classes hold hundreds of blocks and their trees are deep.
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    spec::Random dice(seed);
    BlockPool pool{512_B};
    const SegmentIndex segment =
        add_by_address(pool, Address{std::uint64_t{1} << 40}, 64_MiB, 0, 0);
    std::vector<BlockIndex> live;
    for (unsigned i = 1; i <= 40000; ++i) {
      if (live.size() < 500 || (live.size() < 6000 && dice.below(5) < 3)) {
        const Bytes size{512 * (dice.below(10) < 9 ? 1 + dice.below(2) : 1 + dice.below(40))};
        const BlockIndex fit = pool.best_fit(size, Bytes::max());
        ASSERT_NE(fit, kNoBlock);
        live.push_back(pool.take(fit, size, true, size, 0));
      } else {
        // Bursts of frees, so that the number of free blocks varies and leaves become empty.
        for (std::uint64_t n = 1 + dice.below(8) * dice.below(40); n > 0 && !live.empty(); --n) {
          std::swap(live[dice.below(live.size())], live.back());
          pool.release(live.back(), i);
          live.pop_back();
        }
      }
      if (i % 500 != 0) continue;
      Sorted sorted;
      for (BlockIndex b = pool.view(segment).first; b != kNoBlock; b = pool.next(b)) {
        if (pool.state(b) == BlockState::kFree)
          sorted.emplace(pool.size(b).count(), pool.address(b).value());
      }
      expect_order(pool, sorted);
    }
    EXPECT_GT(PoolPeer::branches_touched(PoolPeer::index(pool)), 10u)
        << "the test needs deep trees";
  }
}

TEST(FreeIndex, AgreesWithASortedSetUnderRandomInsertsAndRemovals) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    spec::Random dice(seed);
    BlockPool pool{Bytes{std::uint64_t{16} << dice.below(13)}};
    const std::uint64_t granule = pool.granule().count();
    const unsigned span_bits = 20 + static_cast<unsigned>(dice.below(30));
    Sorted sorted;
    std::vector<SegmentIndex> segments;
    std::set<std::uint64_t> slots;
    for (unsigned i = 0; i < 400; ++i) {
      if (segments.size() < 4 || dice.below(3) != 0) {
        const std::uint64_t slot = dice.below(std::uint64_t{1} << (span_bits - 16));
        if (!slots.insert(slot).second) continue;
        const std::uint64_t room = dice.below(2) == 0 ? 4 : 64;
        const std::uint64_t size = granule * (1 + dice.below(room));
        const std::uint64_t base = (slot + 1) * granule * 64;
        segments.push_back(add_by_address(pool, Address{base}, Bytes{size}, 0, slot));
        sorted.emplace(size, base);
      } else {
        const std::size_t pick = dice.below(segments.size());
        const SegmentIndex s = segments[pick];
        const SegmentView view = pool.view(s);
        sorted.erase({view.size.count(), view.base.value()});
        slots.erase(view.user);
        pool.lift(view.first);
        pool.remove_segment(s);
        segments[pick] = segments.back();
        segments.pop_back();
      }
      const Bytes ask{granule * (1 + dice.below(64))};
      const auto expected = sorted.lower_bound({ask.count(), 0});
      const BlockIndex fit = pool.best_fit(ask, Bytes::max());
      ASSERT_EQ(fit == kNoBlock, expected == sorted.end());
      if (fit != kNoBlock) {
        ASSERT_EQ(pool.address(fit).value(), expected->second);
      }
      expect_next(pool, sorted, ask.count(),
                  granule * dice.below(std::uint64_t{64} << (span_bits - 16)));
    }
    expect_order(pool, sorted);
  }
}

}  // namespace
}  // namespace ashlar::block
