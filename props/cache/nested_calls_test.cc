// One call inside another's device call: at every point where a call has let go of its locks, a call
// of another thread may come. The happens-before detector judges what is given to whom (C6); at the
// end all memory comes back, and the structures hold.
//
// Imitated: frees, frees with a use, and allocations that come in the middle of any other call, at
// each of its device calls in turn; memory shared behind completed work, behind waits, or not at all.
// Not proved: calls that wait for the one they come into (a reclaim in a reclaim), which need a
// thread (crossing_test.cc), nor more than one at a time.
#include <vector>

#include "props/cache/crossing_fixture.h"
#include "props/cache/scripted_parts.h"
#include "spec/ops/random.h"

namespace ashlar {
namespace {

/// A user who works on what he is given, and tells the detector of it.
class NestedWorld {
 public:
  NestedWorld(std::uint64_t seed, const char* conf) : random_(seed) {
    spec::SimGpuOptions options;
    options.capacities = {Bytes{0}};
    options.seed = seed;
    options.pace = static_cast<std::uint32_t>(seed % 4);
    gpu_ = std::make_unique<spec::SimGpu>(options);
    device_ = std::make_unique<CrossingDevice>(gpu_->device(0));
    device::Device* devices[] = {device_.get()};
    allocator_ = make_allocator(devices, conf);
    for (int i = 0; i < 3; ++i) streams_.push_back(gpu_->create_stream(kDevice).value());
  }
  ~NestedWorld() { device_->in_call = nullptr; }
  NestedWorld(const NestedWorld&) = delete;
  NestedWorld& operator=(const NestedWorld&) = delete;

  /// `ops` calls; inside the device call number `at` of them one more. Returns how many there were.
  std::uint64_t run(unsigned ops, std::uint64_t at) {
    std::uint64_t calls = 0;
    device_->in_call = [&](CallKind) {
      if (++calls == at) nested();
    };
    for (unsigned i = 0; i < ops; ++i) step();
    device_->in_call = nullptr;
    return calls;
  }
  /// Empty, or what is wrong once everything is freed and finished.
  std::string end() {
    while (!live_.empty()) free_one();
    if (!gpu_->drain_all().is_ok()) return "the machine does not come to rest";
    for (const spec::Fault& fault : gpu_->take_faults()) return fault.text;
    if (const char* broken = allocator_->validate()) return broken;
    if (!allocator_->trim(kDevice).is_ok()) return "C28: a trim fails though all work is done";
    const std::uint64_t left = allocator_->stats(kDevice).value().reserved_bytes[0].current;
    return left == 0 ? std::string() : "C28: memory stays after a trim: " + std::to_string(left);
  }

 private:
  struct Block {
    Address address;
    spec::AllocationTag tag;
    Bytes size;
    std::size_t stream;
  };

  Bytes size() {
    constexpr std::uint64_t kSizes[] = {512, 4096, 1u << 20, 5u << 20, 20u << 20};
    return Bytes{kSizes[random_.below(std::size(kSizes))]};
  }
  void allocate_one() {
    const std::size_t on = random_.below(streams_.size());
    const Result<Address> got = allocator_->allocate(size(), streams_[on]);
    if (!got.is_ok()) return;
    const Block block{got.value(), ++tags_, allocator_->info(got.value()).value().size, on};
    gpu_->on_allocate(block.tag, block.address, block.size, streams_[on]);
    work(block, on);
    live_.push_back(block);
  }
  void work(const Block& block, std::size_t on) {
    static_cast<void>(gpu_->launch(
        streams_[on], spec::Touch{block.address, block.size, spec::Access::kWrite, block.tag}));
  }
  void free_one() {
    std::swap(live_[random_.below(live_.size())], live_.back());
    const Block block = live_.back();
    live_.pop_back();
    const std::size_t user = random_.below(streams_.size());
    if (random_.one_in(3) && user != block.stream) {
      // Whoever works on another stream's block orders that work behind the allocation.
      device::Device& machine = gpu_->device(0);
      const EventHandle event = machine.event_create().value();
      EXPECT_TRUE(machine.event_record(event, streams_[block.stream].handle).is_ok());
      EXPECT_TRUE(machine.stream_wait(streams_[user].handle, event).is_ok());
      EXPECT_TRUE(machine.event_destroy(event).is_ok());
      gpu_->on_use_announced(block.tag, streams_[user]);
      work(block, user);
      gpu_->on_free(block.tag);
      EXPECT_TRUE(allocator_->free(block.address, streams_[user]).is_ok());
    } else {
      if (random_.one_in(2)) work(block, block.stream);
      gpu_->on_free(block.tag);
      EXPECT_TRUE(allocator_->free(block.address).is_ok());
    }
  }
  void step() {
    const std::uint64_t what = random_.below(10);
    if (live_.empty() || what < 5) return allocate_one();
    if (what < 9) return free_one();
    static_cast<void>(gpu_->step(streams_[random_.below(streams_.size())], 1 + random_.below(4)));
  }
  void nested() {
    if (!live_.empty() && !random_.one_in(4)) free_one();
    else allocate_one();
  }

