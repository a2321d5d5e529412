// A segment's way in and out of a cache, seen from its parts: the relaxed capture mode around a
// growth, records that come back, what is counted while a segment is in transfer, which goes first.
//
// Imitates: captures with a driver that refuses the mode, a host that refuses the pool's records
// after the driver gave its segment, threads that wait for the reclaim lock. Does not prove: the
// order of whole passes (segment_release_test.cc).
#include <thread>

#include <ashlar/cache/pins.h>
#include <ashlar/cache/queries.h>
#include <ashlar/cache/segment_release.h>

#include "props/cache/parts_fixture.h"
#include "props/host_memory/counting_host.h"

namespace ashlar::cache {
namespace {

template <class Slots>
std::size_t filled(const Slots& slots) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < slots.size(); ++i) count += slots[i].load() != nullptr ? 1 : 0;
  return count;
}
/// Gives a test a private member: the names in an explicit instantiation are not access checked.
template <auto Member>
struct LeafCacheOpened {
  friend std::size_t cached_leaves(const PageMap& map) { return filled(map.*Member); }
};
template struct LeafCacheOpened<&PageMap::leaf_cache_>;
std::size_t cached_leaves(const PageMap& map);

/// Notes every change of the capture mode; refuses the first if told so.
class ModeDevice final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  bool refuses = false;
  device::CaptureMode mode = device::CaptureMode::kThreadLocal;
  std::vector<device::CaptureMode> modes;
  Result<device::CaptureMode> exchange_capture_mode(device::CaptureMode to) noexcept override {
    modes.push_back(to);
    if (refuses) return Status{Code::kDriverError, "planted"};
    return std::exchange(mode, to);
  }
};

TEST(SegmentWayTest, TheRelaxedModeLastsForAScopeAndTheFormerOneComesBack) {
  using device::CaptureMode;
  spec::SimGpuOptions options;
  options.capacities = {64_MiB};
  spec::SimGpu gpu(options);
  for (const CaptureMode before :
       {CaptureMode::kGlobal, CaptureMode::kThreadLocal, CaptureMode::kRelaxed}) {
    ModeDevice device(gpu.device(0));
    device.mode = before;
    Driver* first = nullptr;
    Driver driver(device, first);
    {
      const RelaxedCapture none(driver, false);
      EXPECT_TRUE(none.status().is_ok());
    }
    EXPECT_TRUE(device.modes.empty()) << "no capture, no call";
    {
      const RelaxedCapture relaxed(driver, true);
      EXPECT_TRUE(relaxed.status().is_ok());
      EXPECT_EQ(device.mode, CaptureMode::kRelaxed);
    }
    EXPECT_EQ(device.mode, before);
    EXPECT_EQ(device.modes, (std::vector{CaptureMode::kRelaxed, before}));
    EXPECT_EQ(driver.calls(device::CallKind::kExchangeCaptureMode), 2u);
    device.modes.clear();
    device.refuses = true;
    {
      const RelaxedCapture refused(driver, true);
      EXPECT_EQ(refused.status().code(), Code::kDriverError);
    }
    EXPECT_EQ(device.modes.size(), 1u) << "a mode that was not taken is not given back";
  }
}

TEST(SegmentWayTest, ARecordWhoseSegmentCouldNotBeEnteredServesTheNextOne) {
  CacheParts parts(1_GiB);
  const Stream own = parts.stream(), fresh = parts.stream();
  const Address first = parts.allocate(20_MiB, own);
  parts.free(first);
  EXPECT_TRUE(parts.gpu().drain_all().is_ok());
  ASSERT_TRUE(parts.cache().reclaimer().trim().is_ok());
  static_cast<void>(parts.heap(fresh));  // its pools are empty, and have no room for a segment yet
  const auto segments_back = [&] {
    return parts.cache().driver().calls(device::CallKind::kSegmentFree);
  };
  const std::uint64_t before = segments_back();
  Request request{};
  request.size = request.requested = 20_MiB;
  request.fit_end = Bytes::max();
  request.pool = PoolId::kLarge;
  props::counted.is_empty = true;
  EXPECT_EQ(parts.cache().supply().grow(parts.heap(fresh), request).code(), Code::kHostOutOfMemory);
  props::counted.is_empty = false;
  EXPECT_EQ(segments_back(), before + 1) << "the driver has it back";
  EXPECT_EQ(parts.cache().validate(), nullptr);
  const std::uint64_t made = props::counted.made;
  EXPECT_FALSE(parts.allocate(20_MiB, own).is_null());
  EXPECT_EQ(props::counted.made, made) << "the spare record was lost";
}

