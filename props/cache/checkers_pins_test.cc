// The clauses about memory that stays, each seen to fire on a subject with a planted bug.
//
// Imitates: pins that keep nothing, that are forgotten or forgiven, generations that do not follow the memory,
// observers that are not told, or too late. Does not prove that every such bug is seen (the mutants do,
// ci/mutation).
#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "props/cache/planted_subjects.h"

namespace ashlar::props {
namespace {

using cache::MappingChange;
using cache::MappingEvent;
using cache::PinnedRange;

/// The clause and the op at which it broke, where no map is walked before the end.
std::string failing_op(spec::CacheLockstep::Options options, const std::string& ops) {
  options.walk_every = options.stats_every = 1000;
  const spec::LockstepResult found = run(options, ops);
  return found.divergence.clause + " at " + found.op_text;
}

/// A pin ends at once.
struct PinsForAMoment : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Result<PinnedRange> pin(Address address) override {
    const Result<PinnedRange> got = inner_->pin(address);
    if (got.is_ok()) static_cast<void>(inner_->unpin(got.value()));
    return got;
  }
  Status unpin(const PinnedRange&) override { return Status::ok(); }
};
TEST(CheckersOfPins, C21FiresOnAPinnedSegmentOrPageThatGoesAway) {
  const std::string ops = "alloc p0 20MiB s0\npin p0 0\nfree p0\ntrim d0\n";
  EXPECT_EQ(clause<PinsForAMoment>(ops), "C21");
  EXPECT_EQ(clause<PinsForAMoment>("conf backing:pages\n" + ops), "C21");
}
TEST(CheckersOfPins, C21FiresOnAPinnedPageThatMoves) {
  EXPECT_EQ(
      clause<PinsForAMoment>("conf backing:pages\ndevice d0 64MiB\nalloc p0 20MiB s0\nalloc p1 "
                             "20MiB s0\npin p0 0\nfree p0\nalloc p2 40MiB s0\n"),
      "C21");
}

/// A step, so many times, in which the last ten MiB of p<6n+2> and the first ten of p<6n+5> become the same pages: from the
/// twelfth on they are lent from one place to the other. `last` is put behind the allocation of p<6n+2> in the last two.
std::string lending_steps(unsigned steps, const std::string& last) {
  std::string ops = "conf backing:pages\ndevice d0 64MiB\n";
  unsigned p = 0;
  const auto alloc = [&](unsigned mib) {
    ops += "alloc p" + std::to_string(p++) + " " + std::to_string(mib) + "MiB s0\n";
  };
  const auto free = [&](unsigned back) { ops += "free p" + std::to_string(p - back) + "\n"; };
  for (unsigned n = 0; n < steps; ++n) {
    alloc(10);
    alloc(22);
    free(2);
    alloc(38);
    if (n + 2 >= steps)
      ops += last + " p" + std::to_string(p - 1) + (last == "pin" ? " 0\n" : "\n");
    free(2);
    free(1);
    for (const unsigned mib : {10u, 30u, 14u}) {
      alloc(mib);
      free(1);
    }
  }
  return ops;
}
/// Nobody could be told of it.
TEST(CheckersOfPins, NothingIsLentWhereThereAreObservers) {
  spec::CacheLockstep::Options real;
  real.factory = caching_allocator_factory();
  EXPECT_EQ(failing_clause(real, "observe\n" + lending_steps(14, "send")), "");
}
TEST(CheckersOfPins, C21FiresOnAPinnedPageThatIsLent) {
  const std::string ops = lending_steps(14, "pin");
  EXPECT_EQ(clause<PinsForAMoment>(ops), "C21");
  EXPECT_EQ(failing_op(broken<PinsForAMoment>(), ops), "C21 at alloc p77 14680064 s0");
}

/// A pin is one of other bytes.
struct PinsLess : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Result<PinnedRange> pin(Address address) override {
    const Result<PinnedRange> got = inner_->pin(address);
    if (!got.is_ok()) return got;
    return PinnedRange{got.value().base, got.value().size - 512_B, got.value().generation};
  }
  Status unpin(const PinnedRange&) override { return Status::ok(); }
};
TEST(CheckersOfPins, C21FiresOnAPinOfOtherBytes) {
  EXPECT_EQ(clause<PinsLess>("alloc p0 4KiB s0\npin p0 0\n"), "C21");
}

/// A pin never ends.
struct KeepsPins : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status unpin(const PinnedRange& range) override {
    static_cast<void>(inner_->pin(range.base));
    return inner_->unpin(range);
  }
};
TEST(CheckersOfPins, Dev19FiresOnAPinThatNeverEnds) {
  for (const char* const conf : {"", "conf backing:pages\n"})
    EXPECT_EQ(clause<KeepsPins>(conf + std::string("alloc p0 20MiB s0\npin p0 0\nunpin 0\nfree p0\n"
                                                   "trim d0\n")),
              "DEV-19");
}

