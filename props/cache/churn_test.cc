// Worlds that churn for many rounds, and what may not pile up in them (C29); steps that repeat
// until they need no driver memory call (C20).
// Imitated: servers and training loops that run for days, with streams, captures and handles that
// come and go. ASHLAR_CHURN_ROUNDS makes the worlds longer.
// Not proved: anything about host memory or processor time, nor about worlds that do not repeat. Shapes that are not
// is_known_bounded() are judged by every clause but C29; the reason stands there.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "props/cache/planted_subjects.h"
#include "props/sequences/churn_sequences.h"
#include "spec/lockstep/cache_rounds.h"
#include "spec/ops/opcode_table.h"
#include "spec/ops/text.h"
#include "spec/reduce/reduce.h"

namespace ashlar::props {
namespace {

std::uint32_t rounds_or(std::uint32_t usual) {
  const char* const text = std::getenv("ASHLAR_CHURN_ROUNDS");
  return text == nullptr ? usual : static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10));
}

/// Builds that walk the pool at each change run a quarter of the worlds, of every shape all the same.
constexpr std::uint64_t kSeedsFactor = ASHLAR_VALIDATION ? 1 : 4;

TEST(Churn, TheBooksStayBoundedWhereStreamsComeAndGo) {
  unsigned worlds = 0;
  for (std::uint64_t seed = 0; seed < 3200 * kSeedsFactor; ++seed) {
    const ChurnShape shape = churn_shape_from(seed);
    if (!is_known_bounded(shape)) continue;
    ++worlds;
    ASSERT_EQ(judge_rounds(churning_round(shape, seed), rounds_or(60), long_run_options()), "")
        << "seed " << seed;
  }
  EXPECT_GE(worlds, 200u);
}

/// So few rounds that nothing is said of growth (C29).
constexpr std::uint32_t kFewRounds = 20;
static_assert(kFewRounds < spec::kRoundsMin);

TEST(Churn, WorldsWhoseBooksMayGrowKeepEveryOtherClause) {
  for (std::uint64_t seed = 0; seed < 640 * kSeedsFactor; ++seed) {
    const ChurnShape shape = churn_shape_from(seed);
    if (is_known_bounded(shape)) continue;
    ASSERT_EQ(judge_rounds(churning_round(shape, seed), kFewRounds, long_run_options()), "")
        << "seed " << seed;
  }
}

TEST(Churn, TheBooksStayBoundedOverHundredsOfRounds) {
  for (const std::uint64_t seed : {0u, 4u}) {
    const spec::OpFile round = churning_round(churn_shape_from(seed), seed + 1280);
    EXPECT_EQ(judge_rounds(round, rounds_or(600), long_run_options()), "") << "seed " << seed;
  }
}

TEST(Churn, AStepThatRepeatsSettles) {
  for (std::uint64_t seed = 0; seed < 12'800; ++seed) {
    const ChurnShape shape = churn_shape_from(seed);
    if (!has_to_settle(shape)) continue;
    const spec::OpFile round = settling_round(shape, seed);
    ASSERT_TRUE(spec::may_settle(round)) << "seed " << seed;
    ASSERT_EQ(judge_rounds(round, spec::kSettledRounds, long_run_options()), "") << "seed " << seed;
  }
}

/// Found in soak. Where polls of pending blocks came the more rarely the more polls of earlier rounds had been in
/// vain, each of these had blocks come back in another round than the step's own frees would have it.
/// Places alternated, so the stream that lacks memory borrowed in every other round, and grew once it had borrowed
/// twice (life-of-a-miss.md): in the eleventh round.
constexpr const char* kLendsInTurns =
    "conf reuse:ordered,backing:segments\nstream s1 d0\nstream s2 d0\nalloc p0 5857249 s1\n"
    "alloc p8 1 s1\nalloc p9 20971520 s2\nkernel s2 p0 w\nfree p9\nfree p0\n"
    "alloc p2 7695159 s1\nfree-on p8 s1\nalloc p3 1 s1\nalloc p5 15367438 s1\nalloc p6 1 s1\n"
    "free-on p5 s2\nfree p6\nfree-on p3 s2\nfree p2\n";
/// The only loan of all rounds is in the first, and s0 allocates once in each of the others: it polled in the 65th,
/// and got another address from then on.
constexpr const char* kLendsOnce =
    "stream s1 d0\nalloc p7 725952 s0\nalloc p8 905062 s1\nfree p7\nfree p8\n"
    "alloc p10 16582 s1\nfree p10\nalloc p1 899968 s0\nalloc p2 1048577 s0\n"
    "alloc p3 1048577 s1\nalloc p14 1048577 s1\nalloc p15 1048577 s0\n";

/// Found in soak. Two borrowings for each growth: in every other round s1 borrows for p8, and it grew in the eleventh.
constexpr const char* kBorrowsForOneRequest =
    "conf reuse:ordered,backing:pages\nstream s1 d0\nstream s2 d0\nalloc p0 5242880 s0\nfree p0\n"
    "alloc p1 1048577 s1\nkernel s2 p1 r\nfree-on p1 s1\nalloc p2 4119400 s1\n"
    "alloc p8 2377231 s1\nfree p8\nfree p2\n";

