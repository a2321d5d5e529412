// Record, validate and replay, each in lockstep with its model; and that the checks fire.
//
// Imitates: training steps that equal the recorded one, nearly equal it, or are quite different, over
// one segment, with an upstream that fails. Does not prove: anything about several threads
// (router_test.cc), or about a real device (the tool's --check).
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <ashlar/plan/plan_file.h>
#include <ashlar/plan/planner.h>
#include <ashlar/replay/recorder.h>
#include <ashlar/replay/replay.h>
#include <ashlar/replay/validation.h>

#include "props/adapters/replay_subject.h"
#include "props/plan/replay_case.h"
#include "spec/ops/random.h"
#include "spec/plan/check.h"

namespace ashlar {
namespace {

using props::ReplayOutcome;
using replay::Recording;
using replay::Replay;
using replay::ReplayCounts;
using spec::FakeUpstream;
using spec::LedgerUpstream;

const Stream kOwn{StreamHandle{1}, StreamId{1}, DeviceId{0}};
const Stream kOther{StreamHandle{2}, StreamId{2}, DeviceId{0}};

int cases(int usual) {
  const char* const asked = std::getenv("ASHLAR_PLAN_CASES");
  return asked == nullptr ? usual : std::atoi(asked);
}

/// A positive event allocates that many bytes; a negative event n frees allocation ~n.
Recording recording_of(const std::vector<std::int64_t>& events) {
  Recording recording;
  for (const std::int64_t event : events) {
    if (event > 0) {
      recording.allocations.push_back(
          {Bytes{static_cast<std::uint64_t>(event)}, recording.events, replay::kNeverFreed, false});
    } else {
      recording.allocations[static_cast<std::size_t>(~event)].freed = recording.events;
    }
    ++recording.events;
  }
  return recording;
}

plan::Plan plan_of(const Recording& recording, Bytes alignment = replay::kReplayAlignment) {
  plan::PlanOptions options;
  options.work = 1'000'000;
  return plan::make_plan(replay::problem_of(recording, alignment), options);
}

spec::ReplayLockstep::Setting setting_of(const Recording& recording,
                                         Bytes alignment = replay::kReplayAlignment) {
  return {kOwn, recording, plan_of(recording, alignment), alignment};
}

std::unique_ptr<Replay> replay_of(Upstream& upstream, const Recording& recording) {
  auto made = Replay::create(upstream, kOwn, recording, plan_of(recording));
  EXPECT_TRUE(made.is_ok()) << made.status().why();
  return std::move(made).value();
}

std::string text_of(const spec::Divergence& divergence) {
  return divergence.clause + ": " + divergence.text;
}

/// Replays the recorded events in lockstep and expects that all are served. Returns the plan's peak.
Bytes replay_exactly(const std::vector<std::int64_t>& events) {
  const spec::ReplayLockstep::Setting setting = setting_of(recording_of(events), 1_B);
  EXPECT_FALSE(spec::check_answer(replay::problem_of(setting.recording, 1_B), setting.plan));
  FakeUpstream upstream(1_B);
  spec::ReplayLockstep lockstep(upstream, setting, props::replay_factory());
  std::vector<Address> at;
  for (const std::int64_t event : events) {
    if (event > 0) {
      at.push_back(lockstep.allocate(Bytes{static_cast<std::uint64_t>(event)}, kOwn).value());
    } else {
      EXPECT_TRUE(lockstep.free(at[static_cast<std::size_t>(~event)]).is_ok());
    }
  }
  EXPECT_EQ(lockstep.counts().served, at.size());
  lockstep.finish();
  EXPECT_TRUE(lockstep.verdict().is_good()) << text_of(lockstep.verdict().first());
  return setting.plan.spaces[0].peak;
}

// A bug of the planner that this one follows (row REC-2): it erased a free block and then read it, at
// every reuse of freed bytes.
TEST(ReplayRegression, FreedBytesAreUsedAgain) {
  EXPECT_EQ(replay_exactly({64, ~0, 64, ~1, 32, ~2, 96, ~3}), 96_B);
}

// Another: it kept one free block for each size. Of two free blocks of one size the second was lost,
// and handing out one of them removed the record of the other.
TEST(ReplayRegression, TwoFreeBlocksOfOneSizeAreBothUsedAgain) {
  EXPECT_EQ(replay_exactly({64, 16, 64, 16, 64, ~0, ~2, ~4, 64, 64, 64, ~5, ~6, ~7, ~1, ~3}),
            224_B);
}

TEST(ReplayProperty, EveryDeviationIsServedAndCountedAsTheModelSays) {
  spec::Random random(1);
  ReplayCounts all;
  std::uint64_t differences = 0;
  for (int i = 0; i < cases(4'000); ++i) {
    std::vector<std::uint8_t> bytes(2 + random.below(300));
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random.next());
    if (random.one_in(2))
      bytes[1] =
          static_cast<std::uint8_t>((bytes.size() - 2) / 2 - random.below(bytes.size() / 4 + 1));
    const ReplayOutcome outcome =
        run_replay_case(props::replay_case_of(bytes), props::replay_factory());
    ASSERT_EQ(outcome.divergence.clause, "") << outcome.divergence.text << ", case " << i;
    differences += outcome.differences;
    for (const replay::ReplayCounter& counter : replay::kReplayCounters)
      all.*counter.count += outcome.counts.*counter.count;
  }
  // Every kind of deviation occurred often.
  EXPECT_GT(differences, 50u);
  for (const replay::ReplayCounter& counter : replay::kReplayCounters)
    EXPECT_GT(all.*counter.count, 50u) << counter.name;
}

// R6.
TEST(ReplayProperty, ARunEqualToTheRecordingIsServedFromTheSegmentStepAfterStep) {
  spec::Random random(2);
  for (int i = 0; i < cases(1'000); ++i) {
    // No edits, and everything is freed: live memory would be in the way of the next step.
    props::ReplayCase one;
    one.alignment = Bytes{std::uint64_t{1} << random.below(10)};
    std::vector<std::uint32_t> live;
    for (std::uint64_t op = random.below(60); op > 0; --op) {
      if (live.size() == props::kReplaySlots || (!live.empty() && random.one_in(2))) {
        const std::size_t which = random.below(live.size());
        one.run.push_back({props::RunOp::Kind::kFree, live[which], 0_B, 0});
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(which));
        continue;
      }
      std::uint32_t slot = 0;
      while (std::find(live.begin(), live.end(), slot) != live.end()) ++slot;
      live.push_back(slot);
      one.run.push_back({props::RunOp::Kind::kAllocate, slot, Bytes{1 + random.below(5) * 100}, 0});
    }
    for (const std::uint32_t slot : live)
      one.run.push_back({props::RunOp::Kind::kFree, slot, 0_B, 0});
    one.steps.assign(3, one.run);
    const ReplayOutcome outcome = run_replay_case(one, props::replay_factory());
    ASSERT_EQ(outcome.divergence.clause, "") << outcome.divergence.text;
    ReplayCounts expected;
    expected.served = 3 * outcome.managed;
    ASSERT_EQ(outcome.counts, expected) << "case " << i;
    ASSERT_EQ(outcome.differences, 0u);
  }
}

TEST(RecorderTest, RecordsSizesInOrderAndLifetimesAsEvents) {
  FakeUpstream upstream(1_B);
  const Address outside = upstream.allocate(8_B, kOwn).value();
  replay::Recorder recorder(upstream, kOwn);
  const Address a = recorder.allocate(64_B, kOwn).value();
  EXPECT_TRUE(recorder.allocate(0_B, kOwn).value().is_null());
  EXPECT_TRUE(recorder.free(outside).is_ok());
  const Address b = recorder.allocate(32_B, kOwn).value();
  const Address elsewhere = recorder.allocate(16_B, kOther).value();
  EXPECT_TRUE(recorder.owns(a));
  EXPECT_FALSE(recorder.owns(elsewhere));
  EXPECT_TRUE(recorder.free(a).is_ok());
  EXPECT_EQ(recorder.free(a).code(), Code::kUnknownPointer);
  const Address c = recorder.allocate(8_B, kOwn).value();
  EXPECT_TRUE(recorder.record_use(c, kOther).is_ok());
  EXPECT_TRUE(recorder.record_use(b, kOwn).is_ok());
  EXPECT_TRUE(recorder.free(c).is_ok());
  const Recording recording = recorder.take().value();
  const Recording expected{
      {{64_B, 0, 2, false}, {32_B, 1, replay::kNeverFreed, false}, {8_B, 3, 4, true}}, 5};
  EXPECT_EQ(recording, expected);
  EXPECT_EQ(replay::problem_of(recording).buffers.size(), 1u);
  // The next recording does not include memory of the one before.
  EXPECT_TRUE(recorder.free(b).is_ok());
  EXPECT_EQ(recorder.take().value(), Recording{});
}

TEST(RecordingTest, ARecordingThatNoRunCanMakeIsRefused) {
  EXPECT_TRUE(replay::check_recording(recording_of({64, 32, ~0, ~1})).is_ok());
  const auto refused = [](Recording recording, Code code = Code::kInvalidArgument) {
    EXPECT_EQ(replay::check_recording(recording).code(), code);
    FakeUpstream upstream(1_B);
    EXPECT_EQ(Replay::create(upstream, kOwn, recording, {}).code(), code);
  };
  refused({{{0_B, 0, 1, false}}, 2});
  refused({{{8_B, 1, 2, false}}, 3});
  refused({{{8_B, 0, 0, false}}, 1});
  refused({{{8_B, 0, 1, false}, {8_B, 1, 2, false}}, 3});
  refused({{{8_B, 1, 2, false}, {8_B, 0, 3, false}}, 4});
  refused({{{8_B, 0, 9, false}}, 2});
  refused({{{8_B, 0, std::numeric_limits<plan::Time>::max(), false}}, 2});
  refused({{{8_B, 0, 1, false}}, -1});
  refused({{{8_B, 0, 1, false}}, 3});
  refused({{{plan::kPlanBytesMax, 0, 1, false}}, 2}, Code::kSizeOverflow);
  refused({{{Bytes::max(), 0, 1, false}, {Bytes::max(), 2, 3, false}}, 4}, Code::kSizeOverflow);
}

TEST(ValidationTest, NamesTheFirstAllocationThatDiffersAndHow) {
  const Recording recorded = recording_of({64, 32, ~0, 16, ~2, ~1});
  const auto says = [&](const Recording& run) {
    const auto difference = replay::first_difference(recorded, run);
    return difference ? text_of(*difference) : "";
  };
  EXPECT_EQ(says(recorded), "");
  EXPECT_EQ(says(recording_of({64, 33, ~0, 17, ~2, ~1})),
            "event 1: allocation 1 has 33 bytes; recorded with 32 bytes");
  EXPECT_EQ(says(recording_of({64, 32, ~1, 16, ~2, ~0})),
            "event 2: allocation 1, of 32 bytes, is freed earlier than recorded");
  EXPECT_EQ(says(recording_of({64, 32, 16, ~0, ~2, ~1})),
            "event 2: allocation 0, of 64 bytes, is not freed here, as recorded");
  EXPECT_EQ(says(recording_of({64, 32, ~0})),
            "event 3: allocation 2, of 16 bytes, was not asked for");
  EXPECT_EQ(says(recording_of({64, 32, ~0, 16, ~2, ~1, 8})),
            "event 6: allocation 3, of 8 bytes, is one more than was recorded");
  Recording used = recorded;
  used.allocations[2].is_used_elsewhere = true;
  EXPECT_EQ(says(used),
            "event 3: allocation 2, of 16 bytes, is used by another stream in one run only");
}

TEST(ReplayTest, TakesOnlyAValidPlanOfItsRecording) {
  FakeUpstream upstream(1_B);
  const Recording recording = recording_of({64, 32, ~0, ~1});
  const plan::Plan good = plan_of(recording);
  const auto code = [&](const plan::Plan& plan, Bytes alignment = replay::kReplayAlignment) {
    return Replay::create(upstream, kOwn, recording, plan, alignment).code();
  };
  EXPECT_EQ(code(good), Code::kOk);
  EXPECT_EQ(code(good, 1024_B), Code::kInvalidArgument);
  EXPECT_EQ(code(good, 48_B), Code::kInvalidArgument);
  EXPECT_EQ(code(good, 0_B), Code::kInvalidArgument);
  EXPECT_EQ(code(good, replay::kReplayAlignmentMax * 2), Code::kInvalidArgument);
  plan::Plan bad = good;
  bad.offsets[1] = bad.offsets[0];
  EXPECT_EQ(code(bad), Code::kInvalidArgument);
  bad = good;
  bad.offsets.pop_back();
  EXPECT_EQ(code(bad), Code::kInvalidArgument);
  bad = good;
  bad.spaces[0].peak = 64_B;
  EXPECT_EQ(code(bad), Code::kInvalidArgument);
  bad = good;
  bad.spaces.clear();
  EXPECT_EQ(code(bad), Code::kInvalidArgument);
}

// Imitates a program that planned yesterday: it records its first step, and reading the plan file
// shows whether yesterday's plan is of that step.
TEST(ReplayTest, APlanFileIsReadForItsOwnRecordingOnly) {
  const Recording recording = recording_of({64, 32, ~0, 64, ~1, ~2});
  const plan::Problem problem = replay::problem_of(recording);
  const std::string file = plan::format_plan(plan_of(recording), problem).value();
  std::string error;
  const Result<plan::Plan> plan = plan::parse_plan(file, "step.plan", problem, &error);
  ASSERT_TRUE(plan.is_ok()) << error;
  FakeUpstream upstream(1_B);
  EXPECT_TRUE(Replay::create(upstream, kOwn, recording, plan.value()).is_ok());
  const plan::Problem other = replay::problem_of(recording_of({64, 33, ~0, 64, ~1, ~2}));
  EXPECT_EQ(plan::parse_plan(file, "step.plan", other, &error).code(), Code::kMalformed);
  EXPECT_EQ(error, "step.plan: made for another problem: other buffers, or another alignment");
}

TEST(ReplayTest, WithoutASegmentEverythingFallsBackUntilARewindGetsOne) {
  FakeUpstream upstream(1_B);
  upstream.fail(1);
  const auto replay = replay_of(upstream, recording_of({64, ~0}));
  EXPECT_TRUE(replay->base().is_null());
  Address a = replay->allocate(64_B, kOwn).value();
  EXPECT_FALSE(replay->owns(a));
  EXPECT_TRUE(replay->free(a).is_ok());
  EXPECT_EQ(replay->counts().no_segment, 1u);
  upstream.fail(1);
  EXPECT_EQ(replay->rewind().code(), Code::kOutOfMemory);
  EXPECT_TRUE(replay->rewind().is_ok());
  a = replay->allocate(64_B, kOwn).value();
  EXPECT_TRUE(replay->owns(a));
  EXPECT_TRUE(replay->free(a).is_ok());
}

TEST(ReplayTest, TheSegmentStaysUpstreamWhilePlannedMemoryIsLive) {
  FakeUpstream fake(1_B);
  LedgerUpstream upstream(fake);
  replay_of(upstream, recording_of({64, ~0}));
  EXPECT_TRUE(upstream.live().empty());
  auto replay = replay_of(upstream, recording_of({64, ~0}));
  static_cast<void>(replay->allocate(64_B, kOwn));
  replay.reset();
  EXPECT_EQ(upstream.live().size(), 1u);
}

TEST(ReplayTest, UpstreamKnowsNoPlannedAddress) {
  FakeUpstream fake(512_B);
  LedgerUpstream upstream(fake);
  const auto replay = replay_of(upstream, recording_of({64, ~0}));
  const Address a = replay->allocate(64_B, kOwn).value();
  // A free that goes upstream by mistake is refused, and does not free the segment.
  EXPECT_EQ(upstream.free(a).code(), Code::kUnknownPointer);
  EXPECT_EQ(replay->free(upstream.live().begin()->first).code(), Code::kUnknownPointer);
  EXPECT_TRUE(replay->free(a).is_ok());
}

TEST(ReplayTest, MemoryAnotherStreamUsedIsGivenOutAgainOnlyInANewSegment) {
  FakeUpstream fake(1_B);
  LedgerUpstream upstream(fake);
  const auto replay = replay_of(upstream, recording_of({64, ~0, 64, ~1}));
  const Address a = replay->allocate(64_B, kOwn).value();
  EXPECT_TRUE(replay->record_use(a, kOther).is_ok());
  EXPECT_TRUE(replay->free(a).is_ok());
  EXPECT_EQ(replay->free(a).code(), Code::kDoubleFree);
  const Address b = replay->allocate(64_B, kOwn).value();
  EXPECT_FALSE(replay->owns(b));
  EXPECT_TRUE(replay->free(b).is_ok());
  EXPECT_EQ(replay->counts().in_use, 1u);
  upstream.take_calls();
  EXPECT_TRUE(replay->rewind().is_ok());
  EXPECT_EQ(upstream.take_calls().size(),
            2u);  // the segment went back, with its use, and a new one came
  EXPECT_TRUE(replay->owns(replay->allocate(64_B, kOwn).value()));
}

/// A replay with a planted bug.
class FaultyReplay final : public spec::ReplaySubject, private Upstream {
 public:
  enum class Bug {
    kNone,
    kElsewhere,
    kAsksUpstreamToo,
    kKeepsTheSegment,
    kMiscounts,
    kForgetsAFree,
    kNeverRewinds
  };
  FaultyReplay(std::unique_ptr<spec::ReplaySubject> inner, Upstream& upstream, Bug bug)
      : inner_(std::move(inner)), upstream_(upstream), bug_(bug) {}
  ~FaultyReplay() override {
    if (bug_ == Bug::kKeepsTheSegment) static_cast<void>(inner_->calls().allocate(64_B, kOwn));
  }
  Upstream& calls() override { return *this; }
  Status rewind() override { return bug_ == Bug::kNeverRewinds ? Status::ok() : inner_->rewind(); }
  replay::ReplayCounts counts() const override {
    replay::ReplayCounts counts = inner_->counts();
    if (bug_ == Bug::kMiscounts) ++counts.in_use;
    return counts;
  }
  Address base() const override { return inner_->base(); }

