// The checkers of what a call answers and does fire: each has a planted bug, and the real allocator
// passes the same ops. checkers_effort_test.cc has what a call has to try.
//
// Planted: misuse that is forgiven or misnamed, refused calls that leave a trace, device calls that
// a hit, a capture or a lost device forbids, other settings and addresses than those expected (C9,
// C10, C13, C16, C17, C24, C26, C32, DEV-22).
// Imitated: an allocator that answers with another error, blames the host, polls too often, calls a
// device that is gone, takes note of what it refuses, depends on the weather.
// Not proved: that no other bug slips through a clause.
#include "props/cache/planted_subjects.h"

namespace ashlar::props {
namespace {

using cache::DeviceStats;
using cache::OutOfMemory;
using device::CallKind;

struct ForgivesMisuse : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status free(Address address) override {
    return static_cast<void>(inner_->free(address)), Status::ok();
  }
};
/// Answers out of memory where the error is another.
template <Code kError>
struct SaysOutOfMemoryFor : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    const Result<Address> got = inner_->allocate(size, stream, account);
    return got.code() == kError ? Result<Address>(Code::kOutOfMemory, "planted") : got;
  }
};
struct ConfusesErrors : SaysOutOfMemoryFor<Code::kSizeOverflow> {
  using SaysOutOfMemoryFor::SaysOutOfMemoryFor;
  Status free(Address address) override {
    return inner_->free(address).is_ok() ? Status::ok() : Status{Code::kInvalidArgument, "planted"};
  }
};
TEST(Checkers, C16FiresOnMisuseForgivenOrMisnamed) {
  for (const char* misuse :
       {"free-stale p0\n", "free-foreign 3\n", "alloc p1 4096 s0\nfree-interior p1 512\n"}) {
    const std::string ops = std::string("alloc p0 4096 s0\nfree p0\n") + misuse;
    EXPECT_EQ(clause<ForgivesMisuse>(ops), "C16") << misuse;
    EXPECT_EQ(clause<ConfusesErrors>(ops), "C16") << misuse;
  }
  EXPECT_EQ(clause<ConfusesErrors>("alloc p0 18446744073709551615 s0\n"), "C16");
  EXPECT_EQ(clause<ConfusesErrors>("alloc p0 1152921504606846977 s0\n"), "C16");
}

std::uint64_t planted_refusals = 0;  ///< what the host is said to have refused
/// Answers requests for 777 bytes as if the host had no memory for them.
template <bool kIsRefused, bool kFlushes>
struct BlamesTheHost : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    if (size.count() != 777) return inner_->allocate(size, stream, account);
    planted_refusals += kIsRefused;
    EXPECT_TRUE(!kFlushes || inner_->trim(DeviceId{0}).is_ok());
    return Status{Code::kHostOutOfMemory, "planted"};
  }
};
template <class Broken>
std::string clause_with_refusals(const std::string& ops) {
  spec::CacheLockstep::Options options = broken<Broken>();
  options.host_refusals = [] { return planted_refusals; };
  return failing_clause_of_both(options, ops);
}
TEST(Checkers, C16FiresWhenTheHostIsBlamedForNothing) {
  EXPECT_EQ((clause_with_refusals<BlamesTheHost<false, false>>("alloc p1 777 s0\n")), "C16");
  EXPECT_EQ((clause_with_refusals<BlamesTheHost<true, false>>("alloc p1 777 s0\n")), "");
}
TEST(Checkers, C13FiresWhenTheHostsShortageGivesTheDevicesMemoryBack) {
  const std::string cached = "alloc p0 20MiB s0\nfree p0\ndrain d0\nalloc p1 777 s0\n";
  EXPECT_EQ((clause_with_refusals<BlamesTheHost<true, false>>(cached)), "");
  EXPECT_EQ((clause_with_refusals<BlamesTheHost<true, true>>(cached)), "C13");
}

struct AsksWhenRefusing : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status free(Address address) override {
    const Status got = inner_->free(address);
    if (!got.is_ok()) static_cast<void>(device_for(CallKind::kMemoryInfo).memory_info());
    return got;
  }
};
TEST(Checkers, C13FiresWhenARefusedCallDoesSomething) {
  EXPECT_EQ(clause<AsksWhenRefusing>("alloc p0 512 s0\nfree p0\nfree-stale p0\n"), "C13");
  // Nor may it make a device call that fails.
  EXPECT_EQ(
      clause<AsksWhenRefusing>("alloc p0 512 s0\nfree p0\nfail memory-info 1 on\nfree-stale p0\n"),
      "C13");
}

TEST(Checkers, C17FiresOnAHitThatPollsTooOftenOrAsksTheDeviceAndOnAMissThatAsksTooOften) {
  const std::string hit = "alloc p0 512 s0\nalloc p1 512 s0\n";
  EXPECT_EQ((clause<TalksOnEveryAllocation<CallKind::kEventQuery, 17>>(hit)), "C17");
  // A call is known to be a hit only if the map before it is known.
  EXPECT_EQ((dense_clause<TalksOnEveryAllocation<CallKind::kMemoryInfo, 1>>(hit)), "C17");
  EXPECT_EQ((clause<TalksOnEveryAllocation<CallKind::kMemoryInfo, 100>>(
                "alloc p0 512 s0\nalloc p1 2MiB s0\n")),
            "C17");
}
TEST(Checkers, C9FiresOnAPollDuringACapture) {
  EXPECT_EQ((clause<TalksOnEveryAllocation<CallKind::kEventQuery, 1>>(
                "alloc p0 512 s0\ncapture-begin s0 relaxed\nalloc p1 512 s0\n")),
            "C9");
}

