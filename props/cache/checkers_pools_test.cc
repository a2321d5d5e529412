// Planted bugs of memory pools, each reported by the clause that forbids it (C8, C16, DEV-8).
//
// Imitates: a route that is forgotten, that takes everybody's allocations, or that outlives its end; a pool
// whose memory is given back too early. Does not imitate: a pool released while launches of its graphs run
// (props/regressions/memory-pool-waits-for-launches.ops fails with that bug).
#include "props/cache/planted_run.h"

namespace ashlar::props {
namespace {

/// The pool is made, but no allocation goes to it.
class ForgetsRoutes final : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  Status begin_pool(DeviceId device, MemoryPoolId pool, StreamFilter) override {
    return ForwardingSubject::retain_pool(device, pool);
  }
  Status end_pool(DeviceId, MemoryPoolId) override { return Status::ok(); }
};

/// The filter is taken for one that is always true (H18).
class TakesAllStreams final : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  Status begin_pool(DeviceId device, MemoryPoolId pool, StreamFilter) override {
    return ForwardingSubject::begin_pool(device, pool, [](const Stream&) { return true; });
  }
};

/// A pool inside another is not seen: the outer one serves (H19).
class KeepsToTheOuterPool final : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  Status begin_pool(DeviceId device, MemoryPoolId pool, StreamFilter filter) override {
    if (!is_begun_) {
      is_begun_ = true;
      return ForwardingSubject::begin_pool(device, pool, std::move(filter));
    }
    return ForwardingSubject::retain_pool(device, pool);
  }

 private:
  bool is_begun_ = false;
};

/// The end of the route is the end of the pool.
class ReleasesAtTheEnd final : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  Status end_pool(DeviceId device, MemoryPoolId pool) override {
    const Status ended = ForwardingSubject::end_pool(device, pool);
    static_cast<void>(ForwardingSubject::release_pool(device, pool));
    return ended;
  }
};

/// One use is all that a pool has.
class CountsNoUses final : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  Status retain_pool(DeviceId, MemoryPoolId) override { return Status::ok(); }
};

/// A pool is not ended by its release: one of the same name has its memory, launches or not.
class NeverReleases final : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  Status release_pool(DeviceId, MemoryPoolId) override { return Status::ok(); }
};

class EndsTwice final : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  Status end_pool(DeviceId device, MemoryPoolId pool) override {
    static_cast<void>(ForwardingSubject::end_pool(device, pool));
    return Status::ok();
  }
};

/// A use by a stream that captures is taken for one that never happens.
class ForgetsCapturedUses final : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  Status record_use(Address address, const Stream& stream) override {
    return is_capturing_ ? Status::ok() : ForwardingSubject::record_use(address, stream);
  }
  Status begin_capture(const Stream& stream) override {
    is_capturing_ = true;
    return ForwardingSubject::begin_capture(stream);
  }
  Status end_capture(const Stream& stream) override {
    is_capturing_ = false;
    return ForwardingSubject::end_capture(stream);
  }

 private:
  bool is_capturing_ = false;
};

/// A growth device is not used.
class ForgetsTheGrowthDevice final : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  Status create_pool(DeviceId device, MemoryPoolId pool,
                     const MemoryPoolOptions& options) override {
    MemoryPoolOptions changed = options;
    changed.growth = nullptr;
    return ForwardingSubject::create_pool(device, pool, changed);
  }
};

/// What a growth device gave goes back to the pool's device.
class ReturnsElsewhere final : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  ~ReturnsElsewhere() override { inner_.reset(); }
  Status create_pool(DeviceId device, MemoryPoolId pool,
                     const MemoryPoolOptions& options) override {
    MemoryPoolOptions changed = options;
    if (options.growth != nullptr) {
      detour_ = std::make_unique<Detour>(*options.growth, *devices_[0]);
      changed.growth = detour_.get();
    }
    return ForwardingSubject::create_pool(device, pool, changed);
  }

 private:
  struct Detour final : device::ForwardingDevice {
    Detour(device::Device& from, device::Device& to) : ForwardingDevice(from), home(to) {}
    Status segment_free(Address base) noexcept override { return home.segment_free(base); }
    device::Device& home;
  };
  std::unique_ptr<Detour> detour_;
};

