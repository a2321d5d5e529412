// Plan files: the bytes of one, the round trip of random ones, and that no faulty file is loaded.
//
// Imitates: files cut off, damaged, from another version, or for another problem, and plans that a
// faulty writer made. Does not prove: that no bytes make the reader crash; fuzz/plan_file_fuzz.cc
// looks for some.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>

#include <ashlar/plan/fnv.h>
#include <ashlar/plan/plan_file.h>

#include "props/plan/generate.h"

namespace ashlar::plan {
namespace {

using namespace std::string_view_literals;

Problem sample_problem() {
  Problem problem;
  problem.buffers = {plain_buffer(0, 5, 16), plain_buffer(2, 9, 8), plain_buffer(4, 6, 24)};
  problem.groups = {"g"};
  problem.buffers[0].group = problem.buffers[1].group = 0;
  problem.buffers[0].pinned = 24_B;
  problem.buffers[2].alignment = 8_B;
  return problem;
}

Plan sample_plan() {
  Plan plan;
  plan.offsets = {24_B, 24_B, 0_B};
  plan.spaces = {{40_B, 40_B}};
  return plan;
}

std::string sample_file() { return format_plan(sample_plan(), sample_problem()).value(); }

std::string with_checksum(std::string body) {
  Fnv sum;
  sum.add(body);
  for (unsigned shift = 0; shift < 64; shift += 8)
    body.push_back(static_cast<char>((sum.value() >> shift) & 0xff));
  return body;
}

std::string refusal(std::string_view bytes, const Problem& problem) {
  std::string error;
  const Result<Plan> result = parse_plan(bytes, "p.plan", problem, &error);
  EXPECT_EQ(result.code(), Code::kMalformed);
  EXPECT_EQ(parse_plan(bytes, "p.plan", problem, nullptr).code(), Code::kMalformed);
  return error;
}

void expect_same(const Plan& a, const Plan& b) {
  EXPECT_EQ(a.offsets, b.offsets);
  EXPECT_EQ(a.spaces, b.spaces);
}

TEST(PlanFile, HasTheSameBytesOnEveryMachine) {
  Problem problem;
  problem.buffers = {plain_buffer(0, 1, 0x0102)};
  Plan plan;
  plan.offsets = {0x0a0b_B};
  plan.spaces = {{0x0b0d_B, 0x0102_B}};
  EXPECT_EQ(format_plan(plan, problem).value(),
            "\x89"
            "APLAN\r\n"
            "\x01\0\0\0"                            // version
            "\x01\0\0\0"                            // spaces
            "\x01\0\0\0\0\0\0\0"                    // buffers
            "\x94\x50\x37\xdb\x80\x84\x72\xcf"      // hash
            "\x0d\x0b\0\0\0\0\0\0"                  // peak
            "\x02\x01\0\0\0\0\0\0"                  // lower bound
            "\x0b\x0a\0\0\0\0\0\0"                  // offset
            "\x67\xa1\x4d\x3f\x81\x2f\x69\xb1"sv);  // checksum
}

TEST(PlanFile, GivesBackThePlanWithoutCannotFit) {
  Plan plan = sample_plan();
  plan.cannot_fit = {1};
  const std::string file = format_plan(plan, sample_problem()).value();
  EXPECT_EQ(file, sample_file());
  std::string error;
  const Result<Plan> again = parse_plan(file, "p.plan", sample_problem(), &error);
  ASSERT_TRUE(again.is_ok()) << error;
  expect_same(again.value(), plan);
  EXPECT_TRUE(again.value().cannot_fit.empty());
}

TEST(PlanFile, GivesBackRandomPlans) {
  spec::Random random(7);
  for (int i = 0; i < 3000; ++i) {
    const Problem problem = generate_problem(&random, {10, 12, 9});
    Plan plan;
    plan.offsets = generate_plan(&random, problem);
    plan.spaces.resize(problem.spaces.size());
    for (std::size_t b = 0; b < problem.buffers.size(); ++b) {
      Bytes& peak = plan.spaces[problem.buffers[b].space].peak;
      peak = std::max(peak, plan.offsets[b] + problem.buffers[b].size);
    }
    const Result<std::string> file = format_plan(plan, problem);
    ASSERT_TRUE(file.is_ok()) << i;
    std::string error;
    const Result<Plan> again = parse_plan(file.value(), "p.plan", problem, &error);
    ASSERT_TRUE(again.is_ok()) << error;
    expect_same(again.value(), plan);
  }
}

TEST(PlanFile, IsRefusedIfItIsCutOffAnywhere) {
  const std::string file = sample_file();
  for (std::size_t size = 0; size < file.size(); ++size) {
    const std::string error = refusal(std::string_view(file).substr(0, size), sample_problem());
    EXPECT_EQ(error.rfind(size < 8 ? "p.plan: not a plan file" : "p.plan: cut off", 0), 0u)
        << error;
  }
  EXPECT_EQ(refusal(file.substr(0, 79), sample_problem()), "p.plan: cut off after 79 of 80 bytes");
  EXPECT_EQ(refusal(file + '\n', sample_problem()), "p.plan: bytes follow the plan");
}

TEST(PlanFile, IsRefusedIfAnyBitIsWrong) {
  const std::string file = sample_file();
  for (std::size_t bit = 0; bit < file.size() * 8; ++bit) {
    std::string damaged = file;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_NE(refusal(damaged, sample_problem()), "") << bit;
  }
  std::string damaged = file;
  damaged[60] = 1;
  EXPECT_EQ(refusal(damaged, sample_problem()), "p.plan: damaged: the checksum does not match");
  damaged = file;
  damaged[8] = 2;
  EXPECT_EQ(refusal(damaged, sample_problem()), "p.plan: version 2; only version 1 can be read");
  damaged = file;
  damaged[22] = 1;
  EXPECT_EQ(refusal(damaged, sample_problem()), "p.plan: damaged: more than 2^28 buffers");
  EXPECT_EQ(refusal("id,lower,upper,size\n", sample_problem()), "p.plan: not a plan file");
}

TEST(PlanFile, IsRefusedForAnotherProblem) {
  Problem other = sample_problem();
  other.buffers[1].life.upper = 8;
  EXPECT_EQ(refusal(sample_file(), other),
            "p.plan: made for another problem: other buffers, or another alignment");
}

// The sample file with one number replaced, and a checksum that matches.
std::string with_number(std::size_t at, std::uint64_t number) {
  std::string body = sample_file();
  body.resize(body.size() - 8);
  for (unsigned i = 0; i < 8; ++i) body[at + i] = static_cast<char>((number >> (8 * i)) & 0xff);
  return with_checksum(body);
}

TEST(PlanFile, IsRefusedWhenItHoldsNoValidPlan) {
  const Problem problem = sample_problem();
  const std::size_t peak = 32;
  const std::size_t lower_bound = 40;
  const std::size_t offset = 48;
  EXPECT_EQ(refusal(with_number(offset, ~std::uint64_t{0}), problem),
            "p.plan: buffer 0 has no offset");
  EXPECT_EQ(refusal(with_number(offset, ~std::uint64_t{0} - 8), problem),
            "p.plan: buffer 0 ends over 2^62");
  EXPECT_EQ(refusal(with_number(offset, 32), problem), "p.plan: buffer 0 is not at its pin");
  EXPECT_EQ(refusal(with_number(offset + 8, 32), problem),
            "p.plan: buffer 0 and buffer 1 are in one alias group at different offsets");
  EXPECT_EQ(refusal(with_number(offset + 16, 4), problem), "p.plan: buffer 2 is not aligned");
  EXPECT_EQ(refusal(with_number(offset + 16, 8), problem),
            "p.plan: buffer 1 and buffer 2 are live at the same time and overlap");
  EXPECT_EQ(refusal(with_number(peak, 41), problem),
            "p.plan: space 0: the stated peak is not the highest end");
  EXPECT_EQ(refusal(with_number(lower_bound, 41), problem),
            "p.plan: space 0: the lower bound is above the peak");
  EXPECT_TRUE(parse_plan(with_number(lower_bound, 39), "p.plan", problem, nullptr).is_ok());
}

TEST(PlanFile, IsNotWrittenIfItsReaderWouldRefuseIt) {
  Plan plan = sample_plan();
  plan.offsets.pop_back();
  EXPECT_EQ(format_plan(plan, sample_problem()).code(), Code::kInvalidArgument);
  plan = sample_plan();
  plan.spaces.clear();
  EXPECT_EQ(format_plan(plan, sample_problem()).code(), Code::kInvalidArgument);
  plan = sample_plan();
  plan.offsets[2] = 8_B;
  EXPECT_EQ(format_plan(plan, sample_problem()).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace ashlar::plan
