// The checkers of what a call asks of the device and of what it has to try fire: each has a planted
// bug, and the real allocator passes the same ops.
//
// Imitated: an allocator that cuts blocks it should leave whole, forgets the callbacks, gives up
// without a reclaim where it may not wait, asks about everything again and again, keeps what a failed
// call was granted, answers with another device's error.
// Not proved: that no other bug slips through.
#include "props/cache/planted_run.h"

namespace ashlar::props {
namespace {

using cache::OutOfMemory;
using device::CallKind;

struct ClaimsDefaults : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  cache::Config config() const override { return {}; }
};
TEST(CheckersOfEffort, Dev4FiresOnABlockThatIsCutThoughItHadToStayWhole) {
  // 1 MiB or less that is left of a segment stays with the block; the other policy cuts at 512 KiB.
  EXPECT_EQ(dense_clause<ClaimsDefaults>("alloc p0 32768000 s0\n", "small_request_kb:512"),
            "DEV-4");
  // Of a block that was there before, only the map before the call tells how large it was.
  EXPECT_EQ(dense_clause<ClaimsDefaults>("alloc p0 32MiB s0\nfree p0\nalloc p1 32768000 s0\n",
                                         "small_request_kb:512"),
            "DEV-4");
}

/// Hides the callback from the subject.
struct NeverCallsBack : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  void add_free_memory_callback(std::function<void(DeviceId)>) override {}
};
struct NamesAnotherDevice : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  void add_free_memory_callback(std::function<void(DeviceId)> callback) override {
    inner_->add_free_memory_callback(
        [callback](DeviceId device) { callback(DeviceId{1 - device.value()}); });
  }
};
TEST(CheckersOfEffort, Dev13FiresWhereNoCallbackIsCalledOrForAnotherDevice) {
  const std::string ops = "device d1 64MiB\nalloc p0 512 s0\non-oom p0\n";
  EXPECT_EQ(clause<NeverCallsBack>(ops + "alloc p1 4MiB s0\n"), "DEV-13");
  EXPECT_EQ(clause<NamesAnotherDevice>(ops + "alloc p1 4MiB s0\n"), "DEV-13");
  const std::string in_a_capture =
      "alloc p0 512 s0\non-oom p0\ncapture-begin s0 relaxed\nalloc p1 4MiB s0\n";
  EXPECT_EQ(clause<NeverCallsBack>(in_a_capture), "DEV-13");
}

/// No event is ever done for it: so the allocator over it never knows that memory may go back, or to
/// another stream.
class DeafDevice final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  Status event_query(EventHandle event) noexcept override {
    static_cast<void>(ForwardingDevice::event_query(event));
    return {Code::kNotReady, "planted"};
  }
};
struct NeverKnowsDone : ForwardingSubject {
  NeverKnowsDone(std::shared_ptr<spec::CacheSubject> inner,
                 std::span<device::Device* const> devices)
      : ForwardingSubject(std::move(inner), devices) {
    std::vector<device::Device*> deaf;
    for (device::Device* device : devices) {
      deaf_.push_back(std::make_unique<DeafDevice>(*device));
      deaf.push_back(deaf_.back().get());
    }
    inner_ = caching_allocator_factory()(deaf, "wait_ms:0").value();
  }
  ~NeverKnowsDone() override { inner_.reset(); }
  std::vector<std::unique_ptr<DeafDevice>> deaf_;
};
TEST(CheckersOfEffort, C12FiresWithoutAPermittedWaitOnWhatEarlierCallsHaveMarked) {
  // The first call that is refused marks the stream; by the second its work is done, and known so.
  const std::string idle =
      "conf wait_ms:0\ndevice d0 40MiB\nalloc p0 30MiB s0\nfree p0\nalloc p1 40MiB s0\ndrain d0\n";
  EXPECT_EQ(dense_clause<NeverKnowsDone>(idle + "alloc p2 40MiB s0\n"), "C12");
  const std::string of_another =
      "conf wait_ms:0\ndevice d0 40MiB\nstream s1 d0\nalloc p0 30MiB s1\nfree p0\n"
      "alloc p1 40MiB s0\ndrain d0\n";
  EXPECT_EQ(dense_clause<NeverKnowsDone>(of_another + "alloc p2 30MiB s0\n"), "C12");
  // A use whose event was recorded at the free needs no earlier call.
  const std::string used =
      "conf wait_ms:0\ndevice d0 30MiB\nstream s1 d0\nalloc p0 30MiB s0\nuse p0 s1\nfree p0\n"
      "drain d0\n";
  EXPECT_EQ(dense_clause<NeverKnowsDone>(used + "alloc p2 30MiB s0\n"), "C12");
}

/// Runs out of memory though the stream's own heap has a fit, and tells of a failed question.
struct GivesUpAtAnyFailure : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  std::uint64_t ooms = 0;
  EventHandle event;
  std::vector<std::function<void(const OutOfMemory&)>> observers;
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    if (size.count() != 777) {
      event = device_for(CallKind::kEventCreate).event_create().value();
      return inner_->allocate(size, stream, account);
    }
    static_cast<void>(device_for(CallKind::kEventQuery).event_query(event));
    account->rounded = 1024_B;
    ++ooms;
    for (const auto& observer : observers) observer(*account);
    return Status{Code::kOutOfMemory, "planted"};
  }
  void add_out_of_memory_observer(std::function<void(const OutOfMemory&)> observer) override {
    observers.push_back(observer);
    inner_->add_out_of_memory_observer(std::move(observer));
  }
  Status stats(DeviceId device, cache::DeviceStats* out) override {
    const Status got = ForwardingSubject::stats(device, out);
    out->ooms += ooms;
    out->alloc_retries += ooms;
    return got;
  }
};
TEST(CheckersOfEffort, C12FiresOnAFreeBlockOfTheStreamsOwnWhateverTheDeviceFails) {
  EXPECT_EQ(dense_clause<GivesUpAtAnyFailure>(
                "alloc p0 512 s0\nfail event-query 1 on\nalloc p1 777 s0\n"),
            "C12");
}