TEST(Checkers, Dev8FiresOnAGrowthDeviceThatIsNotUsedOrNotGivenItsMemoryBack) {
  const std::string ops =
      "mempool-create 0 d0 4\nmempool-begin 0 s0\nalloc p1 1MiB s0\nfree p1\nmempool-end 0 d0\n"
      "mempool-release 0 d0\nmempool-release 0 d0\ndrain d0\ntrim d0\n";
  EXPECT_EQ(clause<ForgetsTheGrowthDevice>(ops), "DEV-8");
  EXPECT_EQ(clause<ReturnsElsewhere>(ops), "DEV-8");
}

/// s1 uses a block of s0's in its capture; it is freed, and s0 allocates again while the capture goes on.
constexpr const char* kFreedInACapture =
    "stream s1 d0\nmempool-begin 0 s0\nalloc p1 4MiB s0\ncapture-begin s1 global\nkernel s1 p1 w\n"
    "free p1\nalloc p2 4MiB s0\ncapture-end s1\ndrain d0\nmempool-launch 0 0 s1\n";

TEST(Checkers, C8FiresOnAReplayThatOverwritesWhatWasLiveWhenItsGraphWasCaptured) {
  spec::CacheLockstep::Options options = broken<ForgetsCapturedUses>();
  options.walk_every = options.stats_every = 1000;  // a walk misses the use first
  const spec::LockstepResult result = run(options, kFreedInACapture);
  EXPECT_EQ(result.divergence.clause, "C8");
  EXPECT_NE(result.divergence.text.find("a replay of graph 1 overwrites"), std::string::npos)
      << result.divergence.text;
  EXPECT_EQ(result.op_text.substr(0, 14), "mempool-launch");
  EXPECT_EQ(dense_clause<ForgetsCapturedUses>(kFreedInACapture), "C7");
}

/// After a capture the subject announces its uses once more, as if their kernels ran.
class AnnouncesCapturedUsesAnew final : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  Status record_use(Address address, const Stream& stream) override {
    uses_.emplace_back(address, stream);
    return ForwardingSubject::record_use(address, stream);
  }
  Status end_capture(const Stream& stream) override {
    const Status ended = ForwardingSubject::end_capture(stream);
    for (const auto& [address, user] : uses_)
      static_cast<void>(ForwardingSubject::record_use(address, user));
    return ended;
  }

 private:
  std::vector<std::pair<Address, Stream>> uses_;
};

TEST(Checkers, Dev7FiresOnABlockThatWaitsForKernelsOfAGraph) {
  EXPECT_EQ(dense_clause<AnnouncesCapturedUsesAnew>(
                "stream s1 d0\nalloc p1 1MiB s1\nmempool-begin 0 s0\nalloc p2 1MiB s0\n"
                "capture-begin s1 global\nkernel s1 p2 w\nuse p2 s1\ncapture-end s1\nfree p2\n"),
            "DEV-7");
}

/// Nobody is told that a capture has ended (H13).
class KeepsCapturesUnderWay final : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  Status end_capture(const Stream&) override { return Status::ok(); }
};

/// A pool that is begun is taken for a capture (H15).
class TakesPoolsForCaptures final : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  Status begin_pool(DeviceId device, MemoryPoolId pool, StreamFilter filter) override {
    static_cast<void>(ForwardingSubject::begin_capture(capturing_));
    return ForwardingSubject::begin_pool(device, pool, std::move(filter));
  }
  Status end_pool(DeviceId device, MemoryPoolId pool) override {
    static_cast<void>(ForwardingSubject::end_capture(capturing_));
    return ForwardingSubject::end_pool(device, pool);
  }
  Result<Address> allocate(Bytes size, const Stream& stream, cache::OutOfMemory* account) override {
    capturing_ = stream;
    return ForwardingSubject::allocate(size, stream, account);
  }

 private:
  Stream capturing_;
};

