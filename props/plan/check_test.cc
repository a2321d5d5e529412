// The checker of plans: every rule fires with its message, and its sweep agrees with comparing every
// pair.
//
// Imitates: solvers that are wrong in one place. Does not prove: anything about our solvers.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "props/plan/generate.h"
#include "props/plan/pairwise_check.h"
#include "spec/plan/check.h"

namespace ashlar::spec {
namespace {

using plan::Problem;
using Rule = PlanViolation::Rule;

// Buffers 0 and 1 are of one group, 2 has a gap in which 3 lives, 4 is pinned, 5 is in another
// space.
struct Sample {
  Problem problem;
  plan::Plan plan;
};

Sample sample() {
  Sample s;
  Problem& p = s.problem;
  p.buffers = {plain_buffer(0, 10, 16), plain_buffer(5, 20, 24), plain_buffer(0, 20, 8),
               plain_buffer(4, 6, 8),   plain_buffer(2, 4, 8),   plain_buffer(0, 20, 64)};
  p.groups = {"g"};
  p.buffers[0].group = p.buffers[1].group = 0;
  p.buffers[1].alignment = 8_B;
  p.gaps = {{4, 6}};
  p.buffers[2].gaps_end = 1;
  for (std::size_t b = 3; b < 6; ++b) p.buffers[b].gaps_begin = p.buffers[b].gaps_end = 1;
  p.buffers[4].pinned = 32_B;
  p.spaces = {{"small", 40_B}, {"large", 64_B}};
  p.buffers[5].space = 1;
  s.plan.offsets = {0_B, 0_B, 24_B, 24_B, 32_B, 0_B};
  s.plan.spaces = {{40_B, 32_B}, {64_B, 64_B}};
  return s;
}

std::string text_of(const std::optional<PlanViolation>& violation) {
  return violation ? violation->text : "";
}

TEST(PlanCheck, PassesAValidPlan) {
  const Sample s = sample();
  EXPECT_TRUE(check_problem(s.problem).status.is_ok());
  EXPECT_EQ(text_of(check_plan(s.problem, s.plan.offsets, Capacities::kHeld)), "");
  EXPECT_EQ(text_of(check_answer(s.problem, s.plan)), "");
  EXPECT_EQ(text_of(check_answer({}, {{}, {{0_B, 0_B}}, {}})), "");
}

TEST(PlanCheck, FiresOnEveryPlantedFault) {
  struct Planted {
    Rule rule;
    const char* text;
    std::function<void(Sample*)> plant;
  };
  const std::vector<Planted> all{
      {Rule::kCount, "5 offsets for 6 buffers", [](Sample* s) { s->plan.offsets.pop_back(); }},
      {Rule::kCount, "1 answers for 2 spaces", [](Sample* s) { s->plan.spaces.pop_back(); }},
      {Rule::kNowhere, "buffer 3 has no offset",
       [](Sample* s) { s->plan.offsets[3] = plan::kNowhere; }},
      {Rule::kCapacity, "buffer 5 ends over 2^62",
       [](Sample* s) { s->plan.offsets[5] = plan::kPlanBytesMax - 63_B; }},
      {Rule::kCapacity, "buffer 5 ends over 2^62",
       [](Sample* s) { s->plan.offsets[5] = plan::kNowhere - 1_B; }},
      {Rule::kAlignment, "buffer 1 is at 4, no multiple of 8",
       [](Sample* s) { s->plan.offsets[0] = s->plan.offsets[1] = 4_B; }},
      {Rule::kPin, "buffer 4 is at 33 and pinned to 32",
       [](Sample* s) { s->plan.offsets[4] = 33_B; }},
      {Rule::kGroup, "buffers 0 and 1 are of one alias group, at 0 and 48",
       [](Sample* s) { s->plan.offsets[1] = 48_B; }},
      {Rule::kOverlap, "buffers 0 and 2 are both live at 0 and share bytes [12, 16)",
       [](Sample* s) { s->plan.offsets[2] = 12_B; }},
      {Rule::kOverlap, "buffers 2 and 4 are both live at 2 and share bytes [32, 33)",
       [](Sample* s) { s->plan.offsets[2] = 25_B; }},
      {Rule::kOverlap, "buffers 1 and 3 are both live at 5 and share bytes [23, 24)",
       [](Sample* s) { s->plan.offsets[3] = 23_B; }},
      {Rule::kOverlap, "buffers 0 and 3 are both live at 4 and share bytes [0, 8)",
       [](Sample* s) { s->plan.offsets[3] = 0_B; }},
      {Rule::kOverlap, "buffers 1 and 2 are both live at 6 and share bytes [16, 24)",
       [](Sample* s) { s->plan.offsets[2] = 16_B; }},
      {Rule::kPeak, "space 0 ends at 40, not at 39",
       [](Sample* s) { s->plan.spaces[0].peak = 39_B; }},
      {Rule::kPeak, "space 1 ends at 64, not at 65",
       [](Sample* s) { s->plan.spaces[1].peak = 65_B; }},
      {Rule::kLowerBound, "space 0 ends at 40, below its lower bound 41",
       [](Sample* s) { s->plan.spaces[0].lower_bound = 41_B; }},
      {Rule::kCannotFit, "buffer 6 is listed as misfit and does not exist",
       [](Sample* s) { s->plan.cannot_fit = {6}; }},
      {Rule::kCannotFit, "buffer 2 is listed as misfit, in a space that may fit",
       [](Sample* s) { s->plan.cannot_fit = {2}; }},
  };
  for (const Planted& planted : all) {
    Sample s = sample();
    planted.plant(&s);
    const std::optional<PlanViolation> violation = check_answer(s.problem, s.plan);
    ASSERT_TRUE(violation.has_value()) << planted.text;
    EXPECT_EQ(violation->rule, planted.rule) << planted.text;
    EXPECT_EQ(violation->text, planted.text);
  }
}

TEST(PlanCheck, ChecksCapacitiesOnlyIfAsked) {
  Sample s = sample();
  s.problem.spaces[0].capacity = 39_B;
  EXPECT_EQ(text_of(check_plan(s.problem, s.plan.offsets)), "");
  EXPECT_EQ(text_of(check_plan(s.problem, s.plan.offsets, Capacities::kHeld)),
            "buffer 4 ends at 40, past the capacity 39");
}

TEST(PlanCheck, AsksForBuffersThatCannotFitOfEachMisfitAndNoOtherSpace) {
  Sample s = sample();
  s.problem.spaces[0].capacity = 24_B;
  s.plan.cannot_fit = {0, 2};
  EXPECT_EQ(text_of(check_answer(s.problem, s.plan)), "");
  s.plan.cannot_fit = {0, 2, 0};
  EXPECT_EQ(text_of(check_answer(s.problem, s.plan)), "buffer 0 is listed twice as misfit");
  s.plan.cannot_fit = {0, 2, 5};
  EXPECT_EQ(text_of(check_answer(s.problem, s.plan)),
            "buffer 5 is listed as misfit, in a space that may fit");
  s.problem.spaces[1].capacity = 63_B;
  EXPECT_EQ(text_of(check_answer(s.problem, s.plan)), "");
  s.plan.cannot_fit = {0, 2};
  EXPECT_EQ(text_of(check_answer(s.problem, s.plan)),
            "space 1 cannot fit, and none of its buffers is listed as misfit");
}

TEST(PlanCheck, NamesBuffersByTheirIds) {
  Sample s = sample();
  s.problem.ids = {"conv1", "relu1", "bias", "tmp", "io", "w"};
  s.plan.offsets[2] = 16_B;
  EXPECT_EQ(text_of(check_plan(s.problem, s.plan.offsets)),
            "buffers relu1 and bias are both live at 6 and share bytes [16, 24)");
}

TEST(PlanCheck, FindsTheOverlapThatComparingEveryPairFinds) {
  Random random(4);
  int found = 0;
  for (int i = 0; i < 30000; ++i) {
    const Problem problem = generate_problem(&random, {12, 14, 6});
    std::vector<Bytes> offsets = generate_plan(&random, problem);
    ASSERT_EQ(text_of(check_plan(problem, offsets)), "") << i;
    ASSERT_FALSE(first_overlap_by_pairs(problem, offsets).has_value()) << i;
    if (offsets.empty()) continue;
    // Move one buffer onto another, and its group with it.
    const std::uint64_t moved = random.below(offsets.size());
    const Bytes to = offsets[random.below(offsets.size())];
    const std::uint32_t group = problem.buffers[moved].group;
    for (std::size_t b = 0; b < offsets.size(); ++b) {
      if (b == moved || (group != plan::kNoGroup && problem.buffers[b].group == group))
        offsets[b] = to;
    }
    const std::optional<PlanViolation> violation = check_plan(problem, offsets);
    if (violation && violation->rule != Rule::kOverlap) continue;
    const std::optional<plan::Time> expected = first_overlap_by_pairs(problem, offsets);
    ASSERT_EQ(violation.has_value(), expected.has_value()) << i;
    if (!violation) continue;
    ++found;
    ASSERT_EQ(violation->at, *expected) << i;
    ASSERT_LT(violation->one, violation->other) << i;
    ASSERT_TRUE(share_bytes(problem, offsets, violation->one, violation->other)) << i;
    ASSERT_EQ(first_meeting(problem, violation->one, violation->other), expected) << i;
  }
  EXPECT_GT(found, 5000);
}

}  // namespace
}  // namespace ashlar::spec
