// The checkers of what a call asks of the device and of what it has to try fire: each has a planted
// bug, and the real allocator passes the same ops.
//
// Imitated: an allocator that cuts blocks it should leave whole, forgets the callbacks, gives up
// without a reclaim where it may not wait, asks about everything again and again, keeps what a
// failed call was granted, answers with another device's error.
// Not proved: that no other bug slips through.
#include "props/cache/planted_subjects.h"

namespace ashlar::props {
namespace {

using cache::OutOfMemory;
using device::CallKind;

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
struct CallsBackTwice : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  void add_free_memory_callback(std::function<void(DeviceId)> callback) override {
    inner_->add_free_memory_callback([callback](DeviceId device) {
      callback(device);
      callback(device);
    });
  }
};
TEST(CheckersOfEffort, Dev13FiresWhereNoCallbackIsCalledOrForAnotherDeviceOrTwice) {
  const std::string ops = "device d1 64MiB\nalloc p0 512 s0\non-oom p0\n";
  EXPECT_EQ(clause<NeverCallsBack>(ops + "alloc p1 4MiB s0\n"), "DEV-13");
  EXPECT_EQ(clause<NamesAnotherDevice>(ops + "alloc p1 4MiB s0\n"), "DEV-13");
  EXPECT_EQ(clause<CallsBackTwice>(ops + "alloc p1 4MiB s0\n"), "DEV-13");
  const std::string in_a_capture =
      "alloc p0 512 s0\non-oom p0\ncapture-begin s0 relaxed\nalloc p1 4MiB s0\n";
  EXPECT_EQ(clause<NeverCallsBack>(in_a_capture), "DEV-13");
}

TEST(CheckersOfEffort, C12FiresWithoutAPermittedWaitOnWhatEarlierCallsHaveMarked) {
  // The first call that is refused marks the stream; by the second its work is done, and known so.
  const std::string idle =
      "conf wait_ms:0\ndevice d0 40MiB\nalloc p0 30MiB s0\nfree p0\nalloc p1 40MiB s0\ndrain d0\n";
  EXPECT_EQ(dense_clause<NeverKnowsDone<kMayNotWait>>(idle + "alloc p2 40MiB s0\n"), "C12");
  const std::string of_another =
      "conf wait_ms:0\ndevice d0 40MiB\nstream s1 d0\nalloc p0 30MiB s1\nfree p0\n"
      "alloc p1 40MiB s0\ndrain d0\n";
  EXPECT_EQ(dense_clause<NeverKnowsDone<kMayNotWait>>(of_another + "alloc p2 30MiB s0\n"), "C23");
  // A use whose event was recorded at the free needs no earlier call.
  const std::string used =
      "conf wait_ms:0\ndevice d0 30MiB\nstream s1 d0\nalloc p0 30MiB s0\nuse p0 s1\nfree p0\n"
      "drain d0\n";
  EXPECT_EQ(dense_clause<NeverKnowsDone<kMayNotWait>>(used + "alloc p2 30MiB s0\n"), "C12");
}

/// Runs out of memory though the stream's own heap has a fit, and tells of a failed question.
struct GivesUpAtAnyFailure : RunsOutOfMemory {
  using RunsOutOfMemory::RunsOutOfMemory;
  EventHandle event;
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    if (size.count() != 777) {
      event = device_for(CallKind::kEventCreate).event_create().value();
      return inner_->allocate(size, stream, account);
    }
    static_cast<void>(device_for(CallKind::kEventQuery).event_query(event));
    account->rounded = 1024_B;
    return run_out(*account);
  }
};
TEST(CheckersOfEffort, C12FiresOnAFreeBlockOfTheStreamsOwnWhateverTheDeviceFails) {
  EXPECT_EQ(dense_clause<GivesUpAtAnyFailure>(
                "alloc p0 512 s0\nfail event-query 1 on\nalloc p1 777 s0\n"),
            "C12");
}

void hide_the_end_of_the_wait(OutOfMemory* account) { account->wait_ran_out = false; }
TEST(CheckersOfEffort, C12FiresWhereAWaitRanOutAndTheErrorDoesNotSaySo) {
  EXPECT_EQ(clause_of_a_long_wait<ChangesTheAccount<hide_the_end_of_the_wait>>(), "C12");
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

/// Makes so many device calls of a kind in each free.
template <CallKind kKind, unsigned kCalls>
struct TalksAtAFree : TalksToTheDevice {
  using TalksToTheDevice::TalksToTheDevice;
  Status free(Address address) override {
    const Status got = inner_->free(address);
    talk(kKind, kCalls);
    return got;
  }
};
struct TalksAtAUse : TalksToTheDevice {
  using TalksToTheDevice::TalksToTheDevice;
  Status record_use(Address address, const Stream& stream) override {
    talk(CallKind::kMemoryInfo, 300);
    return inner_->record_use(address, stream);
  }
};
TEST(CheckersOfEffort, C17FiresOnAFreeOrAUseThatAsksTheDeviceTooMuchOrWaits) {
  const std::string ops = "stream s1 d0\nalloc p0 512 s0\n";
  EXPECT_EQ((clause<TalksAtAFree<CallKind::kMemoryInfo, 6>>(ops + "free p0\n")), "C17");
  EXPECT_EQ((clause<TalksAtAFree<CallKind::kMemoryInfo, 9>>(ops + "use p0 s1\nfree p0\n")), "C17");
  EXPECT_EQ((clause<TalksAtAFree<CallKind::kSynchronize, 1>>(ops + "free p0\n")), "C17");
  EXPECT_EQ(clause<TalksAtAUse>(ops + "use p0 s1\n"), "C17");
}

TEST(CheckersOfEffort, C17FiresOnAMissThatAsksAboutTooManyEvents) {
  EXPECT_EQ((clause<TalksOnEveryAllocation<CallKind::kEventQuery, 300>>(
                "alloc p0 512 s0\nalloc p1 4MiB s0\n")),
            "C17");
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
