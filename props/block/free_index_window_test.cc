// The free index at the edges of its address window, and while its records move to another.
//
// Imitates: segments that begin where a window begins and end where it ends; segments outside while
// many blocks are free. Does not prove the order of blocks in general (free_index_test).
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <ashlar/block/pool_walk.h>

#include "props/block/by_address.h"
#include "props/block/part_peer.h"
#include "props/block/pool_ops.h"

namespace ashlar::block {
namespace {

using Peer = PartPeer;
using Sorted = std::set<std::pair<std::uint64_t, std::uint64_t>>;  // size, address

std::pair<std::uint64_t, std::uint64_t> place(const BlockPool& pool, BlockIndex block) {
  if (block == kNoBlock) return {0, 0};
  return {pool.size(block).count(), pool.address(block).value()};
}
std::pair<std::uint64_t, std::uint64_t> at(const Sorted& sorted, Sorted::const_iterator found) {
  return found == sorted.end() ? std::pair<std::uint64_t, std::uint64_t>{0, 0} : *found;
}

/// Every search, from every size and every address that matters.
void expect_searches(const BlockPool& pool, const Sorted& sorted, std::uint64_t window_base,
                     std::uint64_t window_end) {
  ASSERT_STREQ(pool.validate(), nullptr);
  const std::uint64_t granule = pool.granule().count();
  std::set<std::uint64_t> sizes{granule}, addresses{0,
                                                    window_base - granule,
                                                    window_base,
                                                    window_base + granule,
                                                    window_end - granule,
                                                    window_end,
                                                    ~std::uint64_t{0} - granule + 1};
  for (const auto& [size, address] : sorted) {
    for (const std::uint64_t by : {~granule + 1, std::uint64_t{0}, granule}) {
      if (size + by > 0) sizes.insert(size + by);
      addresses.insert(address + by);
    }
  }
  for (const std::uint64_t size : sizes) {
    ASSERT_EQ(place(pool, pool.best_fit(Bytes{size}, Bytes::max())),
              at(sorted, sorted.lower_bound({size, 0})))
        << size;
    for (const std::uint64_t address : addresses) {
      ASSERT_EQ(place(pool, pool.next_fit(Bytes{size}, Position{address})),
                at(sorted, sorted.upper_bound({size, address})))
          << size << " at " << address;
    }
  }
  BlockIndex block = pool.best_fit(Bytes{granule}, Bytes::max());
  for (auto next = sorted.begin(); next != sorted.end(); ++next, block = pool.next_fit(block))
    ASSERT_EQ(place(pool, block), *next);
  ASSERT_EQ(block, kNoBlock);
}

TEST(FreeIndexWindow, BlocksAtBothEdgesAreFoundAndNeedNoOtherWindow) {
  for (const std::uint64_t granule : {16u, 512u}) {
    for (const std::uint64_t size : {granule, 3 * granule, 64 * granule}) {
      BlockPool pool{Bytes{granule}};
      FreeIndex& index = Peer::index(pool);
      Sorted sorted;
      const auto add = [&](std::uint64_t base, std::uint64_t bytes) {
        ASSERT_NE(add_by_address(pool, Address{base}, Bytes{bytes}, 0, 0), kNoSegment);
        sorted.emplace(bytes, base);
      };
      add(std::uint64_t{1} << 40, 1024 * granule);
      add((std::uint64_t{1} << 40) + 1025 * granule, size);
      const std::uint64_t begin = Peer::window_base(index);
      const unsigned bits = Peer::window_bits(index);
      const std::uint64_t end = begin + (std::uint64_t{1} << bits);
      ASSERT_EQ(begin % granule, 0u);
      add(begin, size);
      add(end - size, size);
      expect_searches(pool, sorted, begin, end);
      EXPECT_EQ(Peer::window_base(index), begin);
      EXPECT_EQ(Peer::window_bits(index), bits);
      EXPECT_TRUE(Peer::is_settled(index));
      EXPECT_EQ(Peer::wide_classes(index), nullptr) << "a table was made for no move";
      // One granule more on either side needs another window.
      add(end, granule);
      EXPECT_NE(Peer::wide_classes(index), nullptr);
      EXPECT_FALSE(Peer::is_settled(index));
      expect_searches(pool, sorted, begin, end);
    }
  }
}

TEST(FreeIndexWindow, AnEmptyIndexTakesAnotherWindowWithoutAMove) {
  BlockPool pool{512_B};
  FreeIndex& index = Peer::index(pool);
  for (unsigned i = 0; i < 10; ++i) {
    const SegmentIndex segment =
        add_by_address(pool, Address{std::uint64_t{1} << (30 + i)}, 1_MiB, 0, 0);
    EXPECT_TRUE(Peer::is_settled(index));
    EXPECT_STREQ(pool.validate(), nullptr);
    pool.lift(pool.view(segment).first);
  }
  EXPECT_EQ(Peer::wide_classes(index), nullptr);
}

TEST(FreeIndexWindow, APoolWithoutSegmentsForgetsItsWindow) {
  BlockPool pool{512_B};
  FreeIndex& index = Peer::index(pool);
  for (unsigned round = 0; round < 3; ++round) {
    const SegmentIndex low = add_by_address(pool, Address{std::uint64_t{1} << 30}, 1_MiB, 0, 0);
    EXPECT_EQ(Peer::window_bits(index), 21u);
    const SegmentIndex high = add_by_address(pool, Address{std::uint64_t{1} << 50}, 1_MiB, 0, 0);
    for (unsigned i = 0; i < 8; ++i)  // so that all records move
      pool.release(pool.take(pool.best_fit(512_B, Bytes::max()), 512_B, true, 512_B, 0), 0);
    EXPECT_GT(Peer::window_bits(index), 50u);
    EXPECT_STREQ(pool.validate(), nullptr);
    for (const SegmentIndex segment : {low, high}) {
      pool.lift(pool.view(segment).first);
      pool.remove_segment(segment);
    }
    EXPECT_STREQ(pool.validate(), nullptr);
  }
}

TEST(FreeIndexWindow, RecordsMoveAFewAtATimeAndLeaveNoWideTree) {
  for (const unsigned free_blocks : {1u, 4u, 5u, 8u, 60u}) {
    SCOPED_TRACE(free_blocks);
    BlockPool pool{512_B};
    FreeIndex& index = Peer::index(pool);
    Sorted sorted;
    std::uint64_t segments = 0;
    const auto add = [&](std::uint64_t base) {
      add_by_address(pool, Address{base}, 512_B * (1 + segments % 5), 0, 0);
      sorted.emplace(512 * (1 + segments++ % 5), base);
    };
    // The window is long before there are many.
    add(std::uint64_t{1} << 40);
    for (unsigned i = 0; i < free_blocks; ++i) add((std::uint64_t{1} << 40) + 4096 * (i + 1));
    while (!Peer::is_settled(index)) add((std::uint64_t{1} << 40) + 4096 * (segments + 1));
    const std::uint64_t in_trees = segments - 1;  // one is the latest
    add(std::uint64_t{1} << 45);
    // That insertion, and each after it, puts one record into the trees and moves others.
    std::uint64_t left = in_trees, insertions = 0;
    const auto move_some = [&left] { left -= std::min<std::uint64_t>(left, Peer::kMovedAtOnce); };
    const auto step = [&] {
      add((std::uint64_t{1} << 45) + 4096 * (insertions + 1));
      insertions += 1;
      ASSERT_STREQ(pool.validate(), nullptr);
      ASSERT_EQ(place(pool, pool.best_fit(512_B, Bytes::max())), *sorted.begin());
    };
    move_some();
    while (left > 0) {
      ASSERT_EQ(Peer::move(index), 1u) << left;
      step();
      move_some();
    }
    ASSERT_EQ(Peer::move(index), 2u);
    // All have moved; each insertion from here on moves as many back.
    std::uint64_t back = 0;
    const std::uint64_t wide = in_trees + 1 + insertions;
    while (Peer::move(index) == 2) {
      step();
      back += Peer::kMovedAtOnce;
      if (::testing::Test::HasFailure()) return;
    }
    EXPECT_TRUE(Peer::is_settled(index));
    EXPECT_GE(back, wide);
    EXPECT_LT(back, wide + Peer::kMovedAtOnce);
    ASSERT_NE(Peer::wide_classes(index), nullptr);
    for (const std::uint32_t root : Peer::roots(*Peer::wide_classes(index)))
      ASSERT_EQ(root, kNoNode) << "an empty wide tree was kept";
    expect_searches(pool, {sorted.begin(), sorted.end()}, Peer::window_base(index),
                    Peer::window_base(index) + 4096);
  }
}

TEST(FreeIndexWindow, ABlockWithThePlaceOfAnotherWindowIsNoticedWhileRecordsMove) {
  BlockPool pool{512_B};
  FreeIndex& index = Peer::index(pool);
  for (unsigned i = 0; i < 40; ++i)
    add_by_address(pool, Address{(std::uint64_t{1} << 40) + 4096 * i}, 512_B, 0, 0);
  while (!Peer::is_settled(index))
    add_by_address(pool, Address{(std::uint64_t{1} << 40) + 4096 * 41}, 512_B, 0, 0);
  add_by_address(pool, Address{std::uint64_t{1} << 46}, 512_B, 0, 0);
  ASSERT_EQ(Peer::move(index), 1u);
  ASSERT_STREQ(pool.validate(), nullptr);
  // A window as far away as it is long gives every block the same class and key.
  FitClasses& classes = Peer::near_classes(index);
  Peer::window_base(classes) += std::uint64_t{1} << Peer::window_bits(classes);
  EXPECT_NE(pool.validate(), nullptr);
}

TEST(PoolWalk, FindsEverySegmentByItsNumberAndNoOther) {
  BlockPool pool{512_B};
  std::set<std::uint32_t> added;
  for (unsigned i = 0; i < 70; ++i) {
    const SegmentIndex segment = add_by_address(pool, Address{(1u + i) << 20}, 512_B, 0, i);
    added.insert(raw(segment));
    if (i % 3 != 0) continue;
    pool.lift(pool.view(segment).first);
    pool.remove_segment(segment);
    added.erase(raw(segment));
  }
  const PoolWalk walk(pool);
  for (std::uint32_t number = 1; number < walk.segments_end() + 3; ++number) {
    const bool is_there = added.contains(number);
    EXPECT_EQ(walk.segment(number), is_there ? SegmentIndex{number} : kNoSegment) << number;
    if (!is_there) continue;
    const SegmentView view = pool.view(SegmentIndex{number});
    EXPECT_TRUE(walk.is_at(view.first, view.base));
    EXPECT_FALSE(walk.is_at(view.first, view.base + 512_B));
  }
  EXPECT_LT(*added.rbegin(), walk.segments_end());
}

}  // namespace
}  // namespace ashlar::block
