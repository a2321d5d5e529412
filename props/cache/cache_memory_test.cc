// The host runs out of memory under the caching allocator: the n-th allocation of its records
// fails, for every n. A call that fails changes nothing and works when tried again; statistics
// count what happened, and nothing is lost.
//
// This executable links host_memory/refusing_host.cc, which replaces the operators new.
// Does not prove: anything about several threads that run out of memory at once.
#include <gtest/gtest.h>

#include <vector>

#include <ashlar/cache/caching_allocator.h>
#include <ashlar/device/forwarding_device.h>
#include <ashlar/device/host_device.h>
#include <ashlar/share/single_handle_device.h>

#include "props/adapters/in_segments.h"
#include "props/host_memory/refusing_host.h"
#include "spec/gpu/sim_gpu.h"

namespace ashlar {
namespace {

using props::host;

constexpr DeviceId kDevice{0};

/// A device whose segments begin `shift` bytes inside a page of 2 MiB.
class ShiftedDevice final : public device::ForwardingDevice {
 public:
  ShiftedDevice(device::HostDevice& inner, Bytes shift) : ForwardingDevice(inner), shift_(shift) {}
  Result<Address> segment_alloc(Bytes size) noexcept override {
    const Result<Address> base = ForwardingDevice::segment_alloc(size + shift_);
    return base.is_ok() ? Result<Address>(base.value() + shift_) : base;
  }
  Status segment_free(Address base) noexcept override {
    return ForwardingDevice::segment_free(base - shift_);
  }

 private:
  const Bytes shift_;
};

/// An allocator from its making to its end, whose n-th allocation of records fails. Before it,
/// `crowd` other streams take memory.
class Life {
 public:
  Life(std::uint64_t fail_at, int crowd, Bytes shift) : shifted_(device_, shift) {
    device::Device* devices[] = {&shifted_};
    allocator_ = cache::CachingAllocator::create(devices, props::config_in_segments()).value();
    for (int i = 0; i < crowd; ++i) {
      // a whole segment
      held_.push_back(allocator_->allocate(12_MiB, device_.create_stream().value()).value());
    }
    for (int i = 0; i < 20; ++i) streams_.push_back(device_.create_stream().value());
    host = {};
    host.fail_at = fail_at;
  }
  ~Life() { host.fail_at = 0; }

  void run() {
    adopt_a_segment();
    borrow_a_block();
    note_uses();
    for (const Address address : held_) EXPECT_TRUE(allocator_->free(address).is_ok());
    EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
    expect_books();
    EXPECT_EQ(device_.ledger().segments, 0u);
  }

 private:
  /// Makes the call; again, if the host had no memory for it.
  template <class Call>
  auto twice(Call&& call) {
    auto got = call();
    if (!got.is_ok()) {
      EXPECT_EQ(got.code(), Code::kHostOutOfMemory);
      expect_books();
      got = call();
    }
    EXPECT_TRUE(got.is_ok());
    return got;
  }
  Address allocate(Bytes size, const Stream& stream) {
    return twice([&] { return allocator_->allocate(size, stream); }).value();
  }
  void expect_books() {
    EXPECT_EQ(allocator_->validate(), nullptr);
    EXPECT_EQ(allocator_->stats(kDevice).value().steals, steals_);
  }

  void adopt_a_segment() {
    const Address whole = allocate(30_MiB, streams_[0]);
    EXPECT_TRUE(allocator_->free(whole).is_ok());
    held_.push_back(allocate(30_MiB, streams_[1]));
    steals_ += held_.back() == whole;
    expect_books();
  }
  void borrow_a_block() {
    held_.push_back(allocate(4_KiB, streams_[0]));
    const Address lent = allocate(4_KiB, streams_[1]);
    steals_ +=
        allocator_->info(lent).value().segment == allocator_->info(held_.back()).value().segment;
    held_.push_back(lent);
    expect_books();
  }
  void note_uses() {
    for (int i = 0; i < 40; ++i) held_.push_back(allocate(512_B, streams_[0]));
    for (const Stream& stream : streams_) {
      EXPECT_TRUE(twice([&] { return allocator_->record_use(held_.back(), stream); }).is_ok());
    }
    expect_books();
  }