/// An end of no pin is taken; a pin of no allocation too.
struct ForgivesPins : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status unpin(const PinnedRange& range) override {
    static_cast<void>(inner_->unpin(range));
    return Status::ok();
  }
  Result<PinnedRange> pin(Address address) override {
    const Result<PinnedRange> got = inner_->pin(address);
    return got.is_ok() ? got : Result<PinnedRange>(PinnedRange{address, 512_B, 1});
  }
};
TEST(CheckersOfPins, C16FiresOnMisuseForgiven) {
  EXPECT_EQ(clause<ForgivesPins>("alloc p0 4KiB s0\npin p0 0\nunpin 0\nunpin 0\n"), "C16");
  EXPECT_EQ(clause<ForgivesPins>("alloc p0 4KiB s0\nfree p0\npin-stale p0\n"), "C16");
}

/// The second end of two pins is refused.
struct CountsNoPins : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status unpin(const PinnedRange& range) override {
    while (inner_->unpin(range).is_ok()) ++ended_;
    return ended_ > 0 ? (ended_ = 0, Status::ok()) : Status{Code::kNotFound, "planted"};
  }
  int ended_ = 0;
};
TEST(CheckersOfPins, C16FiresWhereTwoPinsEndAtOnce) {
  EXPECT_EQ(clause<CountsNoPins>("alloc p0 4KiB s0\npin p0 0\npin p0 1\nunpin 0\nunpin 1\n"),
            "C16");
}

/// Pages move from the places of p0, p1 and p3. Then p5 is where p0 was, on another page.
constexpr char kAnotherPageComes[] =
    "conf backing:pages\ndevice d0 64MiB\nalloc p0 4MiB s0\nalloc p1 16MiB s0\nalloc p2 20MiB s0\n"
    "alloc p3 20MiB s0\ngeneration p0\nfree p0\nfree p1\nfree p3\ndrain d0\nalloc p4 40MiB s0\n"
    "alloc p5 4MiB s0\nexpect-same p5 p0\ngeneration p5\n";

/// What a subject may say of generations: `kNamed` of the inner's answer, and of how often it was asked.
template <std::uint64_t (*kNamed)(std::uint64_t, std::uint64_t)>
struct NamesGenerations : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Result<std::uint64_t> backing_generation(Address address) override {
    const Result<std::uint64_t> got = inner_->backing_generation(address);
    return got.is_ok() ? Result<std::uint64_t>(kNamed(got.value(), ++asked_)) : got;
  }
  std::uint64_t asked_ = 0;
};
std::uint64_t always_one(std::uint64_t, std::uint64_t) { return 1; }
std::uint64_t another_each_time(std::uint64_t, std::uint64_t asked) { return asked; }
TEST(CheckersOfPins, Dev24FiresOnAGenerationThatDoesNotFollowTheMemory) {
  for (const char* const conf : {"", "conf backing:pages\n"}) {
    EXPECT_EQ(clause<NamesGenerations<always_one>>(
                  conf + std::string("seed 2\nalloc p0 20MiB s0\ngeneration p0\nfree p0\ntrim d0\n"
                                     "alloc p1 20MiB s0\nexpect-same p0 p1\ngeneration p1\n")),
              "DEV-24");
    EXPECT_EQ(clause<NamesGenerations<another_each_time>>(
                  conf + std::string("alloc p0 20MiB s0\npin p0 0\ngeneration p0\n"
                                     "alloc p1 4KiB s0\ngeneration p0\n")),
              "DEV-24");
  }
}

TEST(CheckersOfPins, Dev24FiresOnAGenerationThatStaysThoughAnotherPageCame) {
  EXPECT_EQ(clause<NamesGenerations<always_one>>(kAnotherPageComes), "DEV-24");
}
TEST(CheckersOfPins, Dev24FiresOnAGenerationThatChangesThoughThePageCameHome) {
  EXPECT_EQ(clause<NamesGenerations<another_each_time>>(lending_steps(14, "generation")), "DEV-24");
}

/// Passes on what `kPasses` says of each event.
template <bool (*kPasses)(const MappingEvent&)>
struct TellsSome : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  void add_mapping_observer(std::function<void(const MappingEvent&)> observer) override {
    inner_->add_mapping_observer([observer](const MappingEvent& event) {
      if (kPasses(event)) observer(event);
    });
  }
};
bool is_coming(const MappingEvent& event) { return event.change == MappingChange::kMapped; }
bool is_going(const MappingEvent& event) { return event.change == MappingChange::kUnmapping; }
TEST(CheckersOfPins, Dev24FiresWhereObserversAreNotTold) {
  for (const char* const conf : {"", "conf backing:pages\n"}) {
    const std::string ops = conf + std::string("observe\nalloc p0 20MiB s0\nfree p0\ntrim d0\n");
    EXPECT_EQ(clause<TellsSome<is_coming>>(ops), "DEV-24");
    EXPECT_EQ(clause<TellsSome<is_going>>(ops), "DEV-24");
  }
}

