// Growing tables beside a naive model of growing_table.h's invariants: every call to the host, the
// room, the bytes kept and cleared, and the steps that each growth reports.
//
// Imitates: tables that grow by any amounts around every limit, on a host that refuses addresses,
// memory or a move now and then. Does not prove that the block room grows its tables in time
// (block_pool_growth_test), or what a real kernel answers (growing_table_test, host_pages_test).
#include <ashlar/base/growing_table.h>

#include <algorithm>
#include <optional>

#include <gtest/gtest.h>

#include <ashlar/base/host_table.h>
#include <ashlar/base/spin_lock.h>

#include "props/base/watched_host.h"
#include "spec/ops/random.h"

namespace ashlar {
namespace {

using props::HostCall;
using props::HostEvent;
using props::number;
using props::watched;
using props::WatchScope;

constexpr std::size_t kCommitBytes = std::size_t{64} << 10;
constexpr std::size_t kTouchedMax = 4096;  ///< the bytes at either end that are written and read

std::size_t up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }
std::size_t down(std::size_t bytes, std::size_t unit) { return bytes / unit * unit; }

/// What the host will refuse in one growth.
struct Refusals {
  unsigned reserves = 0;
  bool commit = false, move = false, plain = false;
};

/// What the invariants say of a growth.
struct Expected {
  bool is_grown = true;
  std::size_t room = 0, reserved = 0;
  std::uint64_t steps = 0;
  bool copies = false;  ///< to memory where nothing was written
  std::vector<HostEvent> events;
};

class ModelledTable {
 public:
  ~ModelledTable() { expect_release(); }

  std::size_t room() const { return room_; }
  std::size_t reserved() const { return reserved_; }
  /// The bytes from the beginning on that have values; and the same of its memory, which may have
  /// older ones.
  std::size_t written() const { return written_; }
  std::size_t written_ever() const { return written_ever_; }

  void grow(const GrowingBytes::Growth& growth, const Refusals& refused) {
    watched.refusals_of(HostCall::kReserve) = refused.reserves;
    watched.refusals_of(HostCall::kCommit) = refused.commit;
    watched.refusals_of(HostCall::kMove) = refused.move;
    watched.refusals_of(HostCall::kNew) = refused.plain;
    watched.events.clear();
#if ASHLAR_ASSERTIONS
    lock_steps = 0;
#endif
    const bool is_grown = table_->grow(growth);
#if ASHLAR_ASSERTIONS
    const std::uint64_t steps = lock_steps;
#endif
    watched.refusals = {};
    const Expected expected = expect(growth, refused);
    ASSERT_EQ(is_grown, expected.is_grown);
    EXPECT_EQ(watched.events, expected.events);
    EXPECT_EQ(watched.misuses, 0u);
    data_ = number(table_->data());
    ASSERT_EQ(table_->room(), expected.room);
    room_ = expected.room;
    reserved_ = expected.reserved;
    if (is_grown) {
#if ASHLAR_ASSERTIONS
      EXPECT_EQ(steps, expected.steps);
#endif
      std::erase_if(written_at_, [&](std::size_t i) { return i >= growth.kept; });
      written_ = std::min(written_, growth.kept);
      if (expected.copies) written_ever_ = growth.kept;
      if (growth.clears) expect_zero(growth.kept);
    }
    for (const std::size_t i : written_at_) {
      // Millions of bytes: a macro for each would take most of the suite's time.
      if (table_->data()[i] != value(i)) FAIL() << "byte " << i << " is not what was written";
    }
  }
  /// Writes up to there.
  void write(std::size_t end) {
    written_at_.clear();
    for_ends(0, end, [this](std::size_t i) {
      table_->data()[i] = value(i);
      written_at_.push_back(i);
    });
    written_ = end;
    written_ever_ = std::max(written_ever_, end);
  }

 private:
  static std::byte value(std::size_t i) { return static_cast<std::byte>((i ^ i >> 8) % 255 + 1); }
  /// The first and the last positions of a range.
  template <class F>
  static void for_ends(std::size_t begin, std::size_t end, F&& f) {
    for (std::size_t i = begin; i < std::min(end, begin + kTouchedMax); ++i) f(i);
    for (std::size_t i = std::max(begin, end - std::min(end, kTouchedMax)); i < end; ++i) f(i);
  }
  void expect_zero(std::size_t begin) {
    std::size_t others = 0;
    for_ends(begin, room_, [&](std::size_t i) { others += table_->data()[i] != std::byte{0}; });
    EXPECT_EQ(others, 0u) << "bytes from " << begin << " on are not zero";
  }
  void expect_release() {
    watched.events.clear();
    table_.reset();
    std::vector<HostEvent> expected;
    release(&expected);
    EXPECT_EQ(watched.events, expected);
  }
  void release(std::vector<HostEvent>* events) const {
    if (reserved_ > 0) {
      events->push_back({HostCall::kRelease, data_, reserved_});
    } else if (data_ != 0) {
      events->push_back({HostCall::kDelete, data_, room_, kCacheLineBytes});
    }
  }
  /// Where the host put what it granted of that kind.
  static std::uintptr_t granted(HostCall call) {
    for (const HostEvent& event : watched.events)
      if (event.call == call && !event.is_refused) return event.begin;
    return 0;
  }