TEST(Churn, AStepWhoseStreamsLendSettlesByTheTenthRound) {
  for (const char* const ops : {kLendsInTurns, kLendsOnce, kBorrowsForOneRequest}) {
    spec::OpFile round;
    spec::TextError error;
    ASSERT_TRUE(spec::parse_ops(std::string("ashlar-ops 1 cache\n") + ops, &round, &error))
        << error.reason;
    EXPECT_EQ(judge_rounds(round, 4 * spec::kSettledRounds, long_run_options()), "") << ops;
  }
  // Drawn steps that made a driver memory call after the tenth round.
  for (const std::uint64_t seed : {309'587u, 313'949u, 362'305u, 409'937u}) {
    const spec::OpFile round = settling_round(churn_shape_from(seed), seed);
    EXPECT_EQ(judge_rounds(round, spec::kSettledRounds, long_run_options()), "") << "seed " << seed;
  }
}

// Planted bugs. Walks are so rare that no other clause sees them first.

template <class Broken>
spec::CacheLockstep::Options rarely_walked() {
  spec::CacheLockstep::Options options = broken<Broken>();
  options.walk_every = options.stats_every = 1u << 30;
  return options;
}

constexpr std::uint32_t kRounds = 90;

/// What the rounds are reported for, as "clause: figure"; the sound allocator must pass.
std::string reported(const spec::CacheLockstep::Options& options, const std::string& ops) {
  spec::OpFile file;
  spec::TextError error;
  EXPECT_TRUE(spec::parse_ops("ashlar-ops 1 cache\n" + ops, &file, &error)) << error.reason;
  EXPECT_EQ(judge_rounds(file, kRounds, long_run_options()), "") << ops;
  const spec::Divergence found = spec::run_rounds(file, kRounds, options).divergence;
  const std::size_t figure = found.text.find(": ");
  if (figure == std::string::npos) return found.clause;
  return found.clause + found.text.substr(figure, found.text.find(':', figure + 2) - figure);
}

constexpr const char* kComesAndGoes =
    "conf reuse:own\nstream s10 d0\nalloc p0 512 s10\nfree p0\nretire s10\n";

struct KeepsARecordOfEveryStream : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  std::set<std::uint64_t> named;
  Result<Address> allocate(Bytes size, const Stream& stream, cache::OutOfMemory* account) override {
    named.insert(stream.id.value());
    return inner_->allocate(size, stream, account);
  }
  Status stats(DeviceId device, cache::DeviceStats* out) override {
    const Status got = ForwardingSubject::stats(device, out);
    out->streams += named.size();
    return got;
  }
};
struct KeepsAnEventOfEveryStream : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status retire_stream(const Stream& stream) override {
    EXPECT_TRUE(device_for(device::CallKind::kEventCreate).event_create().is_ok());
    return inner_->retire_stream(stream);
  }
};
struct KeepsAPendingBlockOfEveryStream : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  std::uint64_t kept = 0;
  Status retire_stream(const Stream& stream) override {
    return ++kept, inner_->retire_stream(stream);
  }
  Status stats(DeviceId device, cache::DeviceStats* out) override {
    const Status got = ForwardingSubject::stats(device, out);
    out->active[0].current += kept;
    return got;
  }
};
struct KeepsMemoryAtEveryAllocation : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Result<Address> allocate(Bytes size, const Stream& stream, cache::OutOfMemory* account) override {
    // As long as the request's own segment would be.
    take_segment(20_MiB);
    return inner_->allocate(size, stream, account);
  }
};
struct AsksMoreAtEveryTrim : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  unsigned trims = 0;
  Status trim(DeviceId device) override {
    ++trims;
    for (unsigned i = 0; i < 2 * trims; ++i)
      static_cast<void>(device_for(device::CallKind::kMemoryInfo).memory_info());
    return inner_->trim(device);
  }
};
TEST(Churn, C29FiresOnEachFigureThatGrows) {
  EXPECT_EQ(reported(rarely_walked<KeepsARecordOfEveryStream>(), kComesAndGoes),
            "C29: records of streams");
  EXPECT_EQ(reported(rarely_walked<KeepsAnEventOfEveryStream>(), kComesAndGoes),
            "C29: events held");
  EXPECT_EQ(reported(rarely_walked<KeepsAPendingBlockOfEveryStream>(), kComesAndGoes),
            "C29: pending blocks");
  EXPECT_EQ(reported(rarely_walked<KeepsMemoryAtEveryAllocation>(),
                     "conf backing:segments\ndevice d0 64GiB\nalloc p0 20MiB s0\nfree p0\n"),
            "C29: reserved bytes");
  EXPECT_EQ(
      reported(rarely_walked<AsksMoreAtEveryTrim>(), std::string(kComesAndGoes) + "trim d0\n"),
      "C29: device calls in a round");
}

