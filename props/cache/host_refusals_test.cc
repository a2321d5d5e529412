// The host runs out of memory in the middle of a call: after the call's first record, where it lends
// a block, where it enters a new segment, where it has waited for one.
//
// Imitates: another thread that takes the last spare records meanwhile; a host that is empty from a
// device call on. How many records are spare depends on how many blocks are live, so each test goes
// through the numbers.
// Does not prove: anything about several threads. This executable links host_memory/refusing_host.cc.
#include <gtest/gtest.h>

#include <functional>
#include <utility>
#include <vector>

#include <ashlar/cache/caching_allocator.h>
#include <ashlar/device/forwarding_device.h>
#include <ashlar/device/host_device.h>

#include "props/adapters/cache_peer.h"
#include "props/adapters/in_segments.h"
#include "props/host_memory/refusing_host.h"

namespace ashlar {
namespace {

using props::host;

constexpr DeviceId kDeviceZero{0};
constexpr unsigned kLiveMax = 80;  // over two slabs of nodes, and more than a slab of records

/// Runs a part of the test inside the next call of a kind.
class RefusingDevice final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  std::function<void()> in_segment_alloc;
  std::function<void()> in_wait;
  bool is_busy = false;

  Result<Address> segment_alloc(Bytes size) noexcept override {
    run_once(in_segment_alloc);
    return ForwardingDevice::segment_alloc(size);
  }
  Status event_query(EventHandle event) noexcept override {
    return is_busy ? Status{Code::kNotReady, "busy"} : ForwardingDevice::event_query(event);
  }
  Status event_synchronize(EventHandle event, std::uint32_t timeout_ms) noexcept override {
    is_busy = false;
    run_once(in_wait);
    return ForwardingDevice::event_synchronize(event, timeout_ms);
  }