  Expected expect(const GrowingBytes::Growth& growth, const Refusals& refused) const {
    Expected e;
    e.room = room_;
    e.reserved = reserved_;
    if (growth.bytes <= reserved_) {
      const std::size_t room = std::min(up(growth.bytes, kCommitBytes), reserved_);
      e.is_grown = !refused.commit;
      e.events.push_back({HostCall::kCommit, data_ + room_, room - room_, 0, refused.commit});
      if (!e.is_grown) return e;
      e.room = room;
      if (growth.kept >= kHugePageBytes)
        e.events.push_back({HostCall::kAdvise, data_, down(growth.kept, kHugePageBytes)});
      return e;
    }
    if (growth.bytes <= kPlainTableBytesMax || !expect_range(growth, refused, &e))
      expect_plain(growth, refused, &e);
    return e;
  }
  bool expect_range(const GrowingBytes::Growth& growth, const Refusals& refused,
                    Expected* e) const {
    const std::size_t most = up(std::max(growth.bytes, growth.bytes_max), kHugePageBytes);
    const std::size_t wish = std::min(most, up(growth.bytes * kReserveFactor, kHugePageBytes));
    const std::size_t need = up(growth.bytes, kHugePageBytes);
    unsigned refusals = refused.reserves;
    std::size_t reserved = wish;
    if (refusals > 0) {
      e->events.push_back({HostCall::kReserve, 0, wish, 0, true});
      if (need == wish || refusals > 1) {
        if (need < wish) e->events.push_back({HostCall::kReserve, 0, need, 0, true});
        return false;
      }
      reserved = need;
    }
    const std::uintptr_t begin = granted(HostCall::kReserve);
    e->events.push_back({HostCall::kReserve, begin, reserved});
    const std::size_t room = std::min(up(growth.bytes, kCommitBytes), reserved);
    e->events.push_back({HostCall::kCommit, begin, room, 0, refused.commit});
    if (refused.commit) {
      e->events.push_back({HostCall::kRelease, begin, reserved});
      return false;
    }
    const bool is_full_range = reserved_ > 0 && room_ == reserved_;
    if (reserved_ > 0) e->events.push_back({HostCall::kAdvise, data_, room_});
    if (is_full_range) e->events.push_back({HostCall::kMove, data_, room_, begin, refused.move});
    if (is_full_range && !refused.move) {
      e->steps = room_ / kHugePageBytes;
    } else {
      e->steps = growth.kept / kCacheLineBytes;
      e->copies = true;
      release(&e->events);
    }
    e->room = room;
    e->reserved = reserved;
    return true;
  }
  void expect_plain(const GrowingBytes::Growth& growth, const Refusals& refused,
                    Expected* e) const {
    const std::size_t room = up(growth.bytes, kCacheLineBytes);
    e->is_grown = !refused.plain;
    e->events.push_back({HostCall::kNew, refused.plain ? 0 : granted(HostCall::kNew), room,
                         kCacheLineBytes, refused.plain});
    if (!e->is_grown) return;
    if (room <= kPlainTableBytesMax) {
      e->steps = growth.kept / kCacheLineBytes;
      if (growth.clears) e->steps += (room - growth.kept) / kCacheLineBytes;
    }
    e->copies = true;
    release(&e->events);
    e->room = room;
    e->reserved = 0;
  }

