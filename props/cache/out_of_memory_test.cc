// The out-of-memory message (row DEV-14): every figure is in it, and advice only where it can help.
//
// Imitates: the failures that users report most. Does not prove: that the allocator fills in the
// account rightly.
#include <gtest/gtest.h>

#include <ashlar/cache/out_of_memory.h>
#include <ashlar/device/device.h>

namespace ashlar {
namespace {

cache::OutOfMemory account() {
  cache::OutOfMemory o;
  o.device = DeviceId{3};
  o.config.backing = cache::Backing::kSegments;
  o.requested = 1000000000_B;
  o.rounded = 1000000512_B;
  o.segment = 954_MiB;
  o.device_memory.total = 80_GiB;
  o.device_memory.free = 1_MiB;
  o.limit = Bytes::max();
  o.reserved = 60_GiB;
  o.allocated = 50_GiB;
  o.pending = 0_B;
  o.in_transfer = 6_MiB;
  o.free_cached = 10_GiB - 6_MiB;
  o.free_splits = 9_GiB;
  o.largest_free = 512_MiB;
  o.largest_reachable = 1_MiB;
  return o;
}

bool says(cache::OutOfMemory o, const char* text) {
  o.advise();
  return o.message().find(text) != std::string::npos;
}

TEST(OutOfMemoryTest, TheMessageHasEveryFigure) {
  cache::OutOfMemory o = account();
  o.advise();
  EXPECT_EQ(
      o.message(),
      "Out of memory on device 3: 953.67 MiB (1000000000 bytes) requested, 953.67 MiB (1000000512 "
      "bytes) after rounding, 954.00 MiB (1000341504 bytes) asked of the driver.\n"
      "The device has 80.00 GiB (85899345920 bytes), of which 1.00 MiB (1048576 bytes) free and "
      "20.00 GiB (21473787904 bytes) in use outside this allocator.\n"
      "No memory limit is set.\n"
      "This allocator holds 60.00 GiB (64424509440 bytes): 50.00 GiB (53687091200 bytes) "
      "allocated, "
      "0 bytes freed but still in use by other streams, 6.00 MiB (6291456 bytes) in transfer, "
      "9.99 GiB (10731126784 bytes) free.\n"
      "The largest free block is 512.00 MiB (536870912 bytes); the largest that this stream may be "
      "given now is 1.00 MiB (1048576 bytes); fragmentation of what is free: 95.0 %.\n"
      "Advice: enough is free but in pieces; keep large blocks whole (max_split_size_mb).\n");
}

TEST(OutOfMemoryTest, TheMessageSaysWhatMemoryPoolsKeep) {
  cache::OutOfMemory o = account();
  EXPECT_FALSE(says(o, "memory pools"));
  o.free_in_pools = 8_GiB;
  EXPECT_TRUE(says(o,
                   " free, 8.00 GiB (8589934592 bytes) of it in memory pools that keep it to "
                   "themselves.\n"));
}

TEST(OutOfMemoryTest, ARequestOverTheWholeDeviceIsSaidToBeOneAndNothingIsAdvised) {
  cache::OutOfMemory o = account();
  o.pending = 1_GiB;
  o.config.wait_ms = 0;  // a wait would be advised
  o.rounded = 80_GiB;
  EXPECT_TRUE(says(o, "Advice"));
  EXPECT_FALSE(says(o, "larger than the device"));
  o.rounded += 512_B;
  EXPECT_FALSE(says(o, "Advice")) << "no setting makes the device larger";
  EXPECT_TRUE(says(o, "The request alone is larger than the device"));
  o.device_memory.total = 0_B;
  EXPECT_FALSE(says(o, "larger than the device")) << "how large it is nobody said";
}

TEST(OutOfMemoryTest, FragmentationIsTheShareOutsideTheLargestBlock) {
  cache::OutOfMemory o = account();
  o.free_cached = 100_B;
  o.largest_free = 25_B;
  EXPECT_DOUBLE_EQ(o.fragmentation(), 0.75);
  o.free_cached = 0_B;
  EXPECT_DOUBLE_EQ(o.fragmentation(), 0);
  o.free_cached = 10_B;
  o.largest_free = 20_B;
  EXPECT_DOUBLE_EQ(o.fragmentation(), 0) << "figures of two moments must not give a negative share";
}

TEST(OutOfMemoryTest, NoAdviceRepeatsWhatIsOnAlready) {
  cache::OutOfMemory o = account();
  EXPECT_TRUE(says(o, "max_split_size_mb"));
  o.config.max_split_size = 64_MiB;
  EXPECT_FALSE(says(o, "max_split_size_mb"));
  EXPECT_TRUE(says(o, "roundup_power2_divisions"));
  o.config.roundup_divisions.fill(4);
  EXPECT_FALSE(says(o, "Advice"));
}

TEST(OutOfMemoryTest, LargeBlocksAreAdvisedToStayWholeOnlyWhereMemoryIsInPieces) {
  cache::OutOfMemory o = account();
  EXPECT_TRUE(says(o, "in pieces"));
  o.largest_free = 2_GiB;
  EXPECT_FALSE(says(o, "in pieces")) << "one block is large enough, whoever's it is";
  o = account();
  o.free_splits = 100_MiB;
  EXPECT_FALSE(says(o, "in pieces")) << "the rest is in whole segments, which no setting splits";
  o = account();
  o.rounded = 1_MiB;
  o.largest_free = 512_KiB;
  EXPECT_FALSE(says(o, "in pieces")) << "small requests have segments of their own";
  o = account();
  o.capturing = true;
  EXPECT_FALSE(says(o, "in pieces")) << "what a capture cannot reclaim is not in pieces";
}

TEST(OutOfMemoryTest, ALimitIsNamedAndBlamedOnlyWhenItIsTheCause) {
  cache::OutOfMemory o = account();
  o.limit = 60_GiB;
  EXPECT_TRUE(says(o, "The memory limit in force is 60.00 GiB"));
  EXPECT_FALSE(says(o, "raise it")) << "the device itself has no room either";
  o.device_memory.free = 20_GiB;
  EXPECT_TRUE(says(o, "raise it"));
  o.limit = 61_GiB;
  EXPECT_FALSE(says(o, "raise it")) << "there is room under it";
}

TEST(OutOfMemoryTest, PendingMemoryIsExplainedByTheWait) {
  cache::OutOfMemory o = account();
  o.pending = 1_GiB;
  EXPECT_FALSE(says(o, "wait"));
  o.wait_ran_out = true;
  EXPECT_TRUE(says(o, "The permitted wait of 1000 ms ran out before the work that uses memory."));
  EXPECT_TRUE(says(o, "allow a longer wait (wait_ms)"));
  o.wait_ran_out = false;
  o.config.wait_ms = 0;
  EXPECT_TRUE(says(o, "waiting is off; allow a wait (wait_ms)"));
  o.pending = 0_B;
  o.wait_ran_out = true;
  EXPECT_TRUE(says(o, "Unfinished work still uses memory that could then come back."))
      << "of idle segments, for one";
  EXPECT_TRUE(says(o, "waiting is off; allow a wait (wait_ms)"));
  o.capturing = true;
  EXPECT_FALSE(says(o, "wait_ms")) << "a capture never waits";
  EXPECT_TRUE(says(o, "a capture is underway"));
}

TEST(OutOfMemoryTest, ABlockOfAnotherStreamIsAdvisedByTheReuseSetting) {
  cache::OutOfMemory o = account();
  o.largest_free = o.fits_elsewhere = 1_GiB;
  o.config.reuse = cache::Reuse::kOwn;
  EXPECT_TRUE(says(o, "reuse:completed"));
  o.config.reuse = cache::Reuse::kCompleted;
  EXPECT_TRUE(says(o, "reuse:ordered"));
  o.config.reuse = cache::Reuse::kOrdered;
  EXPECT_FALSE(says(o, "Advice"));
  o.config.reuse = cache::Reuse::kOwn;
  o.fits_elsewhere = 0_B;
  EXPECT_FALSE(says(o, "Advice")) << "a large block of the wrong pool helps nobody";
}

TEST(OutOfMemoryTest, ASilentDriverIsSaidToBeSilent) {
  cache::OutOfMemory o = account();
  o.device_memory.total = 0_B;
  EXPECT_TRUE(says(o, "The driver did not say how much memory the device has."));
}

}  // namespace
}  // namespace ashlar
