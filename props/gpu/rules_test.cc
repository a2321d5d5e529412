// Runs every case of props/rules on the simulated GPU: the rules of CUDA as its documentation
// states them.
//
// Imitates: a conformance run on a real device, which must agree with the same cases.
// Does not prove: that a real device agrees. Each case cites the page that it was written from, or
// says that it is inferred.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "spec/gpu/rule_runner.h"
#include "spec/ops/text.h"

namespace ashlar::spec {
namespace {

std::vector<std::string> case_files() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(ASHLAR_RULES_DIR)) {
    if (entry.path().extension() == ".ops") names.push_back(entry.path().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

OpFile parsed(const std::string& text) {
  OpFile file;
  TextError error;
  EXPECT_TRUE(parse_ops(text, &file, &error)) << error.line << ": " << error.reason;
  EXPECT_EQ(file.subject, Subject::kGpu);
  return file;
}

std::string contents(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

class Rules : public testing::TestWithParam<std::string> {};

TEST_P(Rules, AgreesOnTheSimulatedGpu) {
  const std::string text = contents(GetParam());
  EXPECT_NE(text.find("https://docs.nvidia.com/"), std::string::npos) << "a case cites its page";
  EXPECT_NE(text.find("expect"), std::string::npos) << "a case expects something";
  const RuleReport report = run_rule(parsed(text), make_simulated_machine);
  EXPECT_EQ(report.verdict, RuleVerdict::kAgrees)
      << GetParam() << ":" << report.line << ": " << report.why;
}

// Adversarial addresses and progress do not change an outcome: the rules hold on every seed.
TEST_P(Rules, AgreesOnOtherSeeds) {
  OpFile file = parsed(contents(GetParam()));
  for (std::uint64_t seed = 2; seed < 12; ++seed) {
    const RuleReport report = run_rule(file, [&](SimGpuOptions options) {
      options.seed = seed;
      return make_simulated_machine(options);
    });
    EXPECT_EQ(report.verdict, RuleVerdict::kAgrees)
        << GetParam() << ":" << report.line << ": " << report.why;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Rules, testing::ValuesIn(case_files()),
                         [](const testing::TestParamInfo<std::string>& made) {
                           std::string name = std::filesystem::path(made.param).stem().string();
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

unsigned times(const std::string& text, const std::string& word) {
  unsigned found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++found;
  return found;
}

// The verdicts of a driver, as ashlar_gpu_calibrate writes them: one for each case, and none without a GPU.
TEST(RulesOfADriver, NameEveryCaseOnce) {
  const std::string verdicts = contents(ASHLAR_RULE_VERDICTS);
  for (const std::string& path : case_files()) {
    const std::string rule = std::filesystem::path(path).stem().string();
    EXPECT_EQ(times(verdicts, "\"rule\": \"" + rule + "\""), 1u) << rule;
  }
  const std::size_t cases = case_files().size();
  EXPECT_EQ(times(verdicts, "\"rule\": "), cases);
  EXPECT_EQ(times(verdicts, "\"page\": \"https://docs.nvidia.com/"), cases);
  const unsigned never = times(verdicts, "\"verdict\": \"never run\"");
  const unsigned asked =
      times(verdicts, "\"verdict\": \"agrees\"") + times(verdicts, "\"verdict\": \"differs\"");
  EXPECT_EQ(never + asked, cases);
  const bool has_gpu = times(verdicts, "\"gpu\": null") == 0;
  EXPECT_TRUE(has_gpu || asked == 0) << "without a GPU nothing was asked";
}

TEST(RuleRunner, ReportsWhatDiffers) {
  const RuleReport wrong =
      run_rule(parsed("ashlar-ops 1 gpu\nstream s0 d0\nrecord e0 s0\ndev-query e0\nexpect ok\n"),
               make_simulated_machine);
  EXPECT_EQ(wrong.verdict, RuleVerdict::kDiffers);
  EXPECT_EQ(wrong.line, 5u);
  const RuleReport unexpected =
      run_rule(parsed("ashlar-ops 1 gpu\ndev-malloc m0 d0 0\n"), make_simulated_machine);
  EXPECT_EQ(unexpected.verdict, RuleVerdict::kDiffers);
  EXPECT_EQ(unexpected.line, 2u);
  const RuleReport fault = run_rule(parsed("ashlar-ops 1 gpu\ndev-malloc m0 d0 1\ndev-free "
                                           "m0\ndev-free m0\nexpect invalid-argument\ndrain d0\n"),
                                    make_simulated_machine);
  EXPECT_EQ(fault.verdict, RuleVerdict::kDiffers);
  EXPECT_EQ(fault.line, 4u);
  const RuleReport missing =
      run_rule(parsed("ashlar-ops 1 gpu\ndev-malloc m0 d0 1\nexpect-fault bad-free\n"),
               make_simulated_machine);
  EXPECT_EQ(missing.verdict, RuleVerdict::kDiffers);
}

TEST(RuleRunner, SkipsOpsWhoseNamesAreNotBoundAndReportsMachinesThatCannot) {
  const OpFile file = parsed("ashlar-ops 1 gpu\nstep s3 1\nexpect deadlock\nstream s0 d0\n");
  EXPECT_EQ(run_rule(file, make_simulated_machine).verdict, RuleVerdict::kAgrees);
  const auto none = [](const SimGpuOptions&) { return std::unique_ptr<RuleMachine>(); };
  EXPECT_EQ(run_rule(file, none).verdict, RuleVerdict::kNotRun);
}

}  // namespace
}  // namespace ashlar::spec
