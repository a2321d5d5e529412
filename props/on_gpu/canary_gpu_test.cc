// The canaries themselves: what they say of sound memory, of words that are not theirs, of pages with two addresses, and of graphs
// that fork.
//
// Imitates: an allocator that hands out bytes that another owner still has. Does not prove anything about Ashlar's allocator, of
// which the canary worlds are (canary_world.h).
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "props/on_gpu/canaries.h"
#include "props/on_gpu/gpu_session.h"

namespace ashlar {
namespace {

using props::Canaries;
using props::CanaryRange;
using props::GpuSession;

constexpr std::uint64_t kLongSpin = 20'000'000;  // some 10 ms

class CanaryGpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    gpu_.enter();
    auto made = Canaries::create(gpu_);
    ASSERT_TRUE(made.is_ok()) << made.status().why();
    canaries_ = std::move(made).value();
    one_ = gpu_.create_stream();
    other_ = gpu_.create_stream();
    base_ = gpu_.device().segment_alloc(kSize).value();
  }
  void TearDown() override {
    if (canaries_ != nullptr) {
      EXPECT_TRUE(gpu_.device().synchronize().is_ok());
      EXPECT_TRUE(gpu_.device().segment_free(base_).is_ok());
      canaries_.reset();
      gpu_.destroy_stream(one_);
      gpu_.destroy_stream(other_);
    }
    EXPECT_EQ(gpu_.take_faults(), "");
    gpu_.leave();
  }

  CanaryRange range(std::uint64_t owner) const { return {base_, kSize, owner}; }
  void check(const CanaryRange& range, const Stream& on, std::uint64_t spin = 0) {
    EXPECT_TRUE(canaries_->check(range, on, spin, canaries_->take_slot().value()));
  }
  std::vector<Canaries::Finding> collect() {
    auto found = canaries_->collect();
    EXPECT_TRUE(found.has_value());
    return found.value_or(std::vector<Canaries::Finding>{});
  }
  void order(const Stream& after, const Stream& before) {
    const EventHandle event = gpu_.device().event_create().value();
    EXPECT_TRUE(gpu_.device().event_record(event, before.handle).is_ok());
    EXPECT_TRUE(gpu_.device().stream_wait(after.handle, event).is_ok());
    EXPECT_TRUE(gpu_.device().event_destroy(event).is_ok());
  }

  static constexpr Bytes kSize = 48_KiB;
  GpuSession& gpu_ = GpuSession::get();
  std::unique_ptr<Canaries> canaries_;
  Stream one_, other_;
  Address base_;
};

TEST_F(CanaryGpuTest, SayNothingOfBytesThatAreTheirOwners) {
  EXPECT_TRUE(canaries_->fill(range(7), one_, 1000));
  check(range(7), one_);
  order(other_, one_);
  check(range(7), other_);
  EXPECT_TRUE(collect().empty());
}

TEST_F(CanaryGpuTest, NameTheFirstWrongWordAndWhoseItIs) {
  EXPECT_TRUE(canaries_->fill(range(7), one_, 0));
  const CanaryRange part{base_ + 4_KiB, 512_B, 9};
  EXPECT_TRUE(canaries_->fill(part, one_, 0));
  check(range(7), one_);
  const auto found = collect();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].result.mismatches, 64u);
  EXPECT_GE(found[0].result.first_at, part.at.value());
  EXPECT_LT(found[0].result.first_at, (part.at + part.size).value());
  EXPECT_EQ(found[0].result.found >> 32, 9u);
  EXPECT_TRUE(collect().empty()) << "a finding is taken once";
}

TEST_F(CanaryGpuTest,
       SpinBeforeTheyTouch) {  // else bytes that are used again too early are not seen
  EXPECT_TRUE(canaries_->fill(range(7), one_, 0));
  gpu_.synchronize(one_);
  check(range(7), one_, kLongSpin);
  EXPECT_TRUE(canaries_->fill(range(9), other_, 0));
  if (gpu_.is_simulated()) gpu_.synchronize(other_);  // no kernel runs by itself there
  EXPECT_FALSE(collect().empty());
}

TEST_F(CanaryGpuTest, SeeThroughBothAddressesOfAPage) {
  cuda::CudaDevice& device = gpu_.device();
  if (!device.traits().has_virtual_memory) GTEST_SKIP() << "the GPU has no virtual memory";
  const Bytes size = device.traits().page_granularity;
  const Address at = device.address_reserve(size * 2, Bytes{0}).value();
  const PageHandle page = device.page_create(size).value();
  for (const Address each : {at, at + size}) EXPECT_TRUE(device.page_map(each, size, page).is_ok());
  EXPECT_TRUE(device.page_access(at, size * 2).is_ok());
  EXPECT_TRUE(canaries_->fill({at, size, 3}, one_, 0));
  check({at + size, size, 3}, one_);
  EXPECT_TRUE(collect().empty());
  EXPECT_TRUE(canaries_->fill({at + size, 512_B, 4}, one_, 0));
  check({at, size, 3}, one_);
  EXPECT_EQ(collect().size(), 1u);
  EXPECT_TRUE(device.page_unmap(at, size * 2).is_ok());
  EXPECT_TRUE(device.page_release(page).is_ok());
  EXPECT_TRUE(device.address_release(at, size * 2).is_ok());
}

TEST_F(CanaryGpuTest, RunInEachBranchOfAGraphAtEachLaunch) {
  const Canaries::Slot slot = canaries_->take_slot(true).value();
  ASSERT_TRUE(gpu_.begin_capture(one_, device::CaptureMode::kThreadLocal));
  EXPECT_TRUE(canaries_->fill(range(5), one_, 0));
  order(other_, one_);
  EXPECT_TRUE(canaries_->check(range(5), other_, 0, slot, true));
  order(one_, other_);
  const cuda::GraphExec graph = gpu_.end_capture(one_);
  ASSERT_NE(graph, nullptr);
  EXPECT_TRUE(canaries_->fill(range(6), one_, 0));
  for (int launch = 0; launch < 3; ++launch) gpu_.launch(graph, one_);
  check(range(5), one_);
  EXPECT_TRUE(collect().empty());
  gpu_.destroy(graph);
  canaries_->give_back(slot);
}

}  // namespace
}  // namespace ashlar
