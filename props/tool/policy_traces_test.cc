// PyTorch's two policies on recorded traces, against figures that another program gave: the part of the
// reserved bytes that is used, to a tenth of a point.
//
// Imitates: training, inference and serving, with up to 700,000 events a trace. Does not prove: that the
// other program is right; it had a naive second implementation of its own. Traces that are not on this
// machine are named as skipped.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "src/tool/policy_pass.h"
#include "src/tool/trace_file.h"

namespace {

namespace fs = std::filesystem;
using ashlar::Bytes;
using ashlar::tool::PolicyKind;

// In points; the figures have one decimal.
constexpr double kTolerance = 0.1;

// The trace's file in one of the folders that hold traces, or nothing.
std::optional<fs::path> file_of(const std::string& name) {
  for (const char* folder :
       {ASHLAR_TRACES_PATH, ASHLAR_MORE_TRACES_PATH "/cpu", ASHLAR_MORE_TRACES_PATH "/gpu"}) {
    const fs::path path = fs::path(folder) / (name + ".trace.gz");
    if (fs::exists(path)) return path;
  }
  return std::nullopt;
}

void compare(const std::string& figures, PolicyKind kind) {
  std::ifstream file(fs::path(ASHLAR_TRACES_PATH) / figures);
  ASSERT_TRUE(file.is_open()) << figures;
  unsigned compared = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    std::istringstream fields(line);
    std::string name;
    double percent = 0;
    ASSERT_TRUE(fields >> name >> percent) << line;
    const auto path = file_of(name);
    if (!path) {
      std::cout << "skipped: " << name << " (no such trace here)\n";
      continue;
    }
    std::string error;
    const auto trace = ashlar::tool::read_trace(path->string(), &error);
    ASSERT_TRUE(trace) << error;
    const ashlar::tool::PolicyOutcome outcome = policy_pass(*trace, kind, Bytes::max());
    EXPECT_EQ(outcome.ooms, 0u) << name;
    EXPECT_LE(std::abs(100 * outcome.used - percent), kTolerance)
        << name << ": " << 100 * outcome.used << " % and not " << percent << " %";
    ++compared;
  }
  EXPECT_GT(compared, 0u) << "no trace of " << figures << " is here";
}

TEST(PolicyTraces, TheSegmentPolicyUsesWhatTheOtherProgramFound) {
  compare("pytorch_policy.txt", PolicyKind::kPytorch);
}

TEST(PolicyTraces, TheExpandablePolicyUsesWhatTheOtherProgramFound) {
  compare("pytorch_expandable_policy.txt", PolicyKind::kExpandable);
}

}  // namespace