  std::optional<GrowingBytes> table_{std::in_place};
  std::uintptr_t data_ = 0;
  std::size_t room_ = 0, reserved_ = 0, written_ = 0, written_ever_ = 0;
  std::vector<std::size_t> written_at_;
};

/// A number of bytes above `least`: near a limit, or a little more.
std::size_t bytes_above(std::size_t least, spec::Random& dice) {
  const std::size_t limits[] = {64,
                                kPlainTableBytesMax,
                                kCommitBytes,
                                kHugePageBytes,
                                2 * kHugePageBytes,
                                5 * kHugePageBytes,
                                least,
                                2 * least,
                                up(least + 1, kHugePageBytes)};
  const std::size_t near = limits[dice.below(std::size(limits))];
  const std::size_t by = (dice.below(2) == 0 ? 1 : 64) * dice.below(3);
  const std::size_t bytes = dice.below(2) == 0 ? near + by : near - std::min(near, by);
  return bytes > least ? bytes : least + 1 + dice.below(200);
}

/// Grows one table until it is long, or for some growths.
void grow_at_random(spec::Random& dice) {
  const WatchScope scope;
  ModelledTable table;
  const bool is_unlucky = dice.below(2) == 0;
  const std::size_t most = dice.below(3) == 0 ? std::size_t{1} << 40 : bytes_above(100, dice);
  for (unsigned i = 0; i < 16 && table.room() < 12 * kHugePageBytes; ++i) {
    GrowingBytes::Growth growth{};
    growth.bytes = bytes_above(table.room(), dice);
    growth.bytes_max = std::max(most, growth.bytes);
    // Often all that was written, a little of it, or as much as a limit.
    const std::size_t kept[] = {table.written(), dice.below(4),      64 * dice.below(4),
                                kHugePageBytes,  kHugePageBytes - 1, kHugePageBytes + 1};
    growth.kept = std::min(table.written(), kept[dice.below(2) == 0 ? 0 : dice.below(6)]);
    growth.clears = growth.kept >= table.written_ever() && dice.below(2) == 0;
    Refusals refused;
    if (is_unlucky) {
      refused.reserves = static_cast<unsigned>(dice.below(3));
      refused.commit = dice.below(4) == 0;
      refused.move = dice.below(3) == 0;
      refused.plain = dice.below(4) == 0;
    }
    SCOPED_TRACE(::testing::Message() << growth.bytes << " bytes of " << growth.bytes_max
                                      << ", kept " << growth.kept << ", room " << table.room());
    table.grow(growth, refused);
    if (::testing::Test::HasFailure()) return;
    if (dice.below(3) != 0) table.write(table.room() - std::min(table.room(), dice.below(3)));
  }
}

/// A tenth of the seeds: each takes a second.
class GrowingTableHostTest : public ::testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(InTenths, GrowingTableHostTest, ::testing::Range<std::uint64_t>(0, 10));

TEST_P(GrowingTableHostTest, MakesTheCallsThatItsInvariantsSayWhateverTheHostRefuses) {
  for (std::uint64_t seed = 30 * GetParam() + 1; seed <= 30 * GetParam() + 30; ++seed) {
    spec::Random dice(seed);
    grow_at_random(dice);
    if (::testing::Test::HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST(GrowingTableHost, AFullRangeMovesToOneForAllThatTheTableCanNeed) {
  for (const bool is_refused : {false, true}) {
    const WatchScope scope;
    ModelledTable table;
    constexpr std::size_t kMost = std::size_t{1} << 40;
    // The host grants no more addresses than are needed, and the table fills them.
    table.grow({3 * kHugePageBytes, 0, kMost, true}, {1});
    table.write(3 * kHugePageBytes);
    ASSERT_EQ(table.room(), table.reserved());
    Refusals refused;
    refused.move = is_refused;
    table.grow({3 * kHugePageBytes + 1, 3 * kHugePageBytes, kMost, true}, refused);
    EXPECT_EQ(table.reserved(), std::size_t{3 * kHugePageBytes + 1} * kReserveFactor /
                                        kHugePageBytes * kHugePageBytes +
                                    kHugePageBytes);
  }
}

TEST(GrowingTableHost, ATableOfElementsAsksOnlyWhereItLacksRoom) {
  const WatchScope scope;
  GrowingTable<std::uint64_t> table;
  EXPECT_EQ(table.data(), nullptr);
  std::uint64_t kept = 0;
  unsigned ranges = 0;
  for (std::uint64_t count = 8; count <= 1 << 20; count *= 2) {
    SCOPED_TRACE(count);
    const bool has_room = table.has_room(count);
    watched.events.clear();
#if ASHLAR_ASSERTIONS
    lock_steps = 0;
#endif
    ASSERT_TRUE(table.grow(count, kept, 1 << 21));
#if ASHLAR_ASSERTIONS
    // A table whose other values are any is not cleared.
    EXPECT_LE(lock_steps, kept / 8);
#endif
    ASSERT_EQ(watched.events.empty(), has_room);
    if (!has_room && watched.events.front().call == HostCall::kReserve) {
      EXPECT_EQ(watched.events.front().bytes, sizeof(std::uint64_t) << 21);
      ranges += 1;
    }
    EXPECT_TRUE(table.has_room(count));
    EXPECT_FALSE(table.has_room(std::uint64_t{1} << 60));
    watched.events.clear();
    ASSERT_TRUE(table.grow(count, count, 1 << 21));
    ASSERT_TRUE(table.grow_zeroed(count / 2, count / 2, 1 << 21));
    EXPECT_TRUE(watched.events.empty()) << "there is room";
    for (std::uint64_t i = 0; i < count; ++i) table.data()[i] = i;
    kept = count;
  }
  EXPECT_EQ(ranges, 1u);
}

}  // namespace
}  // namespace ashlar
