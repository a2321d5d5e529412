// The checkers of who has memory fire: each has a planted bug, and the real allocator passes the
// same ops.
//
// Planted: memory that is refused though there is some, that is kept or leaked though it is the
// device's, and a wrong account of it (C12, C14, C27, C28, C30, DEV-12..14, the trim of DEV-19).
// Imitated: an allocator that gives up too early, grows over its limit, never asks whether work is
// done, trims nothing, waits twice, tells other figures or advice than the map's.
// Not proved: that no other bug slips through a clause.
#include "props/cache/planted_subjects.h"

namespace ashlar::props {
namespace {

using cache::OutOfMemory;

/// Has no memory for 777 bytes.
struct NeverHasMemory : RunsOutOfMemory {
  using RunsOutOfMemory::RunsOutOfMemory;
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    if (size.count() != 777) return inner_->allocate(size, stream, account);
    *account = {};
    account->requested = 777_B;
    account->rounded = 1024_B;
    account->segment = 2_MiB;
    account->reserved = account->allocated = 2_MiB;  // where it is right to have none
    account->limit = Bytes::max();
    account->config = config();
    if (inner_->largest_free_block(stream).value_or(0_B) < 1024_B)  // a hit asks nothing
      account->device_memory = device_for(device::CallKind::kMemoryInfo).memory_info().value();
    return run_out(*account);
  }
};
TEST(Checkers, C12FiresOnAnOutOfMemoryWithABlockOrTheDeviceFreeOrAFreePending) {
  EXPECT_EQ(clause<NeverHasMemory>("alloc p0 512 s0\nalloc p1 777 s0\n"), "C12");
  EXPECT_EQ(clause<NeverHasMemory>("alloc p1 777 s0\n"), "C12");
  EXPECT_EQ(clause<NeverHasMemory>(
                "device d0 2MiB\nalloc p0 1MiB s0\nalloc p2 1MiB s0\nalloc p1 777 s0\n"),
            "");  // rightly
  EXPECT_EQ(clause<NeverHasMemory>(
                "device d0 2MiB\nstream s1 d0\nalloc p0 1MiB s0\nalloc p2 1MiB s0\nkernel s1 p0 r\n"
                "free p0\nalloc p1 777 s0\n"),
            "C12");  // a wait would do
  EXPECT_EQ(clause<NeverHasMemory>(
                "device d0 2MiB\nstream s1 d0\nalloc p0 512 s1\nfree p0\nalloc p1 777 s0\n"),
            "C23");  // another heap's
}

TEST(Checkers, C22FiresOnPagesThatOnlyFreeBytesKeep) {
  const std::string of_another =
      "conf backing:pages,reuse:own\ndevice d0 8MiB\nstream s1 d0\nalloc p0 8MiB s1\n";
  EXPECT_EQ(clause<NeverHasMemory>(of_another + "free p0\nalloc p1 777 s0\n"), "C22");
  EXPECT_EQ(clause<NeverHasMemory>(of_another + "kernel s1 p0 w\nfree p0\nalloc p1 777 s0\n"),
            "C22");
  EXPECT_NE(clause<NeverHasMemory>(of_another + "alloc p1 777 s0\n"), "C22");
}

struct LeaksASegment : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status trim(DeviceId device) override {
    take_segment(2_MiB);
    return inner_->trim(device);
  }
};
struct LeaksAnEvent : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status trim(DeviceId device) override {
    static_cast<void>(device_for(device::CallKind::kEventCreate).event_create());
    return inner_->trim(device);
  }
};
TEST(Checkers, C14FiresOnLeakedSegmentsAndEvents) {
  EXPECT_EQ(clause<LeaksASegment>("alloc p0 512 s0\ntrim d0\n"), "C14");
  EXPECT_EQ(clause<LeaksAnEvent>("alloc p0 512 s0\ntrim d0\n"), "C14");
}