 private:
  Result<Address> allocate(Bytes size, const Stream& stream) noexcept override {
    if (bug_ == Bug::kAsksUpstreamToo) static_cast<void>(upstream_.allocate(1_B, stream));
    const Result<Address> address = inner_->calls().allocate(size, stream);
    return bug_ == Bug::kElsewhere ? Result<Address>(address.value() + 512_B) : address;
  }
  Status free(Address address) noexcept override {
    return bug_ == Bug::kForgetsAFree ? Status::ok() : inner_->calls().free(address);
  }
  Status record_use(Address address, const Stream& stream) noexcept override {
    return inner_->calls().record_use(address, stream);
  }

  std::unique_ptr<spec::ReplaySubject> inner_;
  Upstream& upstream_;
  Bug bug_;
};

std::string clause_with(FaultyReplay::Bug bug) {
  FakeUpstream upstream(512_B);
  const auto factory = [&](Upstream& ledger, const spec::ReplayLockstep::Setting& setting) {
    return std::make_unique<FaultyReplay>(props::replay_factory()(ledger, setting), ledger, bug);
  };
  spec::ReplayLockstep lockstep(upstream, setting_of(recording_of({64, 32, ~0, 64, ~1, ~2})),
                                factory);
  for (int step = 0; step < 2; ++step) {
    const Address a = lockstep.allocate(64_B, kOwn).value();
    const Address b = lockstep.allocate(32_B, kOwn).value();
    static_cast<void>(lockstep.free(a));
    const Address c = lockstep.allocate(64_B, kOwn).value();
    static_cast<void>(lockstep.free(b));
    static_cast<void>(lockstep.free(c));
    lockstep.rewind();
  }
  lockstep.finish();
  return lockstep.verdict().first().clause;
}

/// Hands out the same memory again when asked for 7 bytes.
class TwiceUpstream final : public Upstream {
 public:
  Result<Address> allocate(Bytes size, const Stream& stream) noexcept override {
    if (size == 7_B) return last_;
    last_ = inner_.allocate(size, stream).value();
    return last_;
  }
  Status free(Address address) noexcept override { return inner_.free(address); }
  Status record_use(Address address, const Stream& stream) noexcept override {
    return inner_.record_use(address, stream);
  }

