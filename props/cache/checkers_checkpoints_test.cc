// Planted bugs of checkpoints, each reported by the clause that forbids it (C11, C7, C16).
//
// Imitates: a return that does nothing, too little, or says something else than it does; one that takes
// memory from a stream that uses it, or a checkpoint of another pool. Does not imitate: a return that loses
// the statistics (props/cache/host_fault_loop_test.cc).
#include "props/cache/planted_run.h"

namespace ashlar::props {
namespace {

using cache::PoolCheckpoint;
using cache::RestoredPool;

constexpr const char* kGrown =
    "mempool-begin 0 s0\nalloc p0 1MiB s0\nalloc p1 4096 s0\nmempool-end 0 d0\ncheckpoint 0 0 d0\n"
    "free p0\nmempool-begin 0 s0\nalloc p2 2MiB s0\nmempool-end 0 d0\nrestore 0\ntrim d0\n";

/// As a reviewer of PyTorch's checkpoints noted: one that does nothing would have passed the test.
class RestoresNothing final : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  Status restore_pool(const PoolCheckpoint&, RestoredPool*) override { return Status::ok(); }
};

/// The lists are right, but nothing was done.
class OnlySaysItRestores final : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  Result<Address> allocate(Bytes size, const Stream& stream, cache::OutOfMemory* account) override {
    Result<Address> got = ForwardingSubject::allocate(size, stream, account);
    if (got.is_ok()) live_.push_back(got.value());
    return got;
  }
  Status free(Address address) override {
    std::erase(live_, address);
    return ForwardingSubject::free(address);
  }
  Result<PoolCheckpoint> checkpoint_pool(DeviceId device, MemoryPoolId pool) override {
    then_ = live_;
    return ForwardingSubject::checkpoint_pool(device, pool);
  }
  Status restore_pool(const PoolCheckpoint&, RestoredPool* out) override {
    *out = {live_, then_};
    return Status::ok();
  }

 private:
  std::vector<Address> live_;
  std::vector<Address> then_;
};

/// What was made since the checkpoint stays.
class EndsNothing final : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  Status restore_pool(const PoolCheckpoint& to, RestoredPool* out) override {
    const Status restored = ForwardingSubject::restore_pool(to, out);
    out->freed.clear();
    return restored;
  }
};

class HidesWhatItMade final : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  Status restore_pool(const PoolCheckpoint& to, RestoredPool* out) override {
    const Status restored = ForwardingSubject::restore_pool(to, out);
    if (!out->created.empty()) out->created.pop_back();
    return restored;
  }
};

/// The first checkpoint of all is taken for every one.
class KeepsOneCheckpoint final : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  Result<PoolCheckpoint> checkpoint_pool(DeviceId device, MemoryPoolId pool) override {
    if (!first_.is_ok()) first_ = ForwardingSubject::checkpoint_pool(device, pool);
    return first_;
  }

 private:
  Result<PoolCheckpoint> first_{Code::kNotFound, "none yet"};
};

/// Uses on other streams are forgotten: the block is freed by its address alone.
class ForgetsAllUses final : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  Status record_use(Address, const Stream&) override { return Status::ok(); }
};

/// An error is not an error.
class NeverFails final : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  Result<PoolCheckpoint> checkpoint_pool(DeviceId device, MemoryPoolId pool) override {
    Result<PoolCheckpoint> made = ForwardingSubject::checkpoint_pool(device, pool);
    return made.is_ok() ? made : Result<PoolCheckpoint>(PoolCheckpoint{});
  }
  Status restore_pool(const PoolCheckpoint& to, RestoredPool* out) override {
    static_cast<void>(ForwardingSubject::restore_pool(to, out));
    return Status::ok();
  }
};

/// A return that needs a moment is never made.
class IsNeverReady final : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  Status restore_pool(const PoolCheckpoint&, RestoredPool*) override {
    return {Code::kNotReady, "not yet"};
  }
};

class IsAlwaysBusy final : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  Status restore_pool(const PoolCheckpoint&, RestoredPool*) override {
    return {Code::kBusy, "not now"};
  }
};

TEST(Checkers, C11FiresOnAReturnThatIsNone) {
  EXPECT_EQ(clause<RestoresNothing>(kGrown), "C11");
  EXPECT_EQ(clause<EndsNothing>(kGrown), "C11");
  EXPECT_EQ(clause<HidesWhatItMade>(kGrown), "C11");
  EXPECT_EQ(clause<OnlySaysItRestores>(kGrown), "C2");
}

TEST(Checkers, C11FiresOnACheckpointOfAnotherMoment) {
  EXPECT_EQ(clause<KeepsOneCheckpoint>("mempool-begin 0 s0\nalloc p0 1MiB s0\nmempool-end 0 d0\n"
                                       "checkpoint 0 0 d0\nfree p0\ncheckpoint 1 0 d0\n"),
            "C11");
}

TEST(Checkers, C7FiresOnAReturnThatTakesMemoryFromItsUser) {
  EXPECT_EQ(clause<ForgetsAllUses>(
                "stream s1 d0\nmempool-begin 0 s0\nalloc p0 1MiB s0\nmempool-end 0 d0\n"
                "checkpoint 0 0 d0\nuse p0 s1\nrestore 0\n"),
            "C7");
}

TEST(Checkers, C16FiresOnWrongAnswersAboutCheckpoints) {
  EXPECT_EQ(clause<NeverFails>("checkpoint 0 0 d0\n"), "C16");
  EXPECT_EQ(clause<NeverFails>("mempool-begin 0 s0\nalloc p0 1MiB s0\nmempool-end 0 d0\n"
                               "checkpoint 0 0 d0\nmempool-release 0 d0\nrestore 0\n"),
            "C16");
  EXPECT_EQ(clause<IsNeverReady>(kGrown), "C16");
  EXPECT_EQ(clause<IsAlwaysBusy>(kGrown), "C16");
}

}  // namespace
}  // namespace ashlar::props
