// The address map beside its chains: how many entries and records each call visits, how full it may
// be, where its hash puts an address, and what its own check notices.
//
// Imitates: a pool whose live blocks become more, at every step of a split. Does not prove that
// chains are short at the strides of real pools (address_map_test).
#include <ashlar/block/address_map.h>

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "props/block/part_peer.h"
#include "props/block/step_expectation.h"
#include "spec/ops/random.h"

namespace ashlar::block {
namespace {

using Peer = PartPeer;

/// A map that counts what a call should visit by walking its chains.
class WalkedMap {
 public:
  void insert(std::uint64_t address) {
    ASSERT_TRUE(records_.reserve_one());
    expect_steps(reserve_steps(), [this] { ASSERT_TRUE(map_.reserve_one(records_)); });
    const std::uint32_t index = records_.take(kInUse);
    records_.set_address(index, address);
    expect_steps(0, [&] { map_.insert(records_, index, address); });
    live_.push_back(index);
  }
  void erase(std::uint64_t n) {
    std::swap(live_[n % live_.size()], live_.back());
    const std::uint32_t index = live_.back();
    const std::uint64_t address = records_.address(index);
    expect_steps(visits(address) - 1, [&] { map_.erase(records_, index, address); });
    records_.give_back(index);
    live_.pop_back();
  }
  void expect_find(std::uint64_t address, std::uint32_t expected) {
    expect_steps(visits(address), [&] { ASSERT_EQ(map_.find(records_, address), expected); });
  }
  void expect_all() {
    for (const std::uint32_t index : live_) expect_find(records_.address(index), index);
    ASSERT_TRUE(map_.is_consistent(records_));
  }
  /// Invariant 2, and that the table is no larger than it says.
  void expect_load(std::uint32_t most_so_far) const {
    const std::uint64_t cells = map_.capacity();
    const auto room_of = [](std::uint64_t n) { return n <= 1u << 14 ? n / 4 : n; };
    ASSERT_LE(most_so_far, room_of(cells));
    if (cells > 64) {
      ASSERT_GT(most_so_far, room_of(cells / 2));
    }
  }

  AddressMap map_;
  BlockRecords records_;
  std::vector<std::uint32_t> live_;

 private:
  std::uint64_t length(std::uint32_t cell) const {
    std::uint64_t entries = 0;
    for (std::uint32_t entry = Peer::cells(map_)[cell]; entry != kNone;
         entry = records_.link(Peer::index_of(entry)).to) {
      entries += 1;
    }
    return entries;
  }
  /// The entries up to the one with that address, itself included, or all; true if it is there.
  bool visit(std::uint32_t cell, std::uint64_t address, std::uint64_t* entries) const {
    for (std::uint32_t entry = Peer::cells(map_)[cell]; entry != kNone;
         entry = records_.link(Peer::index_of(entry)).to) {
      *entries += 1;
      if (records_.address(Peer::index_of(entry)) == address) return true;
    }
    return false;
  }
  std::uint64_t visits(std::uint64_t address) const {
    const std::uint32_t cell = Peer::cell_of(map_, address);
    std::uint64_t entries = 0;
    if (map_.capacity() == 0 || visit(cell, address, &entries)) return entries;
    if (Peer::waits(map_, address)) visit(Peer::lower_of(map_, cell), address, &entries);
    return entries;
  }
  /// What the next reserve_one() does: nothing; or up to eight cells with their chains, those of a
  /// table that has just doubled and was cleared included.
  std::uint64_t reserve_steps() {
    std::uint64_t first = Peer::split(map_), end = Peer::half(map_), steps = 0;
    if (!map_.is_splitting()) {
      if (map_.count() < Peer::room(map_)) return 0;
      const std::uint64_t before = map_.capacity();
      const std::uint64_t after = before == 0 ? 64 : 2 * before;
      first = before == 0 ? 32 : 0;
      end = after / 2;
      // A table that moves by copying copies its cells and clears the others.
      if (after * 4 <= kPlainTableBytesMax) {
        steps += after * 4 / 64;
      } else if (before * 4 <= kPlainTableBytesMax) {
        steps += before * 4 / 64;
      }
    }
    for (std::uint64_t cell = first; cell < std::min(end, first + 8); ++cell)
      steps += 1 + length(static_cast<std::uint32_t>(cell));
    return steps;
  }
};

TEST(AddressMapModel, EveryCallVisitsTheChainsThatItMustAndNoOther) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    spec::Random dice(seed);
    WalkedMap map;
    std::uint32_t most = 0;
    map.expect_find(512, kNone);
    for (unsigned step = 0; step < 9000; ++step) {
      if (map.live_.empty() || dice.below(10) < 8) {
        map.insert((std::uint64_t{0x7f} << 40) +
                   512 * (step + std::uint64_t{1000000} * (step % 3)));
      } else {
        map.erase(dice.next());
      }
      most = std::max(most, map.map_.count());
      map.expect_load(most);
      map.expect_find(512 * dice.below(1000), kNone);
      if (!map.live_.empty()) {
        const std::uint32_t index = map.live_[dice.below(map.live_.size())];
        map.expect_find(map.records_.address(index), index);
      }
      if (step % 500 == 0) map.expect_all();
      if (::testing::Test::HasFailure()) FAIL() << "seed " << seed << ", step " << step;
    }
    EXPECT_GT(map.map_.capacity(), 1u << 14) << "the test needs a large table";
  }
}

