// Steps that are recorded, planned and replayed, without PyTorch: random steps whose bytes are checked, under the model of
// the replay, and what a caller can do wrong.
//
// Imitates: a training loop, whose parameters stay, whose gradients outlive a step, and whose steps may differ; threads that
// allocate beside it; a worker process.
// Does not prove: that PyTorch asks in such a way (torch_test.py does).
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <rapidcheck/gtest.h>

#include "props/cache/forked_child.h"
#include "props/torch_cpu/checked_parts.h"
#include "spec/ops/random.h"
#include "src/torch_cpu/process_session.h"

namespace ashlar {

torch_cpu::StepParts torch_cpu::process_parts() noexcept { return props::checked_parts(); }

namespace {

using torch_cpu::StepSession;
using Step = StepSession::Step;

/// A program that fills what it allocates, and finds it so before the free.
class Program {
 public:
  explicit Program(StepSession& session) : session_(session) {}
  ~Program() {
    while (!live_.empty()) free(live_.begin()->first);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  Address allocate(Bytes size) {
    const Result<Address> got = session_.allocate(size);
    EXPECT_TRUE(got.is_ok()) << got.status().why();
    const Address address = got.value_or(Address{});
    if (address.is_null()) return address;
    const auto fill = static_cast<unsigned char>(++fills_);
    std::memset(address.pointer(), fill, size.count());
    live_[address] = {size, fill};
    return address;
  }
  void free(Address address) {
    const Block block = live_.at(address);
    const auto* const bytes = static_cast<const unsigned char*>(address.pointer());
    for (std::uint64_t i = 0; i < block.size.count(); ++i) {
      if (bytes[i] == block.fill) continue;
      ADD_FAILURE() << "C2: byte " << i << " of " << block.size.count() << " was overwritten";
      break;
    }
    live_.erase(address);
    EXPECT_TRUE(session_.free(address).is_ok());
  }
  std::size_t live() const { return live_.size(); }

 private:
  struct Block {
    Bytes size;
    unsigned char fill = 0;
  };
  StepSession& session_;
  std::map<Address, Block> live_;
  unsigned fills_ = 0;
};

/// A step of `length` calls that the seed determines; returns what it leaves live, at most three allocations.
std::vector<Address> run_step(Program& program, std::uint64_t seed, unsigned length) {
  spec::Random random(seed);
  std::vector<Address> live;
  for (unsigned i = 0; i < length; ++i) {
    if (live.size() < 12 && random.below(5) < 3) {
      const std::uint64_t size = 1 + random.below(std::uint64_t{1} << (4 + random.below(14)));
      live.push_back(program.allocate(Bytes{size}));
    } else if (!live.empty()) {
      const auto at = live.begin() + static_cast<std::ptrdiff_t>(random.below(live.size()));
      program.free(*at);
      live.erase(at);
    }
  }
  while (live.size() > 3) {
    program.free(live.back());
    live.pop_back();
  }
  return live;
}

class StepSessionTest : public ::testing::Test {
 protected:
  StepSessionTest() : session_(StepSession::create(props::checked_parts()).value()) {}

  Status run(Program& program, Step step, std::uint64_t seed, std::vector<Address>* left) {
    if (const Status begun = session_->begin(step); !begun.is_ok()) return begun;
    // The gradients of the step before end here, as zero_grad() ends them.
    for (const Address each : *left) program.free(each);
    *left = run_step(program, seed, 60);
    return session_->end(20);
  }

  cache::DeviceStats stats() {
    cache::DeviceStats stats;
    EXPECT_TRUE(session_->memory().caching().stats(session_->memory().device(), &stats).is_ok());
    return stats;
  }
  std::uint64_t reserved_bytes() { return stats().reserved_bytes[0].current; }