/// Says nothing of a wait that ran out.
struct HidesTheEndOfItsWait : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    const Result<Address> got = inner_->allocate(size, stream, account);
    account->wait_ran_out = false;
    return got;
  }
};
TEST(CheckersOfEffort, C12FiresWhereAWaitRanOutAndTheErrorDoesNotSaySo) {
  std::string ops = "conf wait_ms:3\ndevice d0 64MiB\nstream s1 d0\nalloc p1 40MiB s0\n";
  for (int i = 0; i < 20; ++i) ops += "kernel s1 p1 rw\n";
  ops += "free-on p1 s1\nalloc p2 50MiB s0\n";
  spec::CacheLockstep::Options slow = broken<HidesTheEndOfItsWait>();
  slow.machine.entries_per_ms = 1;
  EXPECT_EQ(failing_clause(slow, ops), "C12");
  slow.factory = caching_allocator_factory();
  EXPECT_EQ(failing_clause(slow, ops), "");
}

/// Takes memory in a call that fails, and keeps it as idle memory of its own.
struct KeepsWhatItWasGranted : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    const Result<Address> got = inner_->allocate(size, stream, account);
    if (!got.is_ok())
      static_cast<void>(inner_->free(inner_->allocate(4_MiB, stream, account).value()));
    return got;
  }
};
TEST(CheckersOfEffort, C13FiresOnASegmentThatAFailedCallKeeps) {
  EXPECT_EQ(clause<KeepsWhatItWasGranted>("alloc p0 512 s0\nalloc p1 2305843009213693952 s0\n"),
            "C13");
}

/// Makes so many device calls of a kind in each free and each use.
template <CallKind kKind, unsigned kCalls>
struct TalksAtAFree : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  void talk() {
    for (unsigned i = 0; i < kCalls; ++i) {
      if (kKind == CallKind::kSynchronize) static_cast<void>(device_for(kKind).synchronize_for(1));
      else static_cast<void>(device_for(kKind).memory_info());
    }
  }
  Status free(Address address) override {
    const Status got = inner_->free(address);
    talk();
    return got;
  }
};
struct TalksAtAUse : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status record_use(Address address, const Stream& stream) override {
    for (unsigned i = 0; i < 300; ++i)
      static_cast<void>(device_for(CallKind::kMemoryInfo).memory_info());
    return inner_->record_use(address, stream);
  }
};
TEST(CheckersOfEffort, C17FiresOnAFreeOrAUseThatAsksTheDeviceTooMuchOrWaits) {
  const std::string ops = "stream s1 d0\nalloc p0 512 s0\n";
  EXPECT_EQ((clause<TalksAtAFree<CallKind::kMemoryInfo, 5>>(ops + "free p0\n")), "C17");
  EXPECT_EQ((clause<TalksAtAFree<CallKind::kMemoryInfo, 9>>(ops + "use p0 s1\nfree p0\n")), "C17");
  EXPECT_EQ((clause<TalksAtAFree<CallKind::kSynchronize, 1>>(ops + "free p0\n")), "C17");
  EXPECT_EQ(clause<TalksAtAUse>(ops + "use p0 s1\n"), "C17");
}

/// Asks about one event so many times in each allocation that is no hit.
struct AsksAtAMiss : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  EventHandle event;
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    if (size == 512_B) event = device_for(CallKind::kEventCreate).event_create().value();
    else
      for (unsigned i = 0; i < 300; ++i)
        static_cast<void>(device_for(CallKind::kEventQuery).event_query(event));
    return inner_->allocate(size, stream, account);
  }
};
TEST(CheckersOfEffort, C17FiresOnAMissThatAsksAboutTooManyEvents) {
  EXPECT_EQ(clause<AsksAtAMiss>("alloc p0 512 s0\nalloc p1 4MiB s0\n"), "C17");
}

/// Answers for the first device with what the second one said.
struct AnswersForAnother : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status lost = Status::ok();
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    const Result<Address> got = inner_->allocate(size, stream, account);
    if (!got.is_ok()) lost = got.status();
    return lost.is_ok() ? got : Result<Address>(lost);
  }
  Status free(Address address) override {
    const Status got = inner_->free(address);
    return lost.is_ok() ? got : lost;
  }
};
TEST(CheckersOfEffort, C26ExcusesNoDeviceBecauseAnotherIsGone) {
  const std::string ops = "device d1 0\nstream s1 d1\nalloc p0 512 s0\nlose d1\nalloc p1 4MiB s1\n";
  EXPECT_EQ(clause<AnswersForAnother>(ops + "alloc p2 512 s0\n"), "C16");
  EXPECT_EQ(clause<AnswersForAnother>(ops + "free p0\n"), "C16");
}

}  // namespace
}  // namespace ashlar::props
