// Tables that grow: what was written stays, what was not is zero where that is asked for, in plain
// memory, in a range, and across every move between them.
//
// Imitates: tables of the block room, from their first elements to beyond their first range. Does
// not prove that a refusal of the host leaves a table as it was (block_pool_memory_test).
#include <ashlar/base/growing_table.h>

#include <gtest/gtest.h>

#include <ashlar/base/spin_lock.h>

namespace ashlar {
namespace {

constexpr std::uint64_t kMost = std::uint64_t{1} << 40;

/// Writes a few elements near the end of what there is room for.
void write_last(std::uint32_t* data, std::uint64_t count) {
  for (std::uint64_t i = count - 4; i < count; ++i) data[i] = static_cast<std::uint32_t>(i | 1);
}
void expect_last(const std::uint32_t* data, std::uint64_t count) {
  for (std::uint64_t i = count - 4; i < count; ++i) {
    ASSERT_EQ(data[i], static_cast<std::uint32_t>(i | 1)) << i;
  }
}

TEST(GrowingTable, KeepsWhatWasWrittenAndClearsTheRest) {
  GrowingTable<std::uint32_t> table;
  std::uint64_t count = 0;
  // Beyond a first range of 512 MiB, so that the table moves to its second one.
  for (std::uint64_t next = 64; next <= std::uint64_t{1} << 28; next *= 2) {
    ASSERT_TRUE(table.grow_zeroed(next, count, kMost));
    for (std::uint64_t last = 64; last <= count; last *= 2) expect_last(table.data(), last);
    for (std::uint64_t i = count; i < next; i += 1 + next / 64) ASSERT_EQ(table.data()[i], 0u);
    write_last(table.data(), next);
    count = next;
  }
}

TEST(GrowingTable, GrowsInPlaceOnceItIsLarge) {
  GrowingTable<std::uint32_t> table;
  ASSERT_TRUE(table.grow(kPlainTableBytesMax, 0, kMost));
  const std::uint32_t* const data = table.data();
  for (std::uint64_t count = kPlainTableBytesMax; count <= std::uint64_t{1} << 24; count *= 2) {
    ASSERT_TRUE(table.grow(count, count / 2, kMost));
    ASSERT_EQ(table.data(), data);
  }
}

#if ASHLAR_ASSERTIONS
TEST(GrowingTable, TakesAFewStepsAtEveryGrowth) {
  GrowingTable<std::uint64_t> table;
  for (std::uint64_t count = 16; count <= std::uint64_t{1} << 26; count *= 2) {
    lock_steps = 0;
    ASSERT_TRUE(table.grow_zeroed(count, count == 16 ? 0 : count / 2, kMost));
    EXPECT_LE(lock_steps, 2 * kPlainTableBytesMax / 64) << count;
  }
}
#endif

}  // namespace
}  // namespace ashlar