  spec::Random random_;
  std::unique_ptr<spec::SimGpu> gpu_;
  std::unique_ptr<CrossingDevice> device_;
  std::unique_ptr<cache::CachingAllocator> allocator_;
  std::vector<Stream> streams_;
  std::vector<Block> live_;
  spec::AllocationTag tags_ = 0;
};

class NestedCallsTest : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(OfEveryReuse, NestedCallsTest,
                         ::testing::Values("reuse:completed", "reuse:ordered", "reuse:own"));

TEST_P(NestedCallsTest, OneCallInsideEachDeviceCallOfAnotherGivesNoMemoryOutTooEarly) {
  constexpr unsigned kOps = 60;
  std::uint64_t worlds = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const std::uint64_t calls = NestedWorld(seed, GetParam()).run(kOps, 0);
    for (std::uint64_t at = 1; at <= calls; at += 1 + seed % 3) {
      NestedWorld world(seed, GetParam());
      world.run(kOps, at);
      ASSERT_EQ(world.end(), "") << "seed " << seed << ", inside device call " << at;
      ++worlds;
    }
  }
  EXPECT_GE(worlds, 1000u);
}

/// Two of the points by themselves, which the worlds above come to by the luck of a seed.
TEST(NestedReleaseTest, WhatIsReleasedWhileAMarkIsRecordedIsNotCoveredByIt) {
  ScriptedParts parts;
  const Stream own = parts.stream();
  const Address first = parts.allocate(4_MiB, own);
  const Address second = parts.allocate(40_MiB, own);
  parts.free(first);
  bool is_freed = false;
  parts.device().on_record = [&](StreamHandle) {
    if (!std::exchange(is_freed, true)) parts.free(second);
    return Status::ok();
  };
  ASSERT_FALSE(parts.allocate(6_MiB, parts.stream()).is_null());  // a miss: marks the other heap
  ASSERT_TRUE(is_freed);
  cache::StreamHeap& heap = parts.heap(own);
  ASSERT_FALSE(cache::CachePeer::marks(heap).is_empty());
  EXPECT_GT(cache::CachePeer::clock(heap).newest_release(),
            cache::CachePeer::marks(heap).newest().covers)
      << "C6";
}

TEST(NestedReleaseTest, BehindAWaitNothingIsTakenThatWasReleasedAfterTheMark) {
  ScriptedParts parts(1, "wait_ms:never,reuse:ordered");
  const spec::HostFlag flag = parts.gpu().new_flag();
  const Stream own = parts.stream();
  const Stream to = parts.stream();
  const Address first = parts.allocate(30_MiB, own);
  const Address second = parts.allocate(40_MiB, own);
  ASSERT_TRUE(parts.gpu().host_function(own, flag).is_ok());
  parts.free(first);
  Address again;
  // Between the mark of own's heap and the wait of `to` the stream takes the first block back, and
  // frees the second.
  parts.device().on_identify = [&](StreamHandle handle) -> Result<Stream> {
    if (handle == own.handle) return own;
    if (again.is_null() && parts.calls(CallKind::kEventRecord) > 0) {
      again = parts.allocate(30_MiB, own);
      parts.free(second);
    }
    return to;
  };
  const Address got = parts.allocate(30_MiB, to);
  EXPECT_EQ(again, first);
  EXPECT_NE(got, second) << "C6";
  parts.device().clear();
  parts.gpu().raise(flag);
  static_cast<void>(parts.gpu().drain_all());
}

}  // namespace
}  // namespace ashlar
