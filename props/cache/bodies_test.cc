// Bodies of conditionals as their users call them: row DEV-8, (e) of the caller's contract.
//
// Imitates: a graph with an "if" and an "else", each captured on a stream of its own; a caller who mixes up the order;
// a capture that is given up inside a body; a host without memory. What a body may be given is judged in lockstep
// (spec/model/clause_isolated.cc).
#include <ashlar/base/memory_pool.h>

#include "props/adapters/cache_peer.h"
#include "props/cache/liveness_fixture.h"

namespace ashlar::cache {
namespace {

constexpr MemoryPoolId kGraphsPool{0, 7};

class BodiesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    spec::SimGpuOptions options;
    options.capacities = {256_MiB, 256_MiB};
    gpu_ = std::make_unique<spec::SimGpu>(options);
    device::Device* devices[] = {&gpu_->device(0), &gpu_->device(1)};
    allocator_ = make_allocator(devices, "");
    own_ = gpu_->create_stream(kDevice).value();
    child_ = gpu_->create_stream(kDevice).value();
    const StreamId own = own_.id;
    ASSERT_TRUE(
        allocator_->begin_pool(kDevice, kGraphsPool, [own](const Stream& s) { return s.id == own; })
            .is_ok());
  }
  void begin() {
    ASSERT_TRUE(allocator_->begin_capture(own_).is_ok());
    ASSERT_TRUE(gpu_->begin_capture(own_, device::CaptureMode::kGlobal).is_ok());
  }
  void begin_body(const Stream& body, const Stream& parent) {
    ASSERT_TRUE(allocator_->begin_body(body, parent).is_ok());
    ASSERT_TRUE(gpu_->begin_body(body, parent).is_ok());
  }
  void end_body(const Stream& body) {
    ASSERT_TRUE(gpu_->end_body(body).is_ok());
    ASSERT_TRUE(allocator_->end_capture(body).is_ok());
  }
  void end() {
    ASSERT_TRUE(gpu_->end_capture(own_).is_ok());
    ASSERT_TRUE(allocator_->end_capture(own_).is_ok());
  }
  Address make(Bytes size, const Stream& s) { return allocator_->allocate(size, s).value(); }
  void TearDown() override { EXPECT_EQ(allocator_->validate(), nullptr); }

  std::unique_ptr<spec::SimGpu> gpu_;
  std::unique_ptr<CachingAllocator> allocator_;
  Stream own_, child_;
};

TEST_F(BodiesTest, AnIfAndItsElseShareMemoryAndTheParentReusesItAfterwards) {
  begin();
  const Address held = make(12_MiB, own_);
  begin_body(child_, own_);
  const Address first = make(12_MiB, child_);
  EXPECT_NE(first, held);
  EXPECT_EQ(allocator_->info(first).value().stream.id, own_.id);
  ASSERT_TRUE(allocator_->free(first).is_ok());
  end_body(child_);
  begin_body(child_, own_);
  EXPECT_EQ(make(12_MiB, child_), first);
  ASSERT_TRUE(allocator_->free(first).is_ok());
  end_body(child_);
  EXPECT_EQ(make(12_MiB, own_), first);
  end();
}

TEST_F(BodiesTest, WhatTheParentHeldAtTheBranchIsFreeForNobodyBeforeTheBodysEnd) {
  begin();
  const Address held = make(12_MiB, own_);
  begin_body(child_, own_);
  ASSERT_TRUE(allocator_->free(held).is_ok());
  const Address first = make(12_MiB, child_);
  EXPECT_NE(first, held);
  end_body(child_);
  EXPECT_EQ(make(12_MiB, own_), held);
  end();
}

TEST_F(BodiesTest, WhatABodyLeavesLiveIsItsParents) {
  begin();
  begin_body(child_, own_);
  const Address output = make(12_MiB, child_);
  end_body(child_);
  begin_body(child_, own_);
  ASSERT_TRUE(allocator_->free(output).is_ok());
  EXPECT_NE(make(12_MiB, child_), output);
  end_body(child_);
  EXPECT_EQ(make(12_MiB, own_), output);
  end();
}

