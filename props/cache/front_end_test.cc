// What stands around the front door: current streams, owned memory, and a pool's live allocations against a list.
//
// Imitates: tensor code that names no stream, a std::unique_ptr of device memory, a user who checks what a replay
// left live. Does not prove anything about which memory is given: the lockstep does.
#include <thread>

#include <ashlar/ashlar.h>

#include "props/cache/liveness_fixture.h"

namespace ashlar::cache {
namespace {

constexpr DeviceId kOtherDevice{1};
constexpr MemoryPoolId kListed{0, 7};

class FrontEndTest : public ::testing::Test {
 protected:
  void SetUp() override {
    spec::SimGpuOptions options;
    options.capacities = {256_MiB, 256_MiB};
    gpu_ = std::make_unique<spec::SimGpu>(options);
    device::Device* devices[] = {&gpu_->device(0), &gpu_->device(1)};
    allocator_ = make_allocator(devices, "");
    first_ = gpu_->create_stream(kDevice).value();
    second_ = gpu_->create_stream(kDevice).value();
    other_ = gpu_->create_stream(kOtherDevice).value();
  }
  StreamId stream_of(Address address) { return allocator_->info(address).value().stream.id; }
  std::uint64_t live() {
    DeviceStats stats;
    EXPECT_TRUE(allocator_->stats(kDevice, &stats).is_ok());
    return stats.allocations[0].current;
  }