 private:
  FakeUpstream inner_{512_B};
  Address last_;
};

TEST(ReplayCheckers, NoticeMemoryThatIsHandedOutTwice) {
  TwiceUpstream upstream;
  spec::ReplayLockstep lockstep(upstream, setting_of(recording_of({64, ~0})),
                                props::replay_factory());
  static_cast<void>(lockstep.allocate(100_B, kOther));
  EXPECT_EQ(lockstep.verdict().first().clause, "");
  static_cast<void>(lockstep.allocate(7_B, kOther));
  EXPECT_EQ(lockstep.verdict().first().clause, "R1");
}

TEST(ReplayCheckers, NoticeEveryPlantedBug) {
  using Bug = FaultyReplay::Bug;
  EXPECT_EQ(clause_with(Bug::kNone), "");
  EXPECT_EQ(clause_with(Bug::kElsewhere), "R2");
  EXPECT_EQ(clause_with(Bug::kAsksUpstreamToo), "R3");
  EXPECT_EQ(clause_with(Bug::kKeepsTheSegment), "R5");
  EXPECT_EQ(clause_with(Bug::kMiscounts), "R4");
  EXPECT_EQ(clause_with(Bug::kForgetsAFree), "R3");  // goes upstream, where the model serves
  EXPECT_EQ(clause_with(Bug::kNeverRewinds), "R3");
}

}  // namespace
}  // namespace ashlar