 private:
  static void run_once(std::function<void()>& piece) {
    const std::function<void()> call = std::exchange(piece, {});
    if (call) call();
  }
};

/// An allocator with so many live blocks of 512 bytes on a stream, behind a host that has memory
/// until empty_host().
class World {
 public:
  explicit World(unsigned live) {
    host = {};
    device::Device* devices[] = {&device_};
    cache::Config config = props::config_in_segments();
    config.wait_ms = 1000;
    allocator_ = cache::CachingAllocator::create(devices, config).value();
    own = inner_.create_stream().value();
    other = inner_.create_stream().value();
    for (unsigned i = 0; i < live; ++i) held.push_back(allocate(512_B, own).value());
  }
  ~World() {
    host = {};
    for (const Address block : held) EXPECT_TRUE(allocator_->free(block).is_ok());
    EXPECT_TRUE(allocator_->trim(kDeviceZero).is_ok());
    EXPECT_EQ(inner_.ledger().segments, 0u) << "C14";
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  static void empty_host() {
    host.fail_at = host.allocations + 1;
    host.stays_empty = true;
  }
  Result<Address> allocate(Bytes size, const Stream& on) { return allocator_->allocate(size, on); }
  /// The call's answer is a block, or says that the host has no memory; then nothing has changed,
  /// and the call works when the host has some. True if it was refused.
  bool is_refused(const Result<Address>& got, Bytes size, const Stream& on) {
    EXPECT_EQ(allocator_->validate(), nullptr);
    host = {};
    if (got.is_ok()) {
      held.push_back(got.value());
      return false;
    }
    EXPECT_EQ(got.code(), Code::kHostOutOfMemory);
    const Result<Address> again = allocate(size, on);
    EXPECT_TRUE(again.is_ok());
    held.push_back(again.value_or(Address{}));
    return true;
  }

  Stream own;
  Stream other;
  std::vector<Address> held;

 private:
  device::HostDevice inner_{kDeviceZero};

 public:
  RefusingDevice& device() { return device_; }
  cache::CachingAllocator& allocator() { return *allocator_; }

 private:
  RefusingDevice device_{inner_};
  std::unique_ptr<cache::CachingAllocator> allocator_;
};

TEST(HostRefusalsTest, ALenderWithoutSpareRecordsKeepsItsBlock) {
  unsigned refused = 0;
  for (unsigned live = 1; live <= kLiveMax; ++live) {
    SCOPED_TRACE(live);
    World world(live);
    // Its heap is made and has records of its own.
    EXPECT_TRUE(world.allocator().free(world.allocate(40_MiB, world.other).value()).is_ok());
    World::empty_host();
    refused += world.is_refused(world.allocate(512_B, world.other), 512_B, world.other);
  }
  EXPECT_GT(refused, 2u) << "no node, or no record of a block";
  EXPECT_LT(refused, kLiveMax);
}

TEST(HostRefusalsTest, AUseByAKnownStreamIsNotedOrRefused) {
  unsigned refused = 0;
  for (unsigned live = 1; live <= kLiveMax; ++live) {
    SCOPED_TRACE(live);
    World world(live);
    EXPECT_TRUE(world.allocator().free(world.allocate(40_MiB, world.other).value()).is_ok());
    World::empty_host();
    const Status noted = world.allocator().record_use(world.held.front(), world.other);
    EXPECT_EQ(world.allocator().validate(), nullptr);
    host = {};
    if (noted.is_ok()) continue;
    ++refused;
    EXPECT_EQ(noted.code(), Code::kHostOutOfMemory);
    EXPECT_TRUE(world.allocator().record_use(world.held.front(), world.other).is_ok());
  }
  EXPECT_GT(refused, 0u);
  EXPECT_LT(refused, kLiveMax);
}

TEST(HostRefusalsTest, ANewSegmentGoesBackWhereTheLastSpareNodeIsTakenMeanwhile) {
  unsigned refused = 0;
  for (unsigned live = 1; live <= kLiveMax; ++live) {
    SCOPED_TRACE(live);
    World world(live);
    std::vector<Address> meanwhile;
    // As another thread on the same stream could: it takes what this call has made sure of.
    world.device().in_segment_alloc = [&] {
      World::empty_host();
      for (unsigned i = 0; i < kLiveMax; ++i) {
        const Result<Address> got = world.allocate(512_B, world.own);
        if (!got.is_ok()) break;
        meanwhile.push_back(got.value());
      }
    };
    const Result<Address> got = world.allocate(40_MiB, world.own);
    refused += world.is_refused(got, 40_MiB, world.own);
    world.held.insert(world.held.end(), meanwhile.begin(), meanwhile.end());
  }
  EXPECT_GT(refused, 0u);
}

TEST(HostRefusalsTest, ANewSegmentGoesBackWhicheverOfItsRecordsIsRefused) {
  unsigned refused = 0;
  for (unsigned nth = 1; nth <= 12; ++nth) {
    SCOPED_TRACE(nth);
    World world(1);
    world.held.push_back(world.allocate(40_MiB, world.own).value());  // the pool has records
    cache::StreamHeap& heap =
        *cache::CachePeer::device(world.allocator(), 0).heaps().find(world.own.id);
    cache::UseNodes& nodes = cache::CachePeer::uses(heap).nodes();
    // As other threads on the same stream could, which take a node for each use.
    std::vector<cache::UseNode*> taken;
    world.device().in_segment_alloc = [&] {
      while (nodes.spare_count() > world.held.size()) taken.push_back(nodes.take());
      host.fail_at = host.allocations + nth;
    };
    const Result<Address> got = world.allocate(40_MiB, world.own);
    for (cache::UseNode* const node : taken) nodes.give(node);
    refused += world.is_refused(got, 40_MiB, world.own);
  }
  EXPECT_GT(refused, 0u);
  EXPECT_LT(refused, 12u) << "there are more records than were refused";
}

TEST(HostRefusalsTest, AReclaimThatFindsABlockButNoRecordSaysThatItIsTheHost) {
  unsigned refused = 0;
  for (unsigned live = 1; live <= kLiveMax / 2; ++live) {
    SCOPED_TRACE(live);
    World world(0);
    // A segment and a record of the large pool each.
    for (unsigned i = 0; i < live; ++i)
      world.held.push_back(world.allocate(12_MiB, world.own).value());
    const Address used = world.allocate(20_MiB, world.own).value();
    const Bytes reserved{world.allocator().stats(kDeviceZero).value().reserved_bytes[0].current};
    EXPECT_TRUE(world.allocator().set_memory_limit(kDeviceZero, reserved).is_ok());
    world.device().is_busy = true;
    EXPECT_TRUE(world.allocator().free(used, world.other).is_ok());
    // The wait ends the use; what is found then has to be split.
    world.device().in_wait = [] { World::empty_host(); };
    refused += world.is_refused(world.allocate(12_MiB, world.own), 12_MiB, world.own);
  }
  EXPECT_GT(refused, 0u);
  EXPECT_LT(refused, kLiveMax / 2);
}

}  // namespace
}  // namespace ashlar
