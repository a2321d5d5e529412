// What a call costs without a cache (`cache:off`, row DEV-22; C29, C30), when much is idle or many streams are stuck.
//
// Imitates: memory whose work ends late and all at once; streams whose work never ends. Does not prove: a driver's own costs.
#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "props/cache/liveness_fixture.h"

namespace ashlar::cache {
namespace {

using device::CallKind;

class UncachedCost : public ::testing::Test {
 protected:
  void make() {
    allocator_.reset();
    spec::SimGpuOptions options;
    options.capacities = {16_GiB};
    gpu_ = std::make_unique<spec::SimGpu>(options);
    device::Device* devices[] = {&gpu_->device(0)};
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
  const auto median = [this](auto&& call) {
    double times[3];
    for (double& time : times) time = seconds_to_give_back(8'000, call);
    std::sort(std::begin(times), std::end(times));
    return times[1];
  };
  const double trim = median([this] { EXPECT_TRUE(allocator_->trim(kDevice).is_ok()); });
  const double miss =
      median([this] { EXPECT_TRUE(allocator_->allocate(4096_B, stream_).is_ok()); });
  // Where each block was found by a look at all others, it was a hundred times as long.
  EXPECT_LT(miss, 10 * trim);
}

}  // namespace
}  // namespace ashlar::cache
