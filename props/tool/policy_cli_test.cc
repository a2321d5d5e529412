// `ashlar replay --policy` from end to end: figures that can be computed by hand, usage, and tables that
// fit a terminal.
//
// Imitates: people who compare allocators before they choose one. Does not prove: that the simulated
// policies are right (policy_test.cc, policy_traces_test.cc).
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "props/tool/cli.h"

namespace {

using Json = nlohmann::json;
using ashlar::props::Ran;

constexpr std::uint64_t kMiB = 1 << 20;

class PolicyCliTest : public ashlar::props::Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    // 32 MiB, which are free when 48 MiB are asked for, and 1000 bytes that stay.
    write("t.trace",
          "{\"format\":\"alloc-trace\",\"version\":1}\n"
          "a 0 33554432\na 1 1000\nf 0\na 2 50331648\nf 2\nf 1\n");
  }

  Json policies_of(const std::string& arguments) {
    const Ran ran = run("replay --json - " + arguments + " t.trace");
    EXPECT_EQ(ran.code, 0) << ran.err;
    const Json json = Json::parse(ran.out, nullptr, false);
    return json.is_array() && json[0].contains("policies") ? json[0]["policies"] : Json::array();
  }
};

TEST_F(PolicyCliTest, EachPolicyHasItsOwnFiguresInTheOrderAskedFor) {
  const Json rows = policies_of("--policy all");
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0]["policy"], "ashlar");
  EXPECT_EQ(rows[0]["smallest_capacity_bytes"], 50 * kMiB);
  const Json& segments = rows[1];
  EXPECT_EQ(segments["policy"], "pytorch");
  EXPECT_EQ(segments["peak_reserved_bytes"], (32 + 2 + 48) * kMiB);
  EXPECT_DOUBLE_EQ(segments["used"].get<double>(), (48.0 * kMiB + 1000) / (82.0 * kMiB));
  EXPECT_EQ(segments["smallest_capacity_bytes"], 50 * kMiB) << "the 32 MiB go back";
  EXPECT_EQ(segments["calls"], 3);
  EXPECT_EQ(segments["driver_calls"]["segment-alloc"], 3);
  EXPECT_EQ(segments["driver_us"], 3 * 80 + 2 * (16 + 1 + 24)) << "the cost model's figures";
  EXPECT_EQ(segments["waits"], 0);
  EXPECT_EQ(segments["ooms"], 0);
  const Json& expandable = rows[2];
  EXPECT_EQ(expandable["policy"], "pytorch-expandable");
  EXPECT_EQ(expandable["peak_reserved_bytes"], (3 * 20 + 2) * kMiB) << "the 40 MiB grow in place";
  EXPECT_EQ(expandable["smallest_capacity_bytes"], 62 * kMiB);
  EXPECT_EQ(expandable["driver_calls"]["page-create"], 4);
  EXPECT_EQ(expandable["driver_calls"]["address-reserve"], 2);
  EXPECT_EQ(rows[3]["policy"], "planned");
  EXPECT_EQ(rows[3]["smallest_capacity_bytes"], 50 * kMiB);
  EXPECT_EQ(policies_of("--policy pytorch,ashlar")[1]["policy"], "ashlar");
  EXPECT_TRUE(policies_of("").empty()) << "nothing is compared unless asked for";
}

TEST_F(PolicyCliTest, ACapacityIsThatOfTheDeviceForEveryPolicy) {
  const Json least = policies_of("--policy pytorch --capacity auto")[0];
  EXPECT_EQ(least["peak_reserved_bytes"], 50 * kMiB);
  EXPECT_EQ(least["waits"], 1) << "before the 32 MiB go back";
  const Json given = policies_of("--policy pytorch-expandable --capacity 60MiB")[0];
  EXPECT_EQ(given["ooms"], 1) << "60 MiB of pages and 2 MiB do not fit";
  EXPECT_EQ(given["smallest_capacity_bytes"], 62 * kMiB);
}

TEST_F(PolicyCliTest, WhatCannotBeComparedIsAUsageError) {
  for (const char* arguments :
       {"--policy torch", "--policy ashlar,ashlar", "--policy all --planned",
        "--policy all --device host", "--policy all --capacity settled"}) {
    const Ran ran = run(std::string("replay t.trace ") + arguments);
    EXPECT_EQ(ran.code, 2) << arguments;
    EXPECT_EQ(ran.out, "") << arguments;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
}

TEST_F(PolicyCliTest, EveryTableFitsAHundredColumns) {
  const std::string name(60, 'n');
  write(name + ".trace",
        "{\"format\":\"alloc-trace\",\"version\":1}\na 0 250000000000\nf 0\na 1 4294967295\n");
  for (const char* more :
       {"", " --capacity 4TiB", " --capacity auto", " --planned", " --policy all --check"}) {
    const Ran ran = run("replay t.trace " + name + ".trace" + more);
    EXPECT_EQ(ran.code, 0) << ran.err;
    std::istringstream lines(ran.out);
    for (std::string line; std::getline(lines, line);) {
      // A sentence may name a trace in full.
      if (line.find(": ") != std::string::npos) continue;
      EXPECT_LE(line.size(), 100u) << more << line;
    }
  }
}

}  // namespace