TEST(Checkers, Dev22FiresWhenTheSettingsAreNotThoseOfTheText) {
  const std::string ops = "alloc p0 512 s0\n";
  EXPECT_EQ(clause<Sound>("conf wait_ms:7,granule:128\n" + ops, "wait_ms:8,granule:128"), "DEV-22");
  for (const char* bad : {"conf granule:100\n", "conf wait_ms:7,wait_ms:7\n", "conf reuse\n",
                          "conf max_split_size_mb:20\n", "conf large_segment_mb:8\n"}) {
    EXPECT_EQ(clause<Sound>(bad + ops, ""), "DEV-22") << bad;
  }
  struct RefusesAllSettings {
    static Result<std::shared_ptr<spec::CacheSubject>> make(
        std::span<device::Device* const> devices, const std::string& conf) {
      if (!conf.empty()) return Status{Code::kMalformed, "planted"};
      return caching_allocator_factory()(devices, conf);
    }
  };
  spec::CacheLockstep::Options refusing;
  refusing.factory = RefusesAllSettings::make;
  EXPECT_EQ(failing_clause(refusing, "conf roundup_power2_divisions:[1:2,>:8]\n" + ops), "DEV-22");
}

TEST(Checkers, C24FiresWhenAnAllocationInACallbackIsNotRefused) {
  EXPECT_EQ(clause<SaysOutOfMemoryFor<Code::kReentrant>>("on-oom-alloc\nalloc p0 512 s0\n"), "C24");
}

struct OutlivesItsDevice : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    static_cast<void>(device_for(CallKind::kMemoryInfo).memory_info());
    return inner_->allocate(size, stream, account);
  }
};
struct HidesTheLoss : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    const Result<Address> got = inner_->allocate(size, stream, account);
    return got.is_ok() ? got : Result<Address>(Code::kDriverError, "planted");
  }
};
TEST(Checkers, C26FiresOnCallsAfterTheDeviceIsGoneAndOnOtherAnswers) {
  for (const char* end : {"lose d0\n", "teardown\n"}) {
    const std::string ops =
        std::string("alloc p0 512 s0\n") + end + "alloc p1 4MiB s0\nalloc p2 4MiB s0\n";
    EXPECT_EQ(clause<OutlivesItsDevice>(ops), "C26") << end;
    EXPECT_EQ(clause<HidesTheLoss>(ops), "C26") << end;
  }
  // Once one device has answered that the driver is unloaded, the allocator knows it of both.
  EXPECT_EQ(clause<HidesTheLoss>(
                "device d1 0\nstream s1 d1\nteardown\nalloc p0 4MiB s0\nalloc p1 4MiB s1\n"),
            "C26");
}

bool gives_another_block = false;
struct DependsOnTheWeather : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    return inner_->allocate(gives_another_block ? Bytes{4096} : size, stream, account);
  }
};
TEST(Checkers, C10sHashTellsTwoRunsWithDifferentAddressesApart) {
  const auto hash = [](bool weather) {
    gives_another_block = weather;
    spec::CacheLockstep lockstep(broken<DependsOnTheWeather>());
    spec::Op op;
    for (std::uint64_t i = 0; i < 3; ++i) {
      op.slot = 1;
      op.arg = {i, i == 0 ? 512u : 4096u, 0, 0};
      lockstep.step(op);
    }
    return lockstep.finish().address_hash;
  };
  EXPECT_EQ(hash(false), hash(false));
  EXPECT_NE(hash(false), hash(true));
}

/// Takes note of the stream of a use before it looks at the address.
struct NotesRefusedStreams : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  std::uint64_t noted = 0;
  Status record_use(Address address, const Stream& stream) override {
    const Status used = inner_->record_use(address, stream);
    noted += !used.is_ok();
    return used;
  }
  Status stats(DeviceId device, DeviceStats* out) override {
    const Status got = ForwardingSubject::stats(device, out);
    out->streams += noted;
    return got;
  }
};
/// Answers a stale name of a stream as if it were the stream's.
struct ServesDeadNames : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status end_capture(const Stream&) override { return Status::ok(); }
};
TEST(Checkers, C32FiresOnARefusedCallThatLeavesARecord) {
  EXPECT_EQ(failing_clause(broken<NotesRefusedStreams>(),
                           "stream s1 d0\nalloc p0 512 s0\nfree p0\nuse-stale p0 s1\n"),
            "C32");
  EXPECT_EQ(failing_clause(broken<ServesDeadNames>(),
                           "stream s1 d0\nalloc p0 512 s1\nfree p0\nretire s1\nname-dead s1 0\n"),
            "C16");
}

}  // namespace
}  // namespace ashlar::props
