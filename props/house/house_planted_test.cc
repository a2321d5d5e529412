// Planted bugs for the clauses whose own suites state their check inline: each relation is a
// function here, must hold for the real thing, and must fire on one that breaks it.
// spec/contract.md names these tests.
//
// Imitates: an allocator that gives zero bytes an address, one that makes a device call under a
// lock, one that serves a forked child, a planner that does worse with more, a planner that
// depends on the hour, a validation that names the wrong event. Does not prove: that no other bug
// slips through.
#include <ashlar/base/spin_lock.h>
#include <ashlar/cache/caching_allocator.h>
#include <ashlar/device/host_device.h>
#include <ashlar/plan/planner.h>
#include <ashlar/replay/validation.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "props/cache/forwarding_subject.h"
#include "props/plan/generate.h"
#include "spec/lockstep/cache_lockstep.h"
#include "spec/model/device_witness.h"
#include "spec/ops/random.h"
#include "spec/ops/text.h"
#include "spec/plan/brute_force.h"
#include "spec/replay/recording_model.h"

namespace ashlar::props {
namespace {

// DEV-20: zero bytes give the null address.

struct GivesNothingAnAddress : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Result<Address> allocate(Bytes size, const Stream& stream, cache::OutOfMemory* account) override {
    if (size.count() == 0) return Address{std::uint64_t{1} << 40};
    return inner_->allocate(size, stream, account);
  }
};

std::string clause_of_zero_bytes(const spec::CacheLockstep::Options& options) {
  spec::OpFile file;
  spec::TextError error;
  EXPECT_TRUE(
      spec::parse_ops("ashlar-ops 1 cache\nalloc p0 512 s0\nalloc p1 0 s0\n", &file, &error))
      << error.reason;
  return spec::CacheLockstep::run(file, options).divergence.clause;
}

TEST(Dev20, FiresOnZeroBytesThatHaveAnAddress) {
  spec::CacheLockstep::Options real;
  real.factory = caching_allocator_factory();
  EXPECT_EQ(clause_of_zero_bytes(real), "");
  EXPECT_EQ(clause_of_zero_bytes(broken<GivesNothingAnAddress>()), "DEV-20");
}

// C18: no device call under a heap's lock. Growth asks the device; with any lock held that is the
// planted bug.

#if ASHLAR_ASSERTIONS && GTEST_HAS_DEATH_TEST
TEST(C18DeathTest, FiresOnADeviceCallUnderALock) {
  const auto grow_under = [](bool holds) {
    // All of it is made here: an allocator from before a death test's fork would refuse the call
    // (C25).
    device::HostDevice device;
    device::Device* const devices[] = {&device};
    const std::unique_ptr<cache::CachingAllocator> allocator =
        cache::CachingAllocator::create(devices, cache::Config{}).value();
    const Stream stream = device.create_stream().value();
    SpinLock heap;
    std::optional<Guard> guard;
    if (holds) guard.emplace(heap);
    return allocator->allocate(1_MiB, stream).code();
  };
  EXPECT_DEATH(static_cast<void>(grow_under(true)), "C18: a device call under a heap's lock");
  EXPECT_EQ(grow_under(false), Code::kOk);
}
#endif

// C25: a forked child gets typed errors, and nothing it does reaches the device.

struct ServesTheChild : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status free(Address address) override {
    return static_cast<void>(inner_->free(address)), Status::ok();
  }
};
struct AsksInTheChild : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status free(Address address) override {
    static_cast<void>(device_for(device::CallKind::kMemoryInfo).memory_info());
    return inner_->free(address);
  }
};