struct IgnoresTheLimit : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status set_memory_limit(DeviceId, Bytes) override { return Status::ok(); }
};
TEST(Checkers, Dev12FiresOnGrowthOverTheLimit) {
  EXPECT_EQ(clause<IgnoresTheLimit>("limit d0 1MiB\nalloc p0 512 s0\n"), "DEV-12");
}

struct TrimsAtALimit : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status set_memory_limit(DeviceId device, Bytes limit) override {
    const Status set = inner_->set_memory_limit(device, limit);
    static_cast<void>(inner_->trim(device));
    return set;
  }
};
TEST(Checkers, Dev12FiresOnALoweredLimitThatKeepsTooMuchOrTooLittle) {
  const std::string idle = "alloc p0 20MiB s0\nalloc p1 20MiB s0\nfree p0\nfree p1\ndrain d0\n";
  EXPECT_EQ(clause<IgnoresTheLimit>(idle + "limit d0 30MiB\n"), "DEV-12");
  EXPECT_EQ(dense_clause<TrimsAtALimit>(idle + "limit d0 30MiB\n"), "DEV-12");
}

struct TellsNoObserver : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  void add_out_of_memory_observer(std::function<void(const OutOfMemory&)>) override {}
};
void misstate_rounding(OutOfMemory* account) { account->rounded += 512_B; }
TEST(Checkers, Dev13AndDev14FireOnAnUntoldOrMisstatedOutOfMemory) {
  EXPECT_EQ(clause<TellsNoObserver>("limit d0 1MiB\nalloc p0 512 s0\n"), "DEV-13");
  EXPECT_EQ(clause<ChangesTheAccount<misstate_rounding>>("limit d0 1MiB\nalloc p0 512 s0\n"),
            "DEV-14");
}

template <Bytes cache::HeldMemory::*kFigure>
void add_to(OutOfMemory* account) {
  account->*kFigure += 512_B;
}
void forget_advice(OutOfMemory* account) { account->advice = 0; }
void say_reachable_for_free(OutOfMemory* account) {
  account->largest_free = account->largest_reachable;
}
void say_free_for_reachable(OutOfMemory* account) {
  account->largest_reachable = account->largest_free;
}
template <cache::Advice kAdvice>
void flip(OutOfMemory* account) {
  account->advice =
      static_cast<std::uint16_t>(account->advice ^ 1u << static_cast<unsigned>(kAdvice));
}

/// Another stream's 56 MiB are free, in one block.
const std::string kFreeElsewhere =
    "device d0 64MiB\nstream s1 d0\nalloc p0 60MiB s0\nfree p0\nalloc p1 4MiB s0\n";
/// Four free pieces of 5 MiB between four live ones.
const std::string kInPieces =
    "device d0 40MiB\n"
    "alloc p0 5MiB s0\nalloc p1 5MiB s0\nalloc p2 5MiB s0\nalloc p3 5MiB s0\n"
    "alloc p4 5MiB s0\nalloc p5 5MiB s0\nalloc p6 5MiB s0\nalloc p7 5MiB s0\n"
    "free p0\nfree p2\nfree p4\nfree p6\nalloc p8 9MiB s0\n";

TEST(Checkers, Dev14FiresOnEveryFigureThatIsNotTheSnapshots) {
  using cache::HeldMemory;
  const std::string ops = "conf reuse:own\n" + kFreeElsewhere + "alloc p2 40MiB s1\n";
  EXPECT_EQ(clause<ChangesTheAccount<add_to<&HeldMemory::reserved>>>(ops), "DEV-14");
  EXPECT_EQ(clause<ChangesTheAccount<add_to<&HeldMemory::allocated>>>(ops), "DEV-14");
  EXPECT_EQ(clause<ChangesTheAccount<add_to<&HeldMemory::pending>>>(ops), "DEV-14");
  EXPECT_EQ(clause<ChangesTheAccount<add_to<&HeldMemory::in_transfer>>>(ops), "DEV-14");
  EXPECT_EQ(clause<ChangesTheAccount<add_to<&HeldMemory::free_cached>>>(ops), "DEV-14");
  EXPECT_EQ(clause<ChangesTheAccount<add_to<&HeldMemory::free_splits>>>(ops), "DEV-14");
  EXPECT_EQ(clause<ChangesTheAccount<add_to<&HeldMemory::free_in_pools>>>(ops), "DEV-14");
  EXPECT_EQ(clause<ChangesTheAccount<add_to<&HeldMemory::largest_free>>>(ops), "DEV-14");
  EXPECT_EQ(clause<ChangesTheAccount<add_to<&HeldMemory::largest_reachable>>>(ops), "DEV-14");
  EXPECT_EQ(clause<ChangesTheAccount<add_to<&HeldMemory::fits_elsewhere>>>(ops), "DEV-14");
}