TEST(Churn, C29FiresOnMemoryOfRetiredStreamsThatNeverComesBackAndItReduces) {
  // Memory of a retired stream stays, each time anew: its work is never known done.
  using Leaks = NeverKnowsDone<kDefaultSettings>;
  spec::OpFile round = churning_round(churn_shape_from(0), 1);
  // The subject has settings of its own.
  ASSERT_EQ(round.ops.front().slot, spec::slot::kConf);
  round.ops.front().text = in_segments(kDefaultSettings);
  const auto clause_of = [](const spec::OpFile& file) {
    return spec::run_rounds(file, kRounds, rarely_walked<Leaks>()).divergence.clause;
  };
  const spec::Reduction reduced = spec::reduce_ops(round, clause_of);
  EXPECT_EQ(reduced.clause, "C29");
  EXPECT_TRUE(reduced.is_minimal);
  EXPECT_LE(reduced.file.ops.size(), 5u) << spec::print_ops(reduced.file);
}

/// Serves no allocation from memory that was there before.
struct AlwaysGrows : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  std::size_t allocations = 0;
  Result<Address> allocate(Bytes size, const Stream& stream, cache::OutOfMemory* account) override {
    std::vector<Address> held;
    for (std::size_t i = 0; i < allocations; ++i)
      held.push_back(inner_->allocate(size, stream, account).value());
    ++allocations;
    const Result<Address> got = inner_->allocate(size, stream, account);
    for (const Address address : held) EXPECT_TRUE(inner_->free(address).is_ok());
    return got;
  }
};
TEST(Churn, C20FiresOnAStepThatAsksTheDriverInEveryRound) {
  spec::OpFile file;
  spec::TextError error;
  ASSERT_TRUE(spec::parse_ops(
      "ashlar-ops 1 cache\nconf backing:segments\nalloc p0 20MiB s0\nfree p0\n", &file, &error));
  // So few rounds that nothing is said of growth (C29).
  const spec::LockstepResult result =
      spec::run_rounds(file, spec::kSettledRounds, rarely_walked<AlwaysGrows>());
  EXPECT_EQ(result.divergence.clause, "C20");
  EXPECT_EQ(result.divergence.text,
            "device 0: round 11 of a step that repeats made 1 driver memory calls and 0 waits");
}

/// Keeps 512 bytes of every round.
struct MarchesOn : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Result<Address> allocate(Bytes size, const Stream& stream, cache::OutOfMemory* account) override {
    EXPECT_TRUE(inner_->allocate(512_B, stream, account).is_ok());
    return inner_->allocate(size, stream, account);
  }
};
TEST(Churn, C20FiresOnAStepThatGetsOtherAddressesInEveryRound) {
  spec::OpFile file;
  spec::TextError error;
  ASSERT_TRUE(spec::parse_ops("ashlar-ops 1 cache\nalloc p0 1024 s0\nfree p0\n", &file, &error));
  const spec::LockstepResult result =
      spec::run_rounds(file, spec::kSettledRounds, rarely_walked<MarchesOn>());
  EXPECT_EQ(result.divergence.clause, "C20");
  EXPECT_EQ(result.divergence.text,
            "device 0: the addresses of a step that repeats are in no cycle of 5 rounds after "
            "round 10");
}

TEST(Churn, ASettledStepMakesNoWaitAndItsAddressesMayAlternate) {
  std::vector<spec::RoundFigures> rounds(spec::kSettledRounds);
  const auto judged = [&] {
    return spec::unsettled_round(rounds, {spec::kSettledAfter, spec::kSettledAfter});
  };
  for (std::size_t i = 0; i < rounds.size(); ++i) rounds[i].addresses = i % 5;
  rounds[spec::kSettledAfter - 1].waits = rounds[spec::kSettledAfter - 1].addresses = 9;
  EXPECT_EQ(judged(), "");
  for (std::size_t i = 0; i < rounds.size(); ++i) rounds[i].addresses = i % 6;
  EXPECT_NE(judged(), "");
  for (spec::RoundFigures& round : rounds) round.addresses = 0;
  rounds.back().addresses = 1;
  EXPECT_NE(judged(), "");
  rounds.back().addresses = 0;
  rounds[spec::kSettledAfter].waits = 1;
  EXPECT_EQ(judged(), "round 11 of a step that repeats made 0 driver memory calls and 1 waits");
}

TEST(Churn, ARiseThatEndsIsNoGrowth) {
  std::vector<spec::RoundFigures> rounds(90);
  for (std::size_t i = 0; i < rounds.size(); ++i) rounds[i].now.fill(std::min<std::size_t>(i, 40));
  EXPECT_EQ(spec::grown_figure(rounds), "");
  for (std::size_t i = 0; i < rounds.size(); ++i) rounds[i].now.fill(i);
  EXPECT_NE(spec::grown_figure(rounds), "");
  rounds.back().is_gone = true;
  EXPECT_EQ(spec::grown_figure(rounds), "");
}

}  // namespace
}  // namespace ashlar::props