/// No walk shows what they do not know: the call that they are not told of is the one that fails.
TEST(CheckersOfPins, Dev24FiresBetweenWalks) {
  for (const char* const conf : {"", "conf backing:pages\n"}) {
    const std::string ops = conf + std::string("observe\nalloc p0 20MiB s0\nfree p0\ntrim d0\n");
    EXPECT_EQ(failing_op(broken<TellsSome<is_coming>>(), ops), "DEV-24 at trim d0");
    EXPECT_EQ(failing_op(broken<TellsSome<is_going>>(), ops), "DEV-24 at alloc p0 20971520 s0");
  }
  const std::string moves = "observe\n" + std::string(kAnotherPageComes);
  EXPECT_EQ(failing_op(broken<TellsSome<is_coming>>(), moves), "DEV-24 at alloc p4 41943040 s0");
}

/// Does not say that pages leave which stay mapped.
struct TellsOfNoMove : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Result<Address> allocate(Bytes size, const Stream& stream, cache::OutOfMemory* account) override {
    is_moving_ = true;
    const Result<Address> got = inner_->allocate(size, stream, account);
    is_moving_ = false;
    return got;
  }
  void add_mapping_observer(std::function<void(const MappingEvent&)> observer) override {
    inner_->add_mapping_observer([this, observer](const MappingEvent& event) {
      if (!is_moving_ || is_coming(event)) observer(event);
    });
  }
  bool is_moving_ = false;
};
TEST(CheckersOfPins, Dev24FiresWhereObserversKnowOfAPageAtTwoAddresses) {
  const spec::LockstepResult found =
      run(broken<TellsOfNoMove>(),
          "conf backing:pages\nobserve\ndevice d0 64MiB\nalloc p0 20MiB s0\nalloc p1 40MiB s0\n"
          "free p0\ndrain d0\nalloc p2 24MiB s0\n");
  EXPECT_EQ(found.divergence.clause, "DEV-24");
  EXPECT_NE(found.divergence.text.find("that it knows of at another address"), std::string::npos)
      << found.divergence.text;
}

/// Says of memory that it goes when the next event comes, or the call is over.
struct TellsLate : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  ~TellsLate() override { inner_.reset(); }  // it tells at its end
  void add_mapping_observer(std::function<void(const MappingEvent&)> observer) override {
    observer_ = std::move(observer);
    inner_->add_mapping_observer([this](const MappingEvent& event) {
      tell();
      if (is_going(event)) late_ = event;
      else observer_(event);
    });
  }
  Status trim(DeviceId device) override {
    const Status got = inner_->trim(device);
    tell();
    return got;
  }
  void tell() {
    if (late_) observer_(*late_);
    late_.reset();
  }
  std::function<void(const MappingEvent&)> observer_;
  std::optional<MappingEvent> late_;
};
TEST(CheckersOfPins, Dev24FiresWhereObserversAreToldTooLate) {
  for (const char* const conf : {"", "conf backing:pages\n"})
    EXPECT_EQ(
        clause<TellsLate>(conf + std::string("observe\nalloc p0 20MiB s0\nfree p0\ntrim d0\n")),
        "DEV-24");
}

/// Says everything twice.
struct TellsTwice : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  void add_mapping_observer(std::function<void(const MappingEvent&)> observer) override {
    inner_->add_mapping_observer([observer](const MappingEvent& event) {
      observer(event);
      observer(event);
    });
  }
};
TEST(CheckersOfPins, Dev24FiresWhereObserversAreToldTwice) {
  EXPECT_EQ(clause<TellsTwice>("observe\nalloc p0 4KiB s0\n"), "DEV-24");
}

/// The account of an out-of-memory forgets what is pinned.
struct ForgetsPinnedBytes : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Result<Address> allocate(Bytes size, const Stream& stream, cache::OutOfMemory* account) override {
    const Result<Address> got = inner_->allocate(size, stream, account);
    account->pinned = Bytes{};
    return got;
  }
};
TEST(CheckersOfPins, Dev14FiresOnPinnedBytesThatAreNotNamed) {
  EXPECT_EQ(clause<ForgetsPinnedBytes>(
                "device d0 64MiB\nalloc p0 20MiB s0\npin p0 0\nalloc p1 60MiB s0\n"),
            "DEV-14");
}

}  // namespace
}  // namespace ashlar::props