  std::unique_ptr<spec::SimGpu> gpu_;
  std::unique_ptr<CachingAllocator> allocator_;
  Stream first_, second_, other_;
};

TEST_F(FrontEndTest, TheInnermostScopeOfADeviceIsItsCurrentStream) {
  EXPECT_EQ(current_stream(kDevice).code(), Code::kNotFound);
  EXPECT_EQ(allocate_on_current(*allocator_, 1_KiB, kDevice).code(), Code::kNotFound);
  {
    const StreamScope outer(first_);
    const StreamScope beside(other_);
    EXPECT_EQ(current_stream(kDevice).value(), first_);
    EXPECT_EQ(current_stream(kOtherDevice).value(), other_);
    {
      const StreamScope inner(second_);
      const Address a = allocate_on_current(*allocator_, 1_KiB, kDevice).value();
      EXPECT_EQ(stream_of(a), second_.id);
      EXPECT_TRUE(allocator_->free(a).is_ok());
    }
    EXPECT_EQ(current_stream(kDevice).value(), first_);
  }
  EXPECT_EQ(current_stream(kDevice).code(), Code::kNotFound);
  EXPECT_EQ(current_stream(kOtherDevice).code(), Code::kNotFound);
}

TEST_F(FrontEndTest, EachThreadHasCurrentStreamsOfItsOwn) {
  const StreamScope scope(first_);
  Code before = Code::kOk;
  Stream inside;
  std::thread([&] {
    before = current_stream(kDevice).code();
    const StreamScope own(second_);
    inside = current_stream(kDevice).value();
  }).join();
  EXPECT_EQ(before, Code::kNotFound);
  EXPECT_EQ(inside, second_);
  EXPECT_EQ(current_stream(kDevice).value(), first_);
}

TEST_F(FrontEndTest, OwnedMemoryIsFreedOnceWhoeverHasIt) {
  {
    OwnedMemory a = allocate_owned(*allocator_, 1_MiB, first_).value();
    EXPECT_EQ(a.get(), reinterpret_cast<void*>(a.address().value()));
    EXPECT_TRUE(a.record_use(second_).is_ok());
    OwnedMemory b = std::move(a);
    EXPECT_FALSE(a);
    EXPECT_EQ(a.record_use(second_).code(), Code::kUnknownPointer);
    EXPECT_EQ(live(), 1u);
    OwnedMemory c = allocate_owned(*allocator_, 1_MiB, first_).value();
    c = std::move(b);
    EXPECT_EQ(live(), 1u);
    OwnedMemory& itself = c;
    c = std::move(itself);
    EXPECT_TRUE(c);
  }
  EXPECT_EQ(live(), 0u);
  EXPECT_EQ(allocator_->validate(), nullptr);
}

TEST_F(FrontEndTest, OwnedMemoryMayBeFreedEarlyOrGivenAway) {
  OwnedMemory a = allocate_owned(*allocator_, 1_MiB, first_).value();
  EXPECT_TRUE(a.reset().is_ok());
  EXPECT_TRUE(a.reset().is_ok());
  EXPECT_EQ(live(), 0u);
  a = allocate_owned(*allocator_, 1_MiB, first_).value();
  const Address given = a.release();
  EXPECT_FALSE(a);
  EXPECT_EQ(live(), 1u);
  EXPECT_TRUE(allocator_->free(given).is_ok());
  a = OwnedMemory(*allocator_, given);
  EXPECT_EQ(a.reset().code(), Code::kUnknownPointer);
  EXPECT_FALSE(a);
  EXPECT_FALSE(allocate_owned(*allocator_, 0_B, first_).value());
  EXPECT_EQ(allocate_owned(*allocator_, 1_GiB, first_).code(), Code::kOutOfMemory);
}

TEST_F(FrontEndTest, OwnedMemoryKnowsItsSizeAndChangesHandsWhole) {
  OwnedMemory a = allocate_owned(*allocator_, 1000_B, first_).value();
  OwnedMemory b = allocate_owned(*allocator_, 3_MiB, first_).value();
  const Address of_a = a.address();
  EXPECT_EQ(a.size(), 1000_B);
  EXPECT_FALSE(a == b);
  swap(a, b);
  EXPECT_EQ(a.size(), 3_MiB);
  EXPECT_EQ(b.size(), 1000_B);
  EXPECT_EQ(b.address(), of_a);
  a = std::move(b);
  EXPECT_EQ(a.size(), 1000_B);
  EXPECT_EQ(b.size(), 0_B);
  EXPECT_EQ(live(), 1u);
  EXPECT_TRUE(b == OwnedMemory{});
  EXPECT_TRUE(allocator_->free(a.release()).is_ok());
  EXPECT_EQ(a.size(), 0_B);
  EXPECT_EQ(OwnedMemory(*allocator_, Address{}).size(), 0_B);
}

TEST_F(FrontEndTest, OwnedMemoryMayBeFreedByTheStreamThatUsedItLast) {
  OwnedMemory a = allocate_owned(*allocator_, 1_MiB, first_).value();
  EXPECT_EQ(a.reset(Stream{}).code(), Code::kInvalidArgument);
  EXPECT_EQ(live(), 1u);
  EXPECT_EQ(a.size(), 1_MiB) << "a free that is refused leaves it owned";
  EXPECT_TRUE(a.reset(second_).is_ok());
  EXPECT_FALSE(a);
  EXPECT_EQ(live(), 0u);
  EXPECT_TRUE(a.reset(second_).is_ok());
}

TEST_F(FrontEndTest, ADeleterFreesForStandardPointers) {
  const auto allocate = [this] {
    const Address address = allocator_->allocate(1_MiB, first_).value();
    return reinterpret_cast<void*>(address.value());
  };
  {
    const std::unique_ptr<void, FreeDeleter> unique(allocate(), FreeDeleter(*allocator_));
    const std::shared_ptr<void> shared(allocate(), FreeDeleter(*allocator_));
    const std::shared_ptr<void> again = shared;
    EXPECT_EQ(live(), 2u);
  }
  EXPECT_EQ(live(), 0u);
  const std::unique_ptr<void, FreeDeleter> empty;
}

TEST_F(FrontEndTest, APoolsLiveAllocationsAreComparedWithAList) {
  const auto compare = [this](std::vector<Address> expected) {
    Snapshot shown;
    EXPECT_TRUE(allocator_->snapshot(kDevice, &shown).is_ok());
    return compare_live(shown, kListed, expected);
  };
  const Address outside = allocator_->allocate(1_MiB, first_).value();
  EXPECT_TRUE(compare({}).is_empty());
  ASSERT_TRUE(allocator_->begin_pool(kDevice, kListed, [](const Stream&) { return true; }).is_ok());
  const Address a = allocator_->allocate(1_MiB, first_).value();
  const Address b = allocator_->allocate(1_KiB, second_).value();
  ASSERT_TRUE(allocator_->end_pool(kDevice, kListed).is_ok());
  EXPECT_TRUE(compare({b, a}).is_empty());
  EXPECT_EQ(compare({a}).unexpected, std::vector<Address>{b});
  EXPECT_FALSE(compare({a}).is_empty());
  EXPECT_FALSE(compare({a, b, outside}).is_empty());
  EXPECT_TRUE(compare({a}).missing.empty());
  EXPECT_EQ(compare({a, b, outside}).missing, std::vector<Address>{outside});
  EXPECT_EQ(compare({a, b, a}).missing, std::vector<Address>{a});
  ASSERT_TRUE(allocator_->free(a).is_ok());
  EXPECT_EQ(compare({a, b}).missing, std::vector<Address>{a});
  ASSERT_TRUE(allocator_->free(b).is_ok());
  EXPECT_TRUE(compare({}).is_empty());
  ASSERT_TRUE(allocator_->free(outside).is_ok());
}

}  // namespace
}  // namespace ashlar::cache
