// What a call costs without a cache (`cache:off`, row DEV-22; C29, C30), when much is idle or many streams are stuck.
//
// Imitates: memory whose work ends late and all at once; streams whose work never ends. Does not prove: a driver's own costs.
#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include <ashlar/base/checked.h>
#include <ashlar/device/forwarding_device.h>

#include "props/cache/liveness_fixture.h"

namespace ashlar::cache {
namespace {

using device::CallKind;

/// A device that gives and takes memory at no cost: addresses that it never gives again.
class FreeOfCost final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  Result<Address> segment_alloc(Bytes size) noexcept override {
    const Address base = next_;
    next_ = base + *checked_round_up(size, 4096_B);
    return base;
  }
  Status segment_free(Address) noexcept override { return Status::ok(); }

 private:
  Address next_{std::uint64_t{1} << 40};
};

class UncachedCost : public ::testing::Test {
 protected:
  void make() {
    allocator_.reset();
    spec::SimGpuOptions options;
    options.capacities = {16_GiB};
    gpu_ = std::make_unique<spec::SimGpu>(options);
    device_ = std::make_unique<FreeOfCost>(gpu_->device(0));
    device::Device* devices[] = {device_.get()};
    allocator_ = make_allocator(devices, "cache:off,wait_ms:0");
    stream_ = gpu_->create_stream(kDevice).value();
  }
  void work(const Stream& stream) {
    EXPECT_TRUE(gpu_->launch(stream, std::span<const spec::Touch>{}).is_ok());
  }
  void pair() {
    EXPECT_TRUE(allocator_->free(allocator_->allocate(4096_B, stream_).value()).is_ok());
  }
  std::uint64_t calls(CallKind kind) {
    return allocator_->stats(kDevice).value().device_calls[static_cast<unsigned>(kind)];
  }
  /// So many streams, each with a block that is freed and whose work does not end.
  void get_stuck(int streams) {
    for (int i = 0; i < streams; ++i) {
      const Stream stuck = gpu_->create_stream(kDevice).value();
      const Address at = allocator_->allocate(4096_B, stuck).value();
      work(stuck);
      EXPECT_TRUE(allocator_->free(at).is_ok());
    }
  }
  /// The queries of one pair, on average, while so many other streams are stuck.
  std::uint64_t queries_beside(int streams) {
    constexpr std::uint64_t kPairs = 20;
    make();
    get_stuck(streams);
    const std::uint64_t before = calls(CallKind::kEventQuery);
    for (std::uint64_t i = 0; i < kPairs; ++i) pair();
    return (calls(CallKind::kEventQuery) - before) / kPairs;
  }
  /// How long the call takes that gives back so many equal blocks, whose work has just ended.
  template <class Call>
  double seconds_to_give_back(int blocks, Call&& call) {
    make();
    const Stream late = gpu_->create_stream(kDevice).value();
    std::vector<Address> held;
    for (int i = 0; i < blocks; ++i) held.push_back(allocator_->allocate(4096_B, late).value());
    work(late);
    for (const Address at : held) EXPECT_TRUE(allocator_->free(at).is_ok());
    EXPECT_TRUE(gpu_->drain_all().is_ok());
    const auto begin = std::chrono::steady_clock::now();
    call();
    const auto end = std::chrono::steady_clock::now();
    EXPECT_EQ(calls(CallKind::kSegmentFree), static_cast<std::uint64_t>(blocks));
    return std::chrono::duration<double>(end - begin).count();
  }

  std::unique_ptr<spec::SimGpu> gpu_;
  std::unique_ptr<FreeOfCost> device_;
  std::unique_ptr<CachingAllocator> allocator_;
  Stream stream_;
};

TEST_F(UncachedCost, APairAsksSoManyStuckStreamsAndNoMore) {
  const std::uint64_t few = queries_beside(100);
  EXPECT_GT(few, 0u);
  EXPECT_EQ(queries_beside(400), few);
}

TEST_F(UncachedCost, EachStuckStreamHasItsTurn) {
  make();
  get_stuck(300);
  EXPECT_TRUE(gpu_->drain_all().is_ok());
  // Each call gives back what it finds done in the heaps whose turn it is.
  for (int i = 0; i < 10; ++i) pair();
  EXPECT_GE(calls(CallKind::kSegmentFree), 300u);
}

TEST_F(UncachedCost, AMissGivesEqualBlocksBackAboutAsFastAsATrim) {
  constexpr int kBlocks = 8'000;
  double trim = 1e9;
  double miss = 1e9;
  for (int i = 0; i < 5; ++i) {  // the shortest of each: other processes make some longer
    trim = std::min(trim, seconds_to_give_back(
                              kBlocks, [this] { EXPECT_TRUE(allocator_->trim(kDevice).is_ok()); }));
    miss = std::min(miss, seconds_to_give_back(kBlocks, [this] {
                      EXPECT_TRUE(allocator_->allocate(4096_B, stream_).is_ok());
                    }));
  }
  // Where each block was found by a look at all others, it was hundreds of times as long.
  EXPECT_LT(miss, 10 * trim) << miss << " s, " << trim << " s";
}

}  // namespace
}  // namespace ashlar::cache