  device::HostDevice device_{kDevice};
  ShiftedDevice shifted_;
  std::unique_ptr<cache::CachingAllocator> allocator_;
  std::vector<Stream> streams_;
  std::vector<Address> held_;
  std::uint64_t steals_ = 0;
};

/// Each allocation of records fails in turn.
void live_until_none_fails(int crowd, Bytes shift) {
  std::uint64_t n = 0;
  do {
    SCOPED_TRACE(++n);
    Life(n, crowd, shift).run();
  } while (host.allocations >= n && !testing::Test::HasFailure());
  EXPECT_GT(n, 20u);
}

TEST(CacheMemoryTest, StreamsThatComeAndGoNeedNoMoreRecords) {
  device::HostDevice device(kDevice);
  device::Device* devices[] = {&device};
  const auto allocator =
      cache::CachingAllocator::create(devices, props::config_in_segments()).value();
  const Stream staying = device.create_stream().value();
  const auto come_and_go = [&](int streams) {
    for (int i = 0; i < streams; ++i) {
      const Stream passing = device.create_stream().value();
      const Address block = allocator->allocate(4_KiB, i % 2 == 0 ? passing : staying).value();
      ASSERT_TRUE(allocator->free(block, i % 2 == 0 ? staying : passing).is_ok());
      ASSERT_TRUE(allocator->retire_stream(passing).is_ok());
      ASSERT_TRUE(device.destroy_stream(passing.handle).is_ok());
    }
  };
  come_and_go(300);
  host = {};
  come_and_go(20'000);
  EXPECT_EQ(host.allocations, 0u) << "C29: records of the host grow with streams that have gone";
}

TEST(CacheMemoryTest, NoSingleAllocationOfTheHostThatFailsLosesAnything) {
  live_until_none_fails(0, 0_B);
}

/// The page map (page_map.h) has one of its 254 numbers left: a segment is adopted by the first
/// owner without a number, from the last owner with one.
TEST(CacheMemoryTest, NoFailingAllocationLosesAnythingWhereManyStreamsHaveMemory) {
  live_until_none_fails(253, 0_B);
}

/// The page map makes room for two owners of a page.
TEST(CacheMemoryTest, NoFailingAllocationLosesAnythingWhereSegmentsBeginInsideAPage) {
  live_until_none_fails(0, 1_MiB);
}

/// Free blocks of 5000 MiB are cached when the host runs out of memory for good.
class EmptyHostTest : public ::testing::Test {
 protected:
  EmptyHostTest() {
    device::Device* devices[] = {&device_};
    allocator_ = cache::CachingAllocator::create(devices, props::config_in_segments()).value();
    stream_ = device_.create_stream().value();
    std::vector<Address> cached;
    for (int i = 0; i < 50; ++i) cached.push_back(allocator_->allocate(100_MiB, stream_).value());
    for (const Address address : cached) EXPECT_TRUE(allocator_->free(address).is_ok());
    host = {};
    host.fail_at = 1;
    host.stays_empty = true;
  }
  ~EmptyHostTest() override { host = {}; }
  /// Allocates until the host is asked for memory; the answer to that.
  Status allocate_to_the_end(cache::OutOfMemory* account) {
    for (int i = 0; i < 1000; ++i) {
      const Result<Address> got = allocator_->allocate(512_B, stream_, account);
      if (!got.is_ok()) return got.status();
      held_.push_back(got.value());
    }
    return Status::ok();
  }

  device::HostDevice device_{kDevice};
  std::unique_ptr<cache::CachingAllocator> allocator_;
  Stream stream_;
  std::vector<Address> held_;
};

/// The whole cache was given back, the permitted wait was waited, and the answer was a shortage of
/// the device's.
TEST_F(EmptyHostTest, ARequestThatTheHostHasNoMemoryForCostsTheDevicesCacheNothing) {
  const cache::DeviceStats before = allocator_->stats(kDevice).value();
  cache::OutOfMemory account;
  const Status refused = allocate_to_the_end(&account);
  EXPECT_EQ(refused.code(), Code::kHostOutOfMemory);
  EXPECT_STREQ(refused.why(), "the host has no memory for the allocator's records");
  EXPECT_EQ(account.requested, 0_B) << "the account is of the device's memory";
  const cache::DeviceStats after = allocator_->stats(kDevice).value();
  EXPECT_GE(after.reserved_bytes[0].current, before.reserved_bytes[0].current);
  EXPECT_EQ(after.waits, before.waits);
  EXPECT_EQ(after.ooms, 0u);
  EXPECT_EQ(after.alloc_retries, 0u);
  EXPECT_EQ(allocator_->validate(), nullptr);
  host = {};
  EXPECT_TRUE(allocator_->allocate(512_B, stream_).is_ok()) << "the next call works";
  for (const Address address : held_) EXPECT_TRUE(allocator_->free(address).is_ok());
}

/// Nor is the ladder climbed where the device, too, would refuse.
TEST_F(EmptyHostTest, NorDoesItClimbTheLadderWhereTheLimitIsReached) {
  host = {};
  held_.push_back(allocator_->allocate(512_B, stream_).value());
  const Bytes reserved{allocator_->stats(kDevice).value().reserved_bytes[0].current};
  EXPECT_TRUE(allocator_->set_memory_limit(kDevice, reserved).is_ok());
  unsigned callbacks = 0;
  allocator_->add_free_memory_callback([&callbacks](DeviceId) { ++callbacks; });
  host.fail_at = 1;
  host.stays_empty = true;
  EXPECT_EQ(allocate_to_the_end(nullptr).code(), Code::kHostOutOfMemory);
  const cache::DeviceStats after = allocator_->stats(kDevice).value();
  EXPECT_EQ(after.reserved_bytes[0].current, reserved.count());
  EXPECT_EQ(after.alloc_retries, 0u);
  EXPECT_EQ(callbacks, 0u);
  for (const Address address : held_) EXPECT_TRUE(allocator_->free(address).is_ok());
}

TEST_F(EmptyHostTest, MemoryThatNeedsNoRecordIsStillServed) {
  const Address cached = allocator_->allocate(100_MiB, stream_).value_or(Address{});
  EXPECT_FALSE(cached.is_null());
  EXPECT_TRUE(allocator_->free(cached).is_ok());
  EXPECT_EQ(host.refused, 0u);
}

TEST_F(EmptyHostTest, AStreamThatIsNewGetsATypedAnswerFromEveryCall) {
  host = {};
  const Address held = allocator_->allocate(512_B, stream_).value();
  const Stream other = device_.create_stream().value();
  host.fail_at = 1;
  host.stays_empty = true;
  EXPECT_EQ(allocator_->allocate(512_B, other).code(), Code::kHostOutOfMemory);
  EXPECT_EQ(allocator_->record_use(held, other).code(), Code::kHostOutOfMemory);
  EXPECT_EQ(allocator_->free(held, other).code(), Code::kHostOutOfMemory);
  EXPECT_EQ(allocator_->begin_capture(other).code(), Code::kHostOutOfMemory);
  EXPECT_TRUE(allocator_->free(held).is_ok()) << "a free never asks the host";
}

TEST_F(EmptyHostTest, ASnapshotIsMadeOrRefusedAndNeverThrows) {
  cache::Snapshot snapshot;
  Status taken{Code::kBusy, "not tried yet"};
  for (std::uint64_t n = 1; !taken.is_ok(); ++n) {
    ASSERT_LT(n, 100u);
    host = {};
    host.throws = true;
    host.fail_at = n;
    taken = allocator_->snapshot(kDevice, &snapshot);
    host = {};
    if (taken.is_ok()) break;
    EXPECT_EQ(taken.code(), Code::kHostOutOfMemory);
    EXPECT_TRUE(snapshot.segments.empty());
    EXPECT_TRUE(snapshot.blocks.empty());
    snapshot = {};
  }
  EXPECT_EQ(snapshot.segments.size(), 50u);
}

TEST_F(EmptyHostTest, APinIsMadeOrRefusedAndItsEndNeedsNoMemory) {
  const Address address = allocator_->allocate(12_MiB, stream_).value();
  host = {};
  host.throws = true;
  host.fail_at = 1;
  EXPECT_EQ(allocator_->pin(address).code(), Code::kHostOutOfMemory);
  EXPECT_EQ(host.refused, 1u);
  host = {};
  const cache::PinnedRange pin = allocator_->pin(address).value();
  EXPECT_TRUE(allocator_->free(address).is_ok());
  host.throws = host.stays_empty = true;
  host.fail_at = 1;
  EXPECT_TRUE(allocator_->unpin(pin).is_ok());
  EXPECT_EQ(host.refused, 0u);
  host = {};
  EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
  EXPECT_EQ(allocator_->stats(kDevice).value().segments[0].current, 0u) << "no refusal holds one";
  EXPECT_EQ(allocator_->validate(), nullptr);
}

/// A device with a driver's pool, whose memory goes back behind its stream's work alone.
class PoolDevice final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  device::DeviceTraits traits() const noexcept override {
    device::DeviceTraits traits = ForwardingDevice::traits();
    traits.has_stream_memory = true;
    return traits;
  }
  Result<Address> stream_alloc(Bytes size, StreamHandle stream) noexcept override {
    stream_ = stream;
    return ForwardingDevice::segment_alloc(size);
  }
  Status stream_free(Address base, StreamHandle stream) noexcept override {
    EXPECT_EQ(stream, stream_);
    return ForwardingDevice::segment_free(base);
  }
  Status stream_trim(Bytes) noexcept override { return Status::ok(); }
  Status segment_free(Address base) noexcept override {
    ADD_FAILURE() << "the stream's earlier work may still use it";
    return ForwardingDevice::segment_free(base);
  }

 private:
  StreamHandle stream_;
};

TEST(CacheMemoryTest, MemoryOfTheDriversPoolThatCannotBeRecordedGoesBackBehindItsStreamsWork) {
  std::uint64_t refusals = 0;
  for (std::uint64_t n = 1;; ++n) {
    ASSERT_LT(n, 100u);
    device::HostDevice inner;
    PoolDevice pool(inner);
    device::Device* const devices[] = {&pool};
    cache::Config config;
    config.backend = cache::AllocatorBackend::kCudaMallocAsync;
    const auto allocator = cache::CachingAllocator::create(devices, config).value();
    const Stream stream = inner.create_stream().value();
    host = {};
    host.fail_at = n;
    const auto made = allocator->allocate(3_MiB, stream);
    const bool is_refused = host.refused != 0;
    host = {};
    if (!made.is_ok()) {
      ++refusals;
      EXPECT_EQ(made.code(), Code::kHostOutOfMemory) << n;
      EXPECT_EQ(inner.ledger().segments, 0u) << n;
      continue;
    }
    EXPECT_TRUE(allocator->free(made.value()).is_ok());
    EXPECT_EQ(inner.ledger().segments, 0u) << n;
    if (!is_refused) break;
  }
  EXPECT_GT(refusals, 1u);
}

/// A device whose own records are never refused.
class QuietDevice final : public device::ForwardingDevice {
  template <class Call>
  static auto quietly(Call&& call) {
    host.is_off = true;
    auto answer = call();
    host.is_off = false;
    return answer;
  }