/// What a child that allocates, frees and trims hears, and whether the device hears of it.
std::string fork_verdict(const spec::CacheFactory& factory) {
  enum { kKept = 0, kServed = 1, kAsked = 2 };
  device::HostDevice host{DeviceId{0}};
  spec::DeviceWitness witness(host);
  device::Device* const devices[] = {&witness};
  std::shared_ptr<spec::CacheSubject> subject = factory(devices, "").value();
  const Stream stream = host.create_stream().value();
  cache::OutOfMemory account;
  const Address held = subject->allocate(1_MiB, stream, &account).value();
  const pid_t child = fork();
  if (child < 0) return "no fork";
  if (child == 0) {
    const std::uint64_t before = witness.calls_in_all();
    bool is_refused = subject->allocate(4_MiB, stream, &account).code() == Code::kForked;
    is_refused &= subject->free(held).code() == Code::kForked;
    is_refused &= subject->trim(DeviceId{0}).code() == Code::kForked;
    subject.reset();
    _exit(witness.calls_in_all() != before ? kAsked : is_refused ? kKept : kServed);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return "the child died";
  if (!subject->free(held).is_ok()) return "C25: the parent's memory was touched";
  switch (WEXITSTATUS(status)) {
    case kKept: return "";
    case kServed: return "C25: the child was served";
    case kAsked: return "C25: the child reached the device";
    default: return "the child ended otherwise";
  }
}

TEST(C25, FiresOnAForkedChildThatIsServed) {
  EXPECT_EQ(fork_verdict(caching_allocator_factory()), "");
  EXPECT_EQ(fork_verdict(broken<ServesTheChild>().factory), "C25: the child was served");
  EXPECT_EQ(fork_verdict(broken<AsksInTheChild>().factory), "C25: the child reached the device");
}

// P3, P4: related calls of a planner.

using Planner = std::function<plan::Plan(const plan::Problem&, const plan::PlanOptions&)>;

constexpr int kProblems = 20;
constexpr GenerateLimits kLimits{40, 30, 60, 8};
constexpr std::uint64_t kLittle = 1'000;
constexpr std::uint64_t kMuch = 100'000;

plan::PlanOptions options_of(std::uint64_t work, unsigned threads) {
  plan::PlanOptions options;
  options.work = work;
  options.threads = threads;
  return options;
}

/// P3: more work, and more room, are never worse.
std::string worse_with_more(const Planner& planner) {
  spec::Random random(31);
  for (int i = 0; i < kProblems; ++i) {
    plan::Problem problem = generate_problem(&random, kLimits);
    const plan::Plan little = planner(problem, options_of(kLittle, 1));
    const plan::Plan much = planner(problem, options_of(kMuch, 1));
    for (std::size_t s = 0; s < problem.spaces.size(); ++s) {
      if (much.spaces[s].peak > little.spaces[s].peak) return "P3: worse with more work";
    }
    std::vector<bool> has_fit(problem.spaces.size(), false);
    const std::vector<Bytes> bounds = spec::live_peaks(problem);
    for (const std::uint64_t eighths : {8u, 9u, 12u, 16u}) {
      for (std::size_t s = 0; s < bounds.size(); ++s)
        problem.spaces[s].capacity = Bytes{bounds[s].count() * eighths / 8};
      const plan::Plan answer = planner(problem, options_of(kMuch, 1));
      for (std::size_t s = 0; s < bounds.size(); ++s) {
        const bool fits = answer.spaces[s].peak <= problem.spaces[s].capacity;
        if (has_fit[s] && !fits) return "P3: worse with more room";
        has_fit[s] = fits;
      }
    }
  }
  return "";
}

/// P4: the same problem and work, the same plan, for any number of threads.
std::string differs_for_the_same(const Planner& planner) {
  spec::Random random(32);
  for (int i = 0; i < kProblems; ++i) {
    const plan::Problem problem = generate_problem(&random, kLimits);
    const plan::Plan one = planner(problem, options_of(kMuch, 1));
    if (planner(problem, options_of(kMuch, 1)).offsets != one.offsets)
      return "P4: another plan the second time";
    if (planner(problem, options_of(kMuch, 2)).offsets != one.offsets)
      return "P4: another plan with two threads";
  }
  return "";
}

/// A poor answer: every buffer is moved up beyond the peak, to where its alignment is kept.
plan::Plan lifted(plan::Plan plan) {
  Bytes top;
  for (const plan::SpaceAnswer& space : plan.spaces) top = std::max(top, space.peak);
  const Bytes lift{std::bit_ceil(top.count() + 1)};
  for (Bytes& offset : plan.offsets) offset += lift;
  for (plan::SpaceAnswer& space : plan.spaces) space.peak += lift;
  return plan;
}

TEST(P3, FiresOnAPlannerThatIsWorseWithMoreWorkOrRoom) {
  EXPECT_EQ(worse_with_more(plan::make_plan), "");
  const Planner lazy = [](const plan::Problem& problem, const plan::PlanOptions& options) {
    plan::Plan plan = plan::make_plan(problem, options);
    return *options.work > kLittle ? lifted(std::move(plan)) : plan;
  };
  EXPECT_EQ(worse_with_more(lazy), "P3: worse with more work");
  const Planner lavish = [](const plan::Problem& problem, const plan::PlanOptions& options) {
    plan::Plan plan = plan::make_plan(problem, options);
    const std::vector<Bytes> bounds = spec::live_peaks(problem);
    const Bytes capacity = problem.spaces[0].capacity;
    const bool has_room =
        capacity != plan::kNowhere && capacity.count() > bounds[0].count() * 9 / 8;
    return has_room ? lifted(std::move(plan)) : plan;
  };
  EXPECT_EQ(worse_with_more(lavish), "P3: worse with more room");
}

TEST(P4, FiresOnAPlannerThatDependsOnMoreThanItsProblem) {
  EXPECT_EQ(differs_for_the_same(plan::make_plan), "");
  int calls = 0;
  const Planner moody = [&calls](const plan::Problem& problem, const plan::PlanOptions& options) {
    plan::Plan plan = plan::make_plan(problem, options);
    return ++calls % 2 == 0 ? lifted(std::move(plan)) : plan;
  };
  EXPECT_EQ(differs_for_the_same(moody), "P4: another plan the second time");
  const Planner racing = [](const plan::Problem& problem, const plan::PlanOptions& options) {
    plan::Plan plan = plan::make_plan(problem, options);
    return options.threads > 1 ? lifted(std::move(plan)) : plan;
  };
  EXPECT_EQ(differs_for_the_same(racing), "P4: another plan with two threads");
}

// R7: validation names the first difference.

using Finder = std::function<std::optional<replay::Difference>(const replay::Recording&,
                                                               const replay::Recording&)>;

/// A run of random sizes in which what is live is freed in a random order; `resized` grows every
/// third allocation from there.
replay::Recording run_of(std::uint64_t seed, std::size_t resized) {
  spec::Random random(seed);
  std::vector<spec::RunEvent> events;
  std::vector<std::uint64_t> live;
  for (std::uint64_t name = 0; name < 30; ++name) {
    const std::uint64_t more = name >= resized && (name - resized) % 3 == 0 ? 1 : 0;
    events.push_back(
        {spec::RunEvent::Kind::kAllocate, name, Bytes{1 + random.below(5) * 100 + more}});
    live.push_back(name);
    if (!random.one_in(2)) continue;
    const std::size_t which = random.below(live.size());
    events.push_back({spec::RunEvent::Kind::kFree, live[which], 0_B});
    live.erase(live.begin() + static_cast<std::ptrdiff_t>(which));
  }
  return spec::recording_of(events);
}

std::string misnames_the_first(const Finder& find) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const replay::Recording recorded = run_of(seed, 30);
    for (const std::size_t resized : {0u, 7u, 23u, 30u}) {
      const replay::Recording run = run_of(seed, resized);
      if (find(recorded, run) != spec::difference_of(recorded, run))
        return "R7: not the first difference";
    }
  }
  return "";
}

TEST(R7, FiresOnAValidationThatNamesALaterDifferenceOrNone) {
  EXPECT_EQ(misnames_the_first(replay::first_difference), "");
  const Finder blind = [](const replay::Recording&, const replay::Recording&) {
    return std::optional<replay::Difference>{};
  };
  EXPECT_EQ(misnames_the_first(blind), "R7: not the first difference");
  // Takes the first difference for noise, and names the next.
  const Finder late = [](const replay::Recording& recorded, replay::Recording run) {
    const std::optional<replay::Difference> first = replay::first_difference(recorded, run);
    if (!first || first->kind != replay::Difference::Kind::kSize) return first;
    run.allocations[first->allocation].size = first->recorded;
    const std::optional<replay::Difference> next = replay::first_difference(recorded, run);
    return next ? next : first;
  };
  EXPECT_EQ(misnames_the_first(late), "R7: not the first difference");
}

}  // namespace
}  // namespace ashlar::props