  std::unique_ptr<StepSession> session_;
};

TEST_F(StepSessionTest, AStepThatRepeatsIsServedByThePlan) {  // REC-1 to REC-6
  Program program(*session_);
  const Address parameters = program.allocate(3_MiB);
  std::vector<Address> left;
  ASSERT_TRUE(run(program, Step::kRecord, 7, &left).is_ok());
  ASSERT_TRUE(run(program, Step::kValidate, 7, &left).is_ok());
  EXPECT_EQ(session_->difference(), "");
  const torch_cpu::StepPlan plan = session_->plan();
  EXPECT_GT(plan.allocations, 20u);
  EXPECT_EQ(plan.unmanaged, left.size());
  EXPECT_GE(plan.lower_bound, plan.live_peak);
  EXPECT_GE(plan.peak, plan.lower_bound);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(run(program, Step::kReplay, 7, &left).is_ok());
  const replay::ReplayCounts counts = session_->counts();
  EXPECT_EQ(counts.served, 5 * (plan.allocations - plan.unmanaged));
  EXPECT_EQ(counts.unmanaged, 5 * plan.unmanaged);
  EXPECT_EQ(counts.fallbacks() + counts.skipped + counts.late, 0u);
  EXPECT_GT(props::judged_calls(), 0u);
  program.free(parameters);
}

TEST_F(StepSessionTest, AStepThatDiffersIsServedAndCounted) {
  Program program(*session_);
  std::vector<Address> left;
  ASSERT_TRUE(run(program, Step::kRecord, 7, &left).is_ok());
  ASSERT_TRUE(run(program, Step::kValidate, 8, &left).is_ok());
  EXPECT_NE(session_->difference(), "");
  ASSERT_TRUE(run(program, Step::kReplay, 8, &left).is_ok());
  EXPECT_GT(session_->counts().fallbacks() + session_->counts().skipped, 0u);
  EXPECT_NE(session_->difference(), "");
  ASSERT_TRUE(run(program, Step::kRecord, 7, &left).is_ok());
  EXPECT_EQ(session_->difference(), "") << "of the recording before";
}

TEST_F(StepSessionTest, WhatARecordedOrValidatedStepLeavesIdleGoesBack) {
  for (const Step step : {Step::kRecord, Step::kValidate}) {
    ASSERT_TRUE(session_->begin(step).is_ok());
    for (int i = 0; i < 3; ++i) {
      Program program(*session_);
      program.allocate(40_MiB);
    }
    ASSERT_TRUE(session_->end(20).is_ok());
    EXPECT_EQ(session_->difference(), "");
    EXPECT_LT(reserved_bytes(), (60_MiB).count()) << "the plan's segment alone";
  }
}

TEST_F(StepSessionTest, ANewRecordingReplacesThePlanAndTheOldSegmentGoesBack) {
  Program program(*session_);
  std::vector<Address> left;
  ASSERT_TRUE(run(program, Step::kRecord, 7, &left).is_ok());
  ASSERT_TRUE(session_->begin(Step::kReplay).is_ok());
  for (const Address each : left) program.free(each);
  left = run_step(program, 7, 60);
  ASSERT_TRUE(session_->end(0).is_ok());
  for (int i = 0; i < 100; ++i) {
    // Each replay has memory that is live when the next step is recorded.
    ASSERT_TRUE(run(program, Step::kRecord, 100u + static_cast<unsigned>(i), &left).is_ok()) << i;
    ASSERT_TRUE(run(program, Step::kReplay, 100u + static_cast<unsigned>(i), &left).is_ok()) << i;
  }
  for (const Address each : left) program.free(each);
  left.clear();
  ASSERT_TRUE(run(program, Step::kRecord, 7, &left).is_ok());
  // The last segment, what the last step left, and nothing else.
  EXPECT_LE(stats().allocations[0].current, 1 + left.size());
}

TEST_F(StepSessionTest, MisuseIsATypedError) {  // C16
  EXPECT_EQ(session_->end(1).code(), Code::kNotFound);
  EXPECT_EQ(session_->begin(Step::kReplay).code(), Code::kNotFound);
  EXPECT_EQ(session_->begin(Step::kValidate).code(), Code::kNotFound);
  EXPECT_EQ(session_->begin(Step::kNone).code(), Code::kInvalidArgument);
  ASSERT_TRUE(session_->begin(Step::kRecord).is_ok());
  EXPECT_EQ(session_->begin(Step::kRecord).code(), Code::kBusy);
  std::thread([&] { EXPECT_EQ(session_->end(1).code(), Code::kBusy); }).join();
  EXPECT_TRUE(session_->end(1).is_ok());
  const int foreign = 0;
  EXPECT_EQ(session_->free(Address::of(&foreign)).code(), Code::kUnknownPointer);
  EXPECT_TRUE(session_->free(Address{}).is_ok());
  // An empty step has an empty plan.
  ASSERT_TRUE(session_->begin(Step::kReplay).is_ok());
  EXPECT_TRUE(session_->end(1).is_ok());
  EXPECT_EQ(session_->plan().peak, 0_B);
}

TEST_F(StepSessionTest, OtherThreadsMemoryIsNotTheSteps) {
  ASSERT_TRUE(session_->begin(Step::kRecord).is_ok());
  std::thread([&] {
    Program other(*session_);
    other.allocate(1_MiB);
  }).join();
  ASSERT_TRUE(session_->end(1).is_ok());
  EXPECT_EQ(session_->plan().allocations, 0u);
}

TEST_F(StepSessionTest, ATrimEmptiesFreeBlocksOfSegmentsThatStay) {
  Program program(*session_);
  // Two blocks of one segment, the second of which stays.
  const Address idle = program.allocate(9_MiB), stays = program.allocate(2_MiB);
  ASSERT_EQ(stays, idle + 9_MiB);
  const auto is_resident = [](Address page) {
    unsigned char in_core = 0;
    EXPECT_EQ(::mincore(page.pointer(), 4096, &in_core), 0);
    return (in_core & 1) != 0;
  };
  const Address large = program.allocate(50_MiB);
  program.free(idle);
  ASSERT_TRUE(is_resident(idle + 4_MiB));
  const std::uint64_t reserved = reserved_bytes();
  ASSERT_TRUE(session_->trim().is_ok());
  EXPECT_EQ(reserved_bytes(), reserved) << "nothing is allocated for it";
  EXPECT_TRUE(is_resident(large));
  EXPECT_FALSE(is_resident(idle + 4_MiB));
  EXPECT_TRUE(is_resident(stays));
  EXPECT_EQ(program.allocate(9_MiB), idle) << "the block is free again";
}

TEST(ProcessSession, AForkedChildHasOneOfItsOwn) {  // C25
  StepSession* const parents = torch_cpu::process_session().value();
  EXPECT_EQ(torch_cpu::process_session().value(), parents);
  const Address held = parents->allocate(1_MiB).value();
  std::memset(held.pointer(), 1, 4096);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    StepSession* const own = torch_cpu::process_session().value();
    bool all = own != parents && parents->allocate(1_B).code() == Code::kForked;
    {
      Program program(*own);
      program.allocate(1_MiB);
      all &= program.live() == 1;
    }
    // Its own copy of what the parent has live.
    all &= *static_cast<unsigned char*>(held.pointer()) == 1;
    std::memset(held.pointer(), 2, 4096);
    all &= own->free(held).code() == Code::kUnknownPointer;
    props::end_child(all && !::testing::Test::HasFailure() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(*static_cast<unsigned char*>(held.pointer()), 1);
  EXPECT_TRUE(parents->free(held).is_ok());
}

TEST(StepSessionThreads, ThreadsAllocateAndFreeBesideSteps) {
  // Without checkers, whose locks would order the threads.
  const std::unique_ptr<StepSession> session = StepSession::create().value();
  std::mutex lock;
  std::vector<std::pair<Address, unsigned char>>
      handed;  // what the steps leave for the others to free
  std::atomic<bool> is_over{false};
  const auto take_one = [&](std::pair<Address, unsigned char>* out) {
    const std::lock_guard guard(lock);
    if (handed.empty()) return false;
    *out = handed.back();
    handed.pop_back();
    return true;
  };
  const auto serve = [&](unsigned char own) {
    std::pair<Address, unsigned char> other;
    for (bool is_last = false; !is_last;) {
      is_last = is_over;
      const Address mine = session->allocate(40_KiB).value();
      std::memset(mine.pointer(), own, 4096);
      while (take_one(&other)) {
        EXPECT_EQ(*static_cast<unsigned char*>(other.first.pointer()), other.second);
        EXPECT_TRUE(session->free(other.first).is_ok());
      }
      EXPECT_EQ(*static_cast<unsigned char*>(mine.pointer()), own);
      EXPECT_TRUE(session->free(mine).is_ok());
    }
  };
  std::thread one(serve, static_cast<unsigned char>(251)),
      two(serve, static_cast<unsigned char>(252));
  for (unsigned i = 0; i < 60; ++i) {
    const Step kinds[] = {Step::kRecord, Step::kValidate, Step::kReplay, Step::kReplay};
    EXPECT_TRUE(session->begin(kinds[i % 4]).is_ok());
    for (unsigned k = 0; k < 20; ++k) {
      const Address left = session->allocate(Bytes{1000 * (k + 1)}).value();
      const Address freed = session->allocate(Bytes{3000 * (k + 1)}).value();
      *static_cast<unsigned char*>(left.pointer()) = static_cast<unsigned char>(k);
      EXPECT_TRUE(session->free(freed).is_ok());
      const std::lock_guard guard(lock);
      handed.push_back({left, static_cast<unsigned char>(k)});
    }
    const Status ended = session->end(1);
    EXPECT_TRUE(ended.is_ok()) << i << ": " << ended.why();
  }
  is_over = true;
  one.join();
  two.join();
  EXPECT_EQ(session->memory().caching().validate(), nullptr);
}

RC_GTEST_PROP(StepSessionProperty, RandomStepsKeepEveryByte, ()) {
  const auto made = StepSession::create(props::checked_parts());
  RC_ASSERT(made.is_ok());
  StepSession& session = *made.value();
  Program program(session);
  std::vector<Address> left;
  const auto steps = *rc::gen::container<std::vector<std::pair<unsigned, unsigned>>>(
      rc::gen::pair(rc::gen::inRange(0u, 4u), rc::gen::inRange(0u, 4u)));
  for (const auto& [kind, seed] : steps) {
    const bool is_begun = session.begin(static_cast<Step>(kind)).is_ok();
    for (const Address each : left) program.free(each);
    left = run_step(program, seed, 40);
    RC_ASSERT(!is_begun || session.end(5).is_ok());
  }
}

}  // namespace
}  // namespace ashlar