TEST(SegmentWayTest, ALedgerGivesItsRecordsBackWhenItEnds) {
  const auto live_and_die = [] {
    CacheParts parts(1_GiB);
    const Stream own = parts.stream();
    std::vector<Address> blocks;
    for (int i = 0; i < 20; ++i) blocks.push_back(parts.allocate(20_MiB, own));
    for (const Address block : blocks) parts.free(block);
    static_cast<void>(parts.cache().reclaimer().trim());
    parts.allocate(20_MiB, own);
  };
  live_and_die();  // what is made once
  const std::int64_t before = props::counted.live;
  live_and_die();
  EXPECT_EQ(props::counted.live, before);
}

TEST(SegmentWayTest, PeaksOfOversizeBlocksAreResetWithTheOthers) {
  CacheParts parts(2_GiB, "wait_ms:never,max_split_size_mb:64");
  const Stream own = parts.stream();
  const Address a = parts.allocate(80_MiB, own), b = parts.allocate(80_MiB, own);
  parts.free(b);
  EXPECT_TRUE(parts.gpu().drain_all().is_ok());
  ASSERT_TRUE(parts.cache().reclaimer().trim().is_ok());
  DeviceStats stats;
  const auto expect = [&](const Stat& stat, std::uint64_t peak, std::uint64_t up,
                          std::uint64_t down) {
    EXPECT_EQ(std::tuple(stat.current, stat.peak, stat.increased, stat.decreased),
              std::tuple(1u, peak, up, down));
  };
  const auto expect_all = [&](std::uint64_t peak, std::uint64_t up, std::uint64_t down) {
    write_stats(parts.cache(), &stats);
    expect(stats.oversize_allocations, peak, up, down);
    expect(stats.oversize_segments, peak, up, down);
    expect(stats.segments[0], peak, up, down);
    expect(stats.segments[2], peak, up, down);
    EXPECT_EQ(stats.reserved_bytes[0].peak, peak * (80 << 20));
  };
  expect_all(2, 2, 1);
  reset_peak_stats(parts.cache());
  expect_all(1, 2, 1);
  reset_accumulated_stats(parts.cache());
  expect_all(1, 0, 0);
  parts.free(a);
}

/// A release of its own, over the parts of a cache.
struct Release {
  explicit Release(CacheParts& parts)
      : pass(parts.cache().heaps(), parts.shared(), parts.cache().supply(), lock) {}
  ReclaimLock lock;
  SegmentRelease pass;
};

TEST(SegmentWayTest, AnAccountTakenWhileASegmentGoesBackCountsItInTransfer) {
  CacheParts parts(1_GiB);
  const Stream own = parts.stream();
  const Address kept = parts.allocate(24_MiB, own), gone = parts.allocate(20_MiB, own);
  parts.free(gone);
  EXPECT_TRUE(parts.gpu().drain_all().is_ok());
  OutOfMemory account;
  parts.device().on_free = [&](Address) {
    Request request{};
    request.size = 20_MiB;
    request.pool = PoolId::kLarge;
    write_account(parts.heap(own), request, &account);
    return Status::ok();
  };
  ASSERT_TRUE(parts.cache().reclaimer().trim().is_ok());
  EXPECT_EQ(account.allocated, 24_MiB);
  EXPECT_EQ(account.in_transfer, 20_MiB);
  EXPECT_EQ(account.free_cached + account.pending, 0_B);
  EXPECT_EQ(account.reserved, 44_MiB);
  parts.free(kept);
}