TEST(Checkers, Dev14FiresWhenOneOfTheTwoLargestBlocksStandsForTheOther) {
  const std::string own = "conf reuse:own\n" + kFreeElsewhere + "alloc p2 40MiB s1\n";
  EXPECT_EQ(clause<ChangesTheAccount<say_reachable_for_free>>(own), "DEV-14");
  EXPECT_EQ(clause<ChangesTheAccount<say_free_for_reachable>>(own), "DEV-14");
  const std::string capture =
      kFreeElsewhere + "stream s2 d0\ncapture-begin s2 relaxed\nalloc p2 40MiB s1\n";
  EXPECT_EQ(clause<ChangesTheAccount<say_reachable_for_free>>(capture), "DEV-14");
  EXPECT_EQ(clause<ChangesTheAccount<say_free_for_reachable>>(capture), "DEV-14");
}

TEST(Checkers, Dev14FiresOnAdviceThatIsForgottenOrInvented) {
  const std::string asks = "alloc p2 40MiB s1\n";
  const std::string unfinished = "alloc p3 56MiB s0\nkernel s0 p3 w\nfree p3\n";
  for (const std::string& ops : {
           "conf reuse:own\n" + kFreeElsewhere + asks,
           "conf wait_ms:0\n" + kFreeElsewhere + unfinished + asks,
           kFreeElsewhere + "stream s2 d0\ncapture-begin s2 relaxed\n" + asks,
           std::string("device d0 64MiB\nlimit d0 1MiB\nalloc p0 512 s0\n"),
           kInPieces,
           "conf max_split_size_mb:64\n" + kInPieces,
       }) {
    EXPECT_EQ(clause<ChangesTheAccount<forget_advice>>(ops), "DEV-14") << ops;
    using cache::Advice;
    EXPECT_EQ(clause<ChangesTheAccount<flip<Advice::kWaitLonger>>>(ops), "DEV-14") << ops;
    EXPECT_EQ(clause<ChangesTheAccount<flip<Advice::kShareComplete>>>(ops), "DEV-14") << ops;
    EXPECT_EQ(clause<ChangesTheAccount<flip<Advice::kShareOrdered>>>(ops), "DEV-14") << ops;
    EXPECT_EQ(clause<ChangesTheAccount<flip<Advice::kKeepWhole>>>(ops), "DEV-14") << ops;
    EXPECT_EQ(clause<ChangesTheAccount<flip<Advice::kRepeatSizes>>>(ops), "DEV-14") << ops;
  }
}

/// Has the 140 MiB in use while it makes room for 100 MiB, so that a larger segment goes back.
struct HoldsTheSmallest : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    if (size != 100_MiB) return inner_->allocate(size, stream, account);
    const Result<Address> held = inner_->allocate(140_MiB, stream, account);
    const Result<Address> got = inner_->allocate(size, stream, account);
    EXPECT_TRUE(inner_->free(held.value()).is_ok());
    return got;
  }
};
TEST(Checkers, Dev13FiresWhenALargerSegmentGoesBackThanWouldDo) {
  const std::string oversize = "conf max_split_size_mb:24\n";
  const std::string ops =
      "device d0 1024MiB\nalloc p0 140MiB s0\nalloc p1 600MiB s0\nalloc p2 284MiB s0\nfree p0\n"
      "free p1\n";
  EXPECT_EQ(dense_clause<HoldsTheSmallest>(oversize + ops + "alloc p3 100MiB s0\n"), "DEV-13");
}

