// When a planning problem is sound, when two buffers conflict, and what a problem's hash depends on.
//
// Imitates: problems made by other programs, with their mistakes. Does not prove: anything about
// plans.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include <ashlar/plan/overlap.h>
#include <ashlar/plan/problem.h>

#include "props/plan/generate.h"
#include "props/plan/pairwise_check.h"

namespace ashlar::plan {
namespace {

// Three buffers that are all live at 4, in one space, without any feature.
Problem three() {
  Problem problem;
  problem.buffers = {plain_buffer(0, 5, 16), plain_buffer(2, 9, 8), plain_buffer(4, 6, 32)};
  return problem;
}

std::string why(const Problem& problem) { return check_problem(problem).status.why(); }

void give_gaps(Problem* problem, std::uint32_t b, const std::vector<Lifetime>& gaps) {
  problem->buffers[b].gaps_begin = static_cast<std::uint32_t>(problem->gaps.size());
  problem->gaps.insert(problem->gaps.end(), gaps.begin(), gaps.end());
  problem->buffers[b].gaps_end = static_cast<std::uint32_t>(problem->gaps.size());
}

TEST(PlanProblem, IsSoundWithEveryFeature) {
  Problem problem = three();
  problem.spaces = {{"sram", 64_B}, {"dram", kNowhere}};
  problem.groups = {"in place"};
  problem.ids = {"a", "b", "c"};
  problem.buffers[0].group = problem.buffers[1].group = 0;
  problem.buffers[0].alignment = 16_B;
  problem.buffers[1].pinned = 32_B;
  problem.buffers[2].space = 1;
  problem.buffers[2].hint = 7_B;
  give_gaps(&problem, 1, {{3, 4}, {5, 7}});
  EXPECT_EQ(why(problem), "");
  EXPECT_EQ(why(Problem{}), "");
}

struct Unsound {
  const char* why;
  Code code;
  std::function<void(Problem*)> break_it;  // breaks the rule in buffer 1
};

void expect_faults(const std::vector<Unsound>& cases) {
  for (const Unsound& one : cases) {
    Problem problem = three();
    one.break_it(&problem);
    const ProblemFault fault = check_problem(problem);
    EXPECT_STREQ(fault.status.why(), one.why);
    EXPECT_EQ(fault.status.code(), one.code) << one.why;
    EXPECT_EQ(fault.buffer, 1u) << one.why;
    EXPECT_EQ(fault.other, 1u) << one.why;
  }
}

constexpr Code kInvalid = Code::kInvalidArgument;
constexpr Code kLarge = Code::kSizeOverflow;

TEST(PlanProblem, FaultNamesTheRuleAndTheBuffer) {
  expect_faults({
      {"upper is not above lower", kInvalid, [](Problem* p) { p->buffers[1].life.upper = 2; }},
      {"upper is not above lower", kInvalid,
       [](Problem* p) {
         p->buffers[1].life = {INT64_MAX, INT64_MIN};
       }},
      {"its size is zero", kInvalid, [](Problem* p) { p->buffers[1].size = 0_B; }},
      {"its size is over 2^62", kLarge,
       [](Problem* p) { p->buffers[1].size = kPlanBytesMax + 1_B; }},
      {"its alignment is not a power of two", kInvalid,
       [](Problem* p) { p->buffers[1].alignment = 0_B; }},
      {"its alignment is not a power of two", kInvalid,
       [](Problem* p) { p->buffers[1].alignment = 24_B; }},
      {"its alignment is over 2^62", kLarge,
       [](Problem* p) { p->buffers[1].alignment = Bytes{std::uint64_t{1} << 63}; }},
      {"it is pinned to end over 2^62", kLarge,
       [](Problem* p) { p->buffers[1].pinned = kPlanBytesMax - 7_B; }},
      {"its pin is not aligned", kInvalid,
       [](Problem* p) {
         p->buffers[1].pinned = 12_B;
         p->buffers[1].alignment = 8_B;
       }},
      {"its hint is over 2^62", kLarge,
       [](Problem* p) { p->buffers[1].hint = kPlanBytesMax + 1_B; }},
      {"its space does not exist", kInvalid, [](Problem* p) { p->buffers[1].space = 1; }},
      {"its alias group does not exist", kInvalid, [](Problem* p) { p->buffers[1].group = 0; }},
  });
}

TEST(PlanProblem, FaultNamesGapsAndSumsThatAreOutOfBounds) {
  expect_faults({
      {"its gaps do not exist", kInvalid, [](Problem* p) { p->buffers[1].gaps_end = 1; }},
      {"its gaps do not exist", kInvalid, [](Problem* p) { p->buffers[1].gaps_begin = 1; }},
      {"a gap ends before it has begun", kInvalid,
       [](Problem* p) {
         give_gaps(p, 1, {{5, 5}});
       }},
      {"it is not live before, between and after its gaps", kInvalid,
       [](Problem* p) {
         give_gaps(p, 1, {{2, 3}});
       }},
      {"it is not live before, between and after its gaps", kInvalid,
       [](Problem* p) {
         give_gaps(p, 1, {{8, 9}});
       }},
      {"it is not live before, between and after its gaps", kInvalid,
       [](Problem* p) {
         give_gaps(p, 1, {{3, 4}, {4, 5}});
       }},
      {"it is not live before, between and after its gaps", kInvalid,
       [](Problem* p) {
         give_gaps(p, 1, {{6, 7}, {4, 5}});
       }},
      {"sizes, padding and pins add up to over 2^62", kLarge,
       [](Problem* p) { p->buffers[1].size = kPlanBytesMax - 8_B; }},
      {"sizes, padding and pins add up to over 2^62", kLarge,
       [](Problem* p) { p->buffers[1].alignment = kPlanBytesMax; }},
      {"sizes, padding and pins add up to over 2^62", kLarge,
       [](Problem* p) {
         p->buffers[2].pinned = kPlanBytesMax - 50_B;
         p->buffers[1].size = 3_B;
       }},
  });
}

TEST(PlanProblem, IsUnsoundWithoutASpaceOrWithSomeIds) {
  Problem problem = three();
  problem.spaces.clear();
  EXPECT_EQ(why(problem), "there is no space");
  problem = three();
  problem.ids = {"a", "b"};
  EXPECT_EQ(why(problem), "some buffers have an id and some have none");
}

TEST(PlanProblem, NamesBothOfTwoThatDisagree) {
  const auto expect_fault = [](const Problem& problem, const char* reason, std::uint32_t one,
                               std::uint32_t other) {
    const ProblemFault fault = check_problem(problem);
    EXPECT_STREQ(fault.status.why(), reason);
    EXPECT_EQ(fault.buffer, one) << reason;
    EXPECT_EQ(fault.other, other) << reason;
  };
  Problem grouped = three();
  grouped.groups = {"g"};
  grouped.buffers[0].group = grouped.buffers[2].group = 0;
  Problem problem = grouped;
  problem.spaces.resize(2);
  problem.buffers[2].space = 1;
  expect_fault(problem, "its alias group is in another space", 2, 0);

  problem = grouped;
  problem.buffers[0].pinned = 64_B;
  problem.buffers[2].pinned = 64_B;
  expect_fault(problem, "", 0, 0);
  problem.buffers[2].pinned = 0_B;
  expect_fault(problem, "its alias group is pinned elsewhere", 2, 0);

  problem = grouped;
  problem.buffers[2].pinned = 8_B;
  problem.buffers[0].alignment = 16_B;
  expect_fault(problem, "its pin is not aligned for all of its alias group", 2, 2);

  problem = three();
  problem.buffers[0].pinned = 0_B;
  problem.buffers[1].pinned = 16_B;
  expect_fault(problem, "", 0, 0);
  problem.buffers[2].pinned = 23_B;
  expect_fault(problem, "it is pinned onto a pinned buffer that is live with it", 2, 1);
}

TEST(PlanProblem, PinsAWholeAliasGroup) {
  Problem problem = three();
  problem.groups = {"g"};
  problem.buffers[0].group = problem.buffers[1].group = 0;
  problem.buffers[1].pinned = 0_B;
  // overlaps not buffer 1 but buffer 0, which its group puts at the same offset
  problem.buffers[2].pinned = 8_B;
  EXPECT_EQ(why(problem), "it is pinned onto a pinned buffer that is live with it");
  problem.buffers[2].pinned = 16_B;
  EXPECT_EQ(why(problem), "");
}

TEST(PlanProblem, IsSoundIfGenerated) {
  spec::Random random(1);
  for (int i = 0; i < 20000; ++i) ASSERT_EQ(why(generate_problem(&random, {12, 10, 6})), "") << i;
}

TEST(PlanProblem, ConflictsAreThoseThatComparingEveryPairFinds) {
  spec::Random random(2);
  std::uint64_t conflicts = 0;
  std::uint64_t pairs = 0;
  for (int i = 0; i < 5000; ++i) {
    const Problem problem = generate_problem(&random, {8, 14, 6});
    for (std::uint32_t a = 0; a < problem.buffers.size(); ++a) {
      for (std::uint32_t b = 0; b < problem.buffers.size(); ++b) {
        const bool meet = first_meeting(problem, a, b).has_value();
        ASSERT_EQ(conflict(problem, a, b), meet) << "problem " << i << ", " << a << " and " << b;
        conflicts += meet ? 1u : 0u;
        ++pairs;
      }
    }
  }
  EXPECT_GT(conflicts, pairs / 10);
  EXPECT_LT(conflicts, pairs - pairs / 10);
}

// Random offsets, kNowhere for some; buffers of a group have the same.
std::vector<Bytes> random_offsets(spec::Random* random, const Problem& problem) {
  std::vector<Bytes> offsets;
  for (std::uint32_t b = 0; b < problem.buffers.size(); ++b) {
    offsets.push_back(random->one_in(3) ? kNowhere : Bytes{random->below(40)});
    for (std::uint32_t a = 0; a < b; ++a) {
      if (problem.buffers[b].group != kNoGroup &&
          problem.buffers[a].group == problem.buffers[b].group)
        offsets[b] = offsets[a];
    }
  }
  return offsets;
}

TEST(PlanProblem, FirstOverlapIsTheOneThatComparingEveryPairFinds) {
  spec::Random random(3);
  int found = 0;
  for (int i = 0; i < 20000; ++i) {
    const Problem problem = generate_problem(&random, {8, 14, 6});
    const std::vector<Bytes> offsets = random_offsets(&random, problem);
    const std::optional<Time> expected = first_overlap_by_pairs(problem, offsets);
    const std::optional<Overlap> overlap = first_overlap(problem, offsets);
    ASSERT_EQ(overlap.has_value(), expected.has_value()) << i;
    if (!overlap) continue;
    ++found;
    ASSERT_TRUE(share_bytes(problem, offsets, overlap->earlier, overlap->later)) << i;
    ASSERT_EQ(first_meeting(problem, overlap->earlier, overlap->later), expected) << i;
  }
  EXPECT_GT(found, 2000);
  EXPECT_LT(found, 18000);
}

TEST(PlanProblemHash, DependsOnEverythingThatAPlanDependsOn) {
  Problem base = three();
  base.groups = {"g", "h"};
  base.spaces.resize(2);
  base.buffers[0].group = 0;
  give_gaps(&base, 1, {{3, 4}});
  const std::vector<std::function<void(Problem*)>> changes{
      [](Problem* p) { p->buffers[0].life.lower = -1; },
      [](Problem* p) { p->buffers[0].life.upper = 6; },
      [](Problem* p) { p->buffers[0].size = 17_B; },
      [](Problem* p) { p->buffers[0].alignment = 2_B; },
      [](Problem* p) { p->buffers[0].pinned = 0_B; },
      [](Problem* p) { p->buffers[1].group = 0; },
      [](Problem* p) { p->buffers[0].space = 1; },
      [](Problem* p) { p->gaps[0].lower = 2; },
      [](Problem* p) { p->gaps[0].upper = 5; },
      [](Problem* p) { p->buffers[1].gaps_end = 0; },
      [](Problem* p) { p->spaces.resize(3); },
      [](Problem* p) { p->buffers.pop_back(); },
      [](Problem* p) { std::swap(p->buffers[1], p->buffers[2]); },
  };
  for (std::size_t c = 0; c < changes.size(); ++c) {
    Problem changed = base;
    changes[c](&changed);
    EXPECT_NE(hash_of(changed), hash_of(base)) << "change " << c;
  }
}

TEST(PlanProblemHash, DependsOnNothingElse) {
  Problem base = three();
  base.groups = {"g", "h"};
  base.buffers[0].group = base.buffers[2].group = 0;
  Problem changed = base;
  changed.ids = {"a", "b", "c"};
  changed.groups = {"other", "names"};
  changed.spaces[0] = {"sram", 64_B};
  changed.buffers[1].hint = 8_B;
  changed.buffers[0].group = changed.buffers[2].group = 1;
  give_gaps(&changed, 1, {});
  EXPECT_EQ(hash_of(changed), hash_of(base));
}

TEST(PlanProblemHash, IsTheSameOnEveryMachine) {
  EXPECT_EQ(hash_of(Problem{}), 0x692558b056101a44u);
  EXPECT_EQ(hash_of(three()), 0xb75cf87462b9b70eu);
}

}  // namespace
}  // namespace ashlar::plan
