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

#include "props/host_memory/refusing_host.h"

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
    allocator_ = cache::CachingAllocator::create(devices, cache::Config{}).value();
    for (int i = 0; i < crowd; ++i) {
      // a whole segment
      held_.push_back(allocator_->allocate(12_MiB, device_.create_stream().value()).value());
    }
    for (int i = 0; i < 20; ++i) streams_.push_back(device_.create_stream().value());
    host = {0, fail_at};
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
      EXPECT_EQ(got.code(), Code::kOutOfMemory);
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

TEST(CacheMemoryTest, NoSingleAllocationOfTheHostThatFailsLosesAnything) {
  live_until_none_fails(0, 0_B);
}

/// The page map (page_map.h) has one of its 254 numbers left: a segment is adopted by the first
/// owner without a number, from the last owner with one.
TEST(CacheMemoryTest, NorWhereManyOtherStreamsHaveMemory) { live_until_none_fails(253, 0_B); }

/// The page map makes room for two owners of a page.
TEST(CacheMemoryTest, NorWhereSegmentsBeginInsideAPage) { live_until_none_fails(0, 1_MiB); }

/// Streams that live one after the other: each takes memory, uses that of the stream before, and
/// ends with a block that another stream still uses.
class Succession {
 public:
  Succession() {
    device::Device* devices[] = {&device_};
    allocator_ = cache::CachingAllocator::create(devices, cache::Config{}).value();
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