TEST(Checkers, C16FiresOnACaptureThatStaysUnderWay) {
  EXPECT_EQ(clause<KeepsCapturesUnderWay>("capture-begin s0 global\ncapture-end s0\ntrim d0\n"),
            "C16");
  EXPECT_EQ(clause<TakesPoolsForCaptures>("alloc p1 1MiB s0\nmempool-begin 0 s0\ntrim d0\n"),
            "C16");
}

/// A device whose marks are taken to cover whatever the capture adds.
class CoversEverything final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  Status capture_covers(StreamHandle stream, device::CaptureMark mark) noexcept override {
    static_cast<void>(ForwardingDevice::capture_covers(stream, mark));
    return Status::ok();
  }
};

TEST(Checkers, C6FiresOnReuseInACaptureThatItsOrderDoesNotProve) {
  const std::string ops =
      "stream s1 d0\nmempool-begin 0 s0\ncapture-begin s0 global\nalloc p1 12MiB s0\n"
      "capture-wait s1 s0\nkernel s1 p1 w\nfree p1\nalloc p2 12MiB s0\n";
  spec::CacheLockstep::Options options;
  options.factory = caching_allocator_factory();
  EXPECT_EQ(failing_clause(options, ops), "");
  std::vector<std::unique_ptr<CoversEverything>> careless;
  options.factory = [&careless](std::span<device::Device* const> devices, const std::string& conf) {
    std::vector<device::Device*> in_front;
    for (device::Device* const each : devices) {
      careless.push_back(std::make_unique<CoversEverything>(*each));
      in_front.push_back(careless.back().get());
    }
    return caching_allocator_factory()(in_front, conf);
  };
  EXPECT_EQ(failing_clause(options, ops), "C6");
}

TEST(Checkers, C8FiresOnAnAllocationFromAnotherPoolThanItsOwn) {
  EXPECT_EQ(clause<ForgetsRoutes>("mempool-begin 0 s0\nalloc p1 1MiB s0\n"), "C8");
  EXPECT_EQ(dense_clause<TakesAllStreams>(
                "stream s1 d0\nmempool-begin 0 s0\nalloc p1 1MiB s0\nfree p1\nalloc p2 1MiB s1\n"
                "mempool-end 0 d0\nmempool-begin 0 s1\nalloc p3 1MiB s1\n"),
            "C8");
  EXPECT_EQ(clause<KeepsToTheOuterPool>(
                "mempool-begin 0 s0\nalloc p1 1MiB s0\nmempool-begin 1 s0\nalloc p2 1MiB s0\n"),
            "C8");
}

TEST(Checkers, C8FiresWhenAPoolHasTheMemoryOfAReleasedOneOfItsName) {
  EXPECT_EQ(clause<NeverReleases>(
                "mempool-begin 0 s0\nalloc p1 1MiB s0\nmempool-end 0 d0\nmempool-release 0 d0\n"
                "mempool-begin 0 s0\nalloc p2 1MiB s0\n"),
            "C8");
}

TEST(Checkers, C8FiresWhenAPoolInUseLosesMemory) {
  // A release after a capture makes no device call.
  EXPECT_EQ(dense_clause<ReleasesAtTheEnd>(
                "mempool-begin 0 s0\ncapture-begin s0 global\nalloc p1 1MiB s0\n"
                "capture-end s0\nfree p1\ndrain d0\nmempool-end 0 d0\ntrim d0\n"),
            "C8");
}

TEST(Checkers, C16FiresOnWrongAnswersAboutPools) {
  EXPECT_EQ(clause<CountsNoUses>("mempool-begin 0 s0\nmempool-retain 0 d0\nmempool-end 0 d0\n"
                                 "mempool-release 0 d0\nmempool-release 0 d0\n"),
            "C16");
  EXPECT_EQ(clause<EndsTwice>("mempool-begin 0 s0\nmempool-end 0 d0\nmempool-end 0 d0\n"), "C16");
}

}  // namespace
}  // namespace ashlar::props