 public:
  using ForwardingDevice::ForwardingDevice;
  Result<PageHandle> page_create(Bytes size) noexcept override {
    return quietly([&] { return ForwardingDevice::page_create(size); });
  }
  Result<Address> address_reserve(Bytes size, Bytes alignment) noexcept override {
    return quietly([&] { return ForwardingDevice::address_reserve(size, alignment); });
  }
  Status page_map(Address at, Bytes size, PageHandle page) noexcept override {
    return quietly([&] { return ForwardingDevice::page_map(at, size, page); });
  }
  Status page_access(Address at, Bytes size) noexcept override {
    return quietly([&] { return ForwardingDevice::page_access(at, size); });
  }
};

TEST(CacheMemoryTest, ASegmentOfOneHandleThatCannotBeRecordedIsNotHeld) {
  spec::SimGpu gpu(spec::SimGpuOptions{});
  QuietDevice quiet(gpu.device());
  share::SingleHandleDevice single(quiet);
  host = {};
  host.throws = true;
  host.fail_at = 1;
  const auto made = single.segment_alloc(4_MiB);
  EXPECT_EQ(host.refused, 1u);
  host = {};
  EXPECT_EQ(made.code(), Code::kHostOutOfMemory);
  EXPECT_TRUE(gpu.ledger().nothing_held());
  const Address base = single.segment_alloc(4_MiB).value();
  EXPECT_TRUE(single.segment_free(base).is_ok());
  EXPECT_TRUE(gpu.ledger().nothing_held());
}

TEST(CacheMemoryTest, AnAllocatorIsMadeOrRefusedAndNeverThrows) {
  device::HostDevice first{DeviceId{0}}, second{DeviceId{1}};
  device::Device* devices[] = {&first, &second};
  std::uint64_t refusals = 0;
  for (bool is_made = false; !is_made; ++refusals) {
    ASSERT_LT(refusals, 20u);
    host = {};
    host.throws = true;
    host.fail_at = refusals + 1;
    const auto made = cache::CachingAllocator::create(devices, cache::Config{});
    host = {};
    is_made = made.is_ok();
    EXPECT_TRUE(is_made || made.code() == Code::kHostOutOfMemory);
  }
  EXPECT_GT(refusals, 4u) << "the state, a list of devices, each device, the allocator";
}

/// Streams that live one after the other: each takes memory, uses that of the stream before, and
/// ends with a block that another stream still uses.
class Succession {
 public:
  Succession() {
    device::Device* devices[] = {&device_};
    allocator_ = cache::CachingAllocator::create(devices, props::config_in_segments()).value();
    main_ = device_.create_stream().value();
    left_ = allocator_->allocate(kBlock, main_).value();
  }
  void run(int lives) {
    for (int i = 0; i < lives; ++i) {
      const Stream stream = device_.create_stream().value();
      const Address block = allocator_->allocate(kBlock, stream).value();
      EXPECT_TRUE(allocator_->free(left_, stream).is_ok());
      left_ = block;
      const Address own = allocator_->allocate(30_MiB, stream).value();
      EXPECT_TRUE(allocator_->free(own).is_ok());
      EXPECT_TRUE(allocator_->retire_stream(stream).is_ok());
      EXPECT_TRUE(device_.destroy_stream(stream.handle).is_ok());
      // A block freed after the end of its stream is looked at by slow paths only.
      const bool is_slow = i % 64 == 0;
      EXPECT_TRUE(!is_slow || allocator_->trim(kDevice).is_ok());
    }
    EXPECT_EQ(allocator_->validate(), nullptr);
  }
  cache::DeviceStats stats() const { return allocator_->stats(kDevice).value(); }

