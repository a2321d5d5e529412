// Planted bugs of what may be reserved, and of what goes back for it, each reported by its row (DEV-11,
// DEV-23).
//
// Imitates: no collection, one of too much; a headroom that is ignored; room that is not made, or made of
// too much. Does not imitate: a collection of another segment than the oldest
// (props/regressions/collection-oldest-first.ops fails with that bug).
#include "props/cache/planted_run.h"

namespace ashlar::props {
namespace {

/// The pool may grow twice while an idle segment is known to be done.
constexpr const char* kCollecting =
    "conf garbage_collection_threshold:0.5\nalloc p0 30MiB s0\nalloc p1 32MiB s0\n"
    "alloc p2 34MiB s0\nfree p2\nfree p1\ndrain d0\nlimit d0 190MiB\nalloc p4 40MiB s0\ndrain d0\n"
    "limit d0 270MiB\nalloc p5 42MiB s0\n";

/// The subject's limit is no limit: nothing is ever over a part of it.
class CollectsNothing final : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  Status set_memory_limit(DeviceId, Bytes) override { return Status::ok(); }
};

/// As if the threshold were a tenth of what it is.
class CollectsTooMuch final : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  Status set_memory_limit(DeviceId device, Bytes limit) override {
    return ForwardingSubject::set_memory_limit(device, Bytes{limit.count() * 3 / 4});
  }
};

/// Says that the device has more than it has: growth into the headroom, and no room to be made.
class SaysThereIsRoom final : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  Status make_room(DeviceId, Bytes) override { return Status::ok(); }
};

class SaysThereIsNone final : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  Status make_room(DeviceId, Bytes) override { return {Code::kOutOfMemory, "no room"}; }
};

/// Everything idle goes back.
class MakesTooMuchRoom final : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  Status make_room(DeviceId device, Bytes free) override {
    static_cast<void>(ForwardingSubject::trim(device));
    return ForwardingSubject::make_room(device, free);
  }
};

TEST(Checkers, Dev11FiresOnACollectionThatIsNotMadeOrOfTooMuch) {
  EXPECT_EQ(dense_clause<CollectsNothing>(kCollecting), "DEV-11");
  EXPECT_EQ(dense_clause<CollectsTooMuch>(kCollecting), "DEV-11");
}

TEST(Checkers, Dev23FiresOnRoomThatIsNotMade) {
  constexpr const char* kFull =
      "device d0 64MiB\nalloc p0 30MiB s0\nalloc p1 30MiB s0\nfree p1\ndrain d0\n"
      "make-room d0 20MiB\n";
  EXPECT_EQ(clause<SaysThereIsRoom>(kFull), "DEV-23");
  EXPECT_EQ(clause<SaysThereIsNone>(kFull), "DEV-23");
  EXPECT_EQ(
      dense_clause<MakesTooMuchRoom>("device d0 128MiB\nalloc p0 30MiB s0\nalloc p1 32MiB s0\n"
                                     "alloc p2 34MiB s0\nfree p1\nfree p2\ndrain d0\n"
                                     "make-room d0 40MiB\n"),
      "DEV-23");
  EXPECT_EQ(clause<SaysThereIsNone>("device d0 64MiB\nmake-room d0 20MiB\n"), "C16");
}

}  // namespace
}  // namespace ashlar::props