TEST(Checkers, C27FiresWhenMemoryWhoseWorkIsDoneDoesNotComeBack) {
  const char* const used_by_a_dead_stream =
      "stream s1 d0\nalloc p1 30MiB s0\nuse p1 s1\nretire s1\nfree p1\ndrain d0\n"
      "alloc p2 30MiB s0\n";
  EXPECT_EQ(dense_clause<NeverKnowsDone<kDefaultSettings>>(used_by_a_dead_stream), "C27");
  const char* const left_by_a_dead_stream =
      "stream s1 d0\nalloc p1 30MiB s1\nfree p1\nretire s1\ndrain d0\nalloc p2 30MiB s0\n";
  EXPECT_EQ(dense_clause<NeverKnowsDone<kDefaultSettings>>(left_by_a_dead_stream), "C27");
}

/// Asks in a trim only.
struct KnowsDoneAtATrim : NeverKnowsDone<kDefaultSettings> {
  using NeverKnowsDone::NeverKnowsDone;
  Status trim(DeviceId device) override {
    for (const auto& each : deaf_) each->is_deaf = false;
    const Status trimmed = inner_->trim(device);
    for (const auto& each : deaf_) each->is_deaf = true;
    return trimmed;
  }
};
TEST(Checkers, C27FiresAgainOnceATrimHasAskedForAllThatHadNoEvent) {
  const std::string own_use =
      "drain d0\ntrim d0\nstream s1 d0\nalloc p1 30MiB s0\nuse p1 s1\nfree p1\ndrain d0\n"
      "alloc p2 30MiB s0\n";
  EXPECT_EQ(dense_clause<KnowsDoneAtATrim>("stream s9 d0\ndestroy s9\n" + own_use), "C27");
  EXPECT_EQ(dense_clause<KnowsDoneAtATrim>(
                "stream s9 d0\nalloc p7 512 s0\ncapture-begin s9 relaxed\nfree p7\n"
                "capture-end s9\n" +
                own_use),
            "C27");
  EXPECT_EQ(dense_clause<KnowsDoneAtATrim>(
                "alloc p7 512 s0\nfail event-create 100 once\nfree p7\nheal\n" + own_use),
            "C27");
}

struct ForgetsToTrim : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status trim(DeviceId) override { return Status::ok(); }
};
TEST(Checkers, Dev19FiresOnATrimThatLeavesAnIdleSegment) {
  EXPECT_EQ(clause<ForgetsToTrim>("alloc p0 512 s0\nfree p0\ntrim d0\n"), "DEV-19");
  EXPECT_EQ(clause<ForgetsToTrim>("alloc p0 512 s0\ncapture-begin s0 global\ntrim d0\n"), "C16");
}

struct TrimsNothing : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status trim(DeviceId device) override {
    const Status trimmed = inner_->trim(device);
    return trimmed.is_ok() ? Status{Code::kNotReady, "planted"} : Status::ok();
  }
};
TEST(Checkers, C28FiresOnATrimThatDoesNotKnowWorkIsDoneOrHidesARefusal) {
  EXPECT_EQ(clause<TrimsNothing>("conf wait_ms:0\nalloc p0 30MiB s0\nfree p0\ndrain d0\ntrim d0\n"),
            "C28");
  EXPECT_EQ(clause<TrimsNothing>(
                "alloc p0 30MiB s0\nfree p0\ndrain d0\nfail segment-free 1 once\ntrim d0\n"),
            "C28");
}

/// Gives each try its own wait.
struct TriesTwice : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    const Result<Address> got = inner_->allocate(size, stream, account);
    return got.code() == Code::kOutOfMemory ? inner_->allocate(size, stream, account) : got;
  }
};
TEST(Checkers, C30FiresOnACallThatWaitsForLongerThanIsPermitted) {
  EXPECT_EQ(clause_of_a_long_wait<TriesTwice>(), "C30");
}

}  // namespace
}  // namespace ashlar::props