 private:
  static constexpr Bytes kBlock = 1_MiB;
  device::HostDevice device_{kDevice};
  std::unique_ptr<cache::CachingAllocator> allocator_;
  Stream main_;
  Address left_;
};

/// The n-th record of the uses that a body adds at its begin is refused, for every n.
TEST(CacheMemoryTest, ABodyThatTheHostHasNoMemoryForLeavesNothingBehind) {
  spec::SimGpuOptions options;
  options.capacities = {256_MiB};
  spec::SimGpu gpu(options);
  device::Device* devices[] = {&gpu.device(kDevice)};
  const auto allocator =
      cache::CachingAllocator::create(devices, props::config_in_segments()).value();
  const Stream own = gpu.create_stream(kDevice).value();
  const Stream body = gpu.create_stream(kDevice).value();
  const MemoryPoolId pool{0, 7};
  const auto is_own = [id = own.id](const Stream& each) { return each.id == id; };
  ASSERT_TRUE(allocator->begin_pool(kDevice, pool, is_own).is_ok());
  ASSERT_TRUE(allocator->begin_capture(own).is_ok());
  ASSERT_TRUE(gpu.begin_capture(own, device::CaptureMode::kGlobal).is_ok());
  // As the body's stream has a heap, only records of uses are made.
  ASSERT_TRUE(allocator->begin_capture(body).is_ok());
  ASSERT_TRUE(allocator->end_capture(body).is_ok());
  std::vector<Address> live;
  for (int i = 0; i < 1000; ++i) live.push_back(allocator->allocate(512_B, own).value());
  unsigned refusals = 0;
  for (std::uint64_t n = 1;; ++n) {
    ASSERT_LT(n, 100u);
    host = {};
    host.fail_at = n;
    const Status begun = allocator->begin_body(body, own);
    host = {};
    if (begun.is_ok()) break;
    ++refusals;
    ASSERT_EQ(begun.code(), Code::kHostOutOfMemory);
    EXPECT_EQ(allocator->end_capture(body).code(), Code::kNotFound);
    EXPECT_EQ(allocator->validate(), nullptr);
    cache::Snapshot shown;
    ASSERT_TRUE(allocator->snapshot(kDevice, &shown).is_ok());
    for (const cache::SnapshotBlock& block : shown.blocks) ASSERT_EQ(block.other_uses, 0u);
    // Without a use by the body what is freed serves its stream at once.
    for (Address& each : live) {
      ASSERT_TRUE(allocator->free(each).is_ok());
      ASSERT_EQ(allocator->allocate(512_B, own).value(), each);
    }
  }
  EXPECT_GE(refusals, 2u);
  ASSERT_TRUE(gpu.begin_body(body, own).is_ok());
  EXPECT_EQ(allocator->allocate(512_B, own).code(), Code::kBusy);
  ASSERT_TRUE(allocator->free(live.back()).is_ok());
  EXPECT_NE(allocator->allocate(512_B, body).value(), live.back());
  ASSERT_TRUE(gpu.end_body(body).is_ok());
  ASSERT_TRUE(allocator->end_capture(body).is_ok());
  ASSERT_TRUE(gpu.end_capture(own).is_ok());
  ASSERT_TRUE(allocator->end_capture(own).is_ok());
  EXPECT_EQ(allocator->validate(), nullptr);
}

TEST(CacheMemoryTest, TenThousandStreamsOneAfterTheOtherTakeNoMoreMemoryOfTheHostThanAThousand) {
  Succession streams;
  streams.run(1'024);
  const std::uint64_t before = host.allocations;
  streams.run(10'240);
  EXPECT_EQ(host.allocations, before) << "records were made for streams long dead";
  // Every stream's two allocations are counted, though its heap has served many.
  EXPECT_EQ(streams.stats().allocations[0].increased, 1u + 2 * 11'264);
  EXPECT_EQ(streams.stats().allocations[0].current, 1u);
}

}  // namespace
}  // namespace ashlar
