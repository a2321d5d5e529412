// Planted bugs of the call that only asks about events (PIN-6, C27).
//
// Imitates: one that asks nothing; one that waits; one that gives memory back, or refuses.
#include "props/cache/planted_run.h"

namespace ashlar::props {
namespace {

constexpr const char* kDone =
    "stream s1 d0\nalloc p0 30MiB s0\nkernel s1 p0 w\nuse p0 s1\nfree p0\ndrain d0\nprocess d0\n";

class AsksNothing final : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  Status process_events(DeviceId) override { return Status::ok(); }
};

/// A trim waits, and gives back what it finds idle.
class GivesBack final : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  Status process_events(DeviceId device) override { return ForwardingSubject::trim(device); }
};

class Refuses final : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  Status process_events(DeviceId) override { return {Code::kNotReady, "later"}; }
};

TEST(Checkers, C27FiresOnACallThatLeavesWhatIsDonePending) {
  EXPECT_EQ(dense_clause<AsksNothing>(kDone), "C27");
}

TEST(Checkers, Pin6FiresOnACallThatDoesMoreThanAsk) {
  EXPECT_EQ(dense_clause<GivesBack>(kDone), "PIN-6");
  EXPECT_EQ(dense_clause<Refuses>(kDone), "C16");
}

TEST(Checkers, Pin6FiresOnACallThatWaits) {
  EXPECT_EQ(dense_clause<GivesBack>(
                "stream s1 d0\nalloc p0 1MiB s0\nalloc p1 1MiB s0\nkernel s1 p0 w\nuse p0 s1\n"
                "free p0\nprocess d0\n"),
            "PIN-6");
}

}  // namespace
}  // namespace ashlar::props