TEST(AddressMapModel, TheHashIsTheOneThatTheHeaderStates) {
  spec::Random dice(1);
  constexpr std::uint64_t kMultiplier = 11400714819323198485u;  // 2^64 / the golden ratio
  for (unsigned i = 0; i < 1000; ++i) {
    const std::uint64_t address = dice.next() >> dice.below(40) << 9;
    const std::uint64_t product = (address ^ address / 8192) * kMultiplier;
    std::uint32_t reversed = 0;
    for (unsigned byte = 4; byte < 8; ++byte)
      reversed = reversed << 8 | static_cast<std::uint32_t>(product >> 8 * byte & 0xff);
    ASSERT_EQ(Peer::hash_of(address), reversed) << address;
  }
}

TEST(AddressMapModel, AnEntryWithAWrongTagOrInAWrongCellIsNoticed) {
  WalkedMap map;
  while (map.live_.size() < 300 || !map.map_.is_splitting())
    map.insert((std::uint64_t{0x7f} << 40) + 512 * map.live_.size());
  ASSERT_TRUE(map.map_.is_consistent(map.records_));
  std::uint32_t* const cells = Peer::cells(map.map_);
  const auto capacity = static_cast<std::uint32_t>(map.map_.capacity());
  unsigned moved = 0;
  for (std::uint32_t cell = 0; cell < capacity; ++cell) {
    if (cells[cell] == kNone) continue;
    for (unsigned bit = 27; bit < 32; ++bit) {
      cells[cell] ^= std::uint32_t{1} << bit;
      EXPECT_FALSE(map.map_.is_consistent(map.records_)) << cell << ", tag bit " << bit;
      cells[cell] ^= std::uint32_t{1} << bit;
    }
    for (const std::uint32_t other :
         {cell ^ 1, cell ^ 2, cell ^ capacity / 4, cell ^ capacity / 2}) {
      // The first entry alone; it may wait in its own cell's lower half, and nowhere else.
      const std::uint32_t entry = cells[cell];
      const std::uint64_t address = map.records_.address(Peer::index_of(entry));
      const std::uint32_t home = Peer::cell_of(map.map_, address);
      const bool may_be_there = other == home || (Peer::waits(map.map_, address) &&
                                                  other == Peer::lower_of(map.map_, home));
      if (may_be_there || cells[other] != kNone) continue;
      Link& link = map.records_.link(Peer::index_of(entry));
      const std::uint32_t next = link.to;
      cells[cell] = next;
      cells[other] = entry;
      link.to = kNone;
      EXPECT_FALSE(map.map_.is_consistent(map.records_)) << cell << " to " << other;
      cells[other] = kNone;
      cells[cell] = entry;
      link.to = next;
      moved += 1;
    }
  }
  EXPECT_GT(moved, 100u);
  EXPECT_TRUE(map.map_.is_consistent(map.records_));
}

}  // namespace
}  // namespace ashlar::block