TEST(SegmentWayTest, OfEquallyLargeSegmentsOfBothPoolsTheOldestGoesFirst) {
  for (const bool small_first : {true, false}) {
    CacheParts parts(1_GiB, "wait_ms:never,small_segment_mb:20");
    const Stream own = parts.stream();
    std::vector<Address> blocks;
    for (const bool is_small : {small_first, !small_first})
      blocks.push_back(parts.allocate(is_small ? 1_MiB : 20_MiB, own));
    for (const Address block : blocks) parts.free(block);
    StreamHeap& heap = parts.heap(own);
    {
      const Guard guard(heap.lock);
      heap.clock.complete(heap.clock.advance());
    }
    std::vector<Address> asked;
    parts.device().on_free = [&](Address base) {
      asked.push_back(base);
      return Status::ok();
    };
    Release release(parts);
    const ReclaimGuard guard(release.lock);
    EXPECT_EQ(release.pass.release_enough(heap, 40_MiB, 0_B), 40_MiB);
    EXPECT_EQ(asked, blocks);
  }
}

TEST(SegmentWayTest, APassGivesOneSegmentBackBeforeItLetsAnotherThreadIn) {
  CacheParts parts(1_GiB);
  const Stream own = parts.stream();
  std::vector<Address> blocks;
  for (int i = 0; i < 6; ++i) blocks.push_back(parts.allocate(20_MiB, own));
  for (const Address block : blocks) parts.free(block);
  StreamHeap& heap = parts.heap(own);
  {
    const Guard guard(heap.lock);
    heap.clock.complete(heap.clock.advance());
  }
  std::atomic<unsigned> asked{0}, asked_before_turn{99};
  parts.device().on_free = [&](Address) {
    ++asked;
    return Status::ok();
  };
  Release release(parts);
  std::thread other;
  {
    const ReclaimGuard guard(release.lock);
    other = std::thread([&] {
      const ReclaimGuard turn(release.lock);
      asked_before_turn = asked.load();
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // it waits, and the hold is long
    EXPECT_EQ(release.pass.release_all(), 120_MiB);
  }
  other.join();
  EXPECT_GE(asked_before_turn, 1u) << "a pass that others interrupt for ever would give back none";
}

TEST(SegmentWayTest, ASegmentThatChangesHeapsCountsAsRemovedFromItsPool) {
  CacheParts parts(1_GiB, "wait_ms:never,reuse:completed");
  const Stream own = parts.stream(), other = parts.stream();
  static_cast<void>(parts.heap(other));
  const Address block = parts.allocate(20_MiB, own);
  parts.free(block);
  {
    StreamHeap& heap = parts.heap(own);
    const Guard guard(heap.lock);
    heap.clock.complete(heap.clock.advance());
  }
  const auto removals = [&]() ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    return parts.cache().supply().removals();
  };
  const std::uint64_t before = removals();
  EXPECT_EQ(parts.allocate(20_MiB, other), block) << "adopted";
  EXPECT_EQ(removals(), before + 1);
  parts.free(block);
  EXPECT_EQ(parts.cache().validate(), nullptr);
}

TEST(SegmentWayTest, TheLeafOfASegmentIsCachedForEveryFree) {
  PageMap map;
  EXPECT_EQ(cached_leaves(map), 0u);
  DeviceSegment segment;
  segment.size = 2_MiB;
  segment.heap = reinterpret_cast<StreamHeap*>(std::uintptr_t{4096});
  for (std::uint64_t leaf = 1; leaf <= 40; ++leaf) {
    segment.base = Address{leaf << 33};
    ASSERT_TRUE(map.reserve(segment.base, segment.size, segment.owner()).is_ok());
    map.insert(segment);
    EXPECT_EQ(cached_leaves(map), std::min<std::size_t>(leaf, 32)) << "each in a slot of its own";
  }
}

/// A call that reads the pages under an allocation holds no lock meanwhile (pins.h). A caller that frees the allocation
/// on another thread breaks a rule; the table of pages is there nevertheless.
TEST(SegmentWayTest, AddressesStayWhileACallReadsTheirPages) {
  CacheParts parts(64_MiB, "backing:pages");
  const Stream stream = parts.stream();
  const Address address = parts.allocate(4_MiB, stream);
  const PageMap& map = parts.shared().pages;
  const HeldAllocation held = DeviceCache::hold(map.find(address), address).value();
  parts.free(address);
  EXPECT_TRUE(parts.cache().reclaimer().trim().is_ok());
  EXPECT_FALSE(map.find(address).first.is_nobody());
  static_cast<void>(held.pins->read(held));
  EXPECT_TRUE(parts.cache().reclaimer().trim().is_ok());
  EXPECT_TRUE(map.find(address).first.is_nobody());
}

}  // namespace
}  // namespace ashlar::cache