TEST_F(BodiesTest, CallsOutOfOrderAreTypedErrorsAndChangeNothing) {
  const Stream other = gpu_->create_stream(kDevice).value();
  const Stream foreign = gpu_->create_stream(DeviceId{1}).value();
  EXPECT_EQ(allocator_->begin_body(child_, own_).code(), Code::kNotFound);
  EXPECT_EQ(allocator_->end_capture(child_).code(), Code::kNotFound);
  begin();
  EXPECT_EQ(allocator_->begin_body(own_, own_).code(), Code::kBusy);
  EXPECT_EQ(allocator_->begin_body(foreign, own_).code(), Code::kInvalidArgument);
  EXPECT_EQ(allocator_->begin_body(child_, other).code(), Code::kNotFound);
  begin_body(child_, own_);
  EXPECT_EQ(allocator_->begin_body(other, own_).code(), Code::kBusy);
  EXPECT_EQ(allocator_->begin_body(child_, own_).code(), Code::kBusy);
  EXPECT_EQ(allocator_->begin_capture(child_).code(), Code::kBusy);
  EXPECT_EQ(allocator_->allocate(1_MiB, own_).code(), Code::kBusy);
  EXPECT_EQ(allocator_->end_capture(own_).code(), Code::kBusy);
  EXPECT_EQ(allocator_->retire_stream(child_).code(), Code::kBusy);
  begin_body(other, child_);
  EXPECT_EQ(allocator_->allocate(1_MiB, child_).code(), Code::kBusy);
  EXPECT_EQ(allocator_->end_capture(child_).code(), Code::kBusy);
  EXPECT_TRUE(allocator_->allocate(1_MiB, other).is_ok());
  end_body(other);
  end_body(child_);
  EXPECT_TRUE(allocator_->allocate(1_MiB, own_).is_ok());
  end();
  EXPECT_EQ(allocator_->begin_body(child_, own_).code(), Code::kNotFound);
}

// A use by a body of another stream's memory is its parent's after its end, and waits for the graph's order.
TEST_F(BodiesTest, AUseInABodyIsItsParentsAfterIts) {
  const Stream other = gpu_->create_stream(kDevice).value();
  const MemoryPoolId pool{0, 8};
  const StreamId id = other.id;
  ASSERT_TRUE(
      allocator_->begin_pool(kDevice, pool, [id](const Stream& s) { return s.id == id; }).is_ok());
  const Address shared = make(12_MiB, other);
  begin();
  begin_body(child_, own_);
  ASSERT_TRUE(allocator_->record_use(shared, child_).is_ok());
  end_body(child_);
  ASSERT_TRUE(allocator_->free(shared).is_ok());
  EXPECT_NE(make(12_MiB, other), shared);
  end();
  EXPECT_EQ(make(12_MiB, other), shared);
}

TEST_F(BodiesTest, SoIsOneOfAnotherDevicesMemory) {
  const DeviceId away{1};
  const Stream other = gpu_->create_stream(away).value();
  const MemoryPoolId pool{0, 8};
  ASSERT_TRUE(allocator_->begin_pool(away, pool, [](const Stream&) { return true; }).is_ok());
  const Address shared = make(12_MiB, other);
  begin();
  begin_body(child_, own_);
  ASSERT_TRUE(allocator_->record_use(shared, child_).is_ok());
  end_body(child_);
  // It is the body's no more: the body's stream may go, and the use is the parent's to end.
  ASSERT_TRUE(allocator_->retire_stream(child_).is_ok());
  static_cast<void>(gpu_->drain_all());
  ASSERT_TRUE(allocator_->free(shared).is_ok());
  EXPECT_NE(make(12_MiB, other), shared);
  end();
  EXPECT_EQ(make(12_MiB, other), shared);
}

TEST_F(BodiesTest, ABodyTakesFromThePoolThatAcceptsOneOfItsParents) {
  const Stream inner = gpu_->create_stream(kDevice).value();
  begin();
  begin_body(child_, own_);
  begin_body(inner, child_);
  const Address made = make(1_MiB, inner);
  EXPECT_EQ(allocator_->info(made).value().stream.id, own_.id);
  end_body(inner);
  end_body(child_);
  end();
  EXPECT_EQ(allocator_->info(make(1_MiB, child_)).value().stream.id, child_.id);
}

}  // namespace
}  // namespace ashlar::cache
