// `ashlar replay --planned` from end to end: its plans, limits and plan files, and how near planned memory comes to live memory.
//
// Imitates: steps of real models (bench/data), also at other sizes, as with another batch or model. Does not prove: that the
// plans hold for the other shared traces and more seeds (ci/figures/perturbed).
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "props/tool/cli.h"

namespace {

using Json = nlohmann::json;

using ashlar::props::Ran;

class PlannedCliTest : public ashlar::props::Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    write("t.trace",
          "{\"format\":\"alloc-trace\",\"version\":1}\na 1 5000\na 2 900\nf 1\na 3 5000\na 4 70 9\n"
          "a 5 0\nf 2\nf 3\na 6 3000\n");
  }
  Json json(const std::string& arguments, int code = 0) {
    const Ran ran = run("replay --planned --json - " + arguments);
    EXPECT_EQ(ran.code, code) << ran.err;
    return Json::parse(ran.out, nullptr, false);
  }
  void expect_refused(const std::string& arguments, int code, const std::string& line) {
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.code, code) << arguments;
    EXPECT_EQ(ran.err, line + "\n") << arguments;
  }
};

TEST_F(PlannedCliTest, APlanOfTheTraceServesItAndOneOfAnotherTraceIsRefused) {
  for (const char* file : {"t.plan", "t.csv"}) {
    ASSERT_EQ(run(std::string("plan --from-trace t.trace --work 1000 -o ") + file).code, 0);
    const Json planned = json(std::string("--check --plan ") + file + " t.trace")[0].at("planned");
    EXPECT_EQ(planned["served"], 5) << file;
    EXPECT_EQ(planned["fallbacks"], 0) << file;
    EXPECT_EQ(planned["plan_peak_bytes"], 5120 + 900 + 70) << file;
  }
  expect_refused("replay --planned --plan t.plan --perturb sizes t.trace", 3,
                 "t.plan: made for another problem: other buffers, or another alignment");
  expect_refused("replay --planned --plan absent.plan t.trace", 3,
                 "absent.plan: No such file or directory");
  // At alignment 1 the buffers lie where a replay cannot have them.
  ASSERT_EQ(run("plan --from-trace t.trace --work 1000 --alignment 1 -o one.csv").code, 0);
  const Ran ran = run("replay --planned --plan one.csv t.trace");
  EXPECT_EQ(ran.code, 3);
  EXPECT_EQ(ran.err.rfind("one.csv: not a plan of t: ", 0), 0u) << ran.err;
}

/// The many buffers are too many to be searched: their granules are counted, and the last bytes are
/// not known, because the buffer of one byte might have been on top.
TEST_F(PlannedCliTest, WhatIsProvedLeastSaysOfWhichProblem) {
  const auto proof_of = [this](const std::string& arguments) {
    return Json::parse(run("plan --json - " + arguments).out, nullptr, false)["proof"];
  };
  write("two.csv", "id,lower,upper,size,alignment\na,0,4,48,1\nb,2,6,16,1\n");
  EXPECT_EQ(proof_of("two.csv"), "proved least of 2 buffers at any offset");
  EXPECT_NE(run("plan two.csv").out.find(", proved least of 2 buffers at any offset\n"),
            std::string::npos);
  write("mixed.csv", "id,lower,upper,size,alignment\na,0,4,48,16\nb,2,6,16,1\n");
  EXPECT_EQ(proof_of("mixed.csv"), "proved least of 2 buffers at their alignments");
  std::string trace = "{\"format\":\"alloc-trace\",\"version\":1}\na 9999 1\nf 9999\n";
  for (int i = 0; i < 4000; ++i)
    trace += "a " + std::to_string(i) + " " + std::to_string(600 + i % 400) + "\n";
  write("many.trace", trace);
  EXPECT_EQ(proof_of("--from-trace many.trace --work 1000000"),
            "proved least in multiples of 512 B, of 4001 buffers at such offsets");
}

TEST_F(PlannedCliTest, LimitsAreThoseOfPlanAndNeedPlanned) {
  for (const char* limit : {"--work 0", "--work 1000", "--time-limit 0", "--time-limit 0.01"}) {
    const Json planned = json(std::string(limit) + " t.trace")[0].at("planned");
    EXPECT_EQ(planned["served"], 5) << limit;
  }
  expect_refused("replay --work 5 t.trace", 2, "--time-limit, --work: need --planned");
  expect_refused("replay --time-limit 5 t.trace", 2, "--time-limit, --work: need --planned");
  expect_refused("replay --planned --time-limit -1 t.trace", 2,
                 "--time-limit: between 0 and 1000000 seconds");
  expect_refused("replay --plan t.plan t.trace", 2, "--plan: needs --planned");
  expect_refused("replay --planned --plan t.plan --work 5 t.trace", 2,
                 "--time-limit, --work: nothing is planned with --plan");
  expect_refused("replay --planned --plan t.plan t.trace t.trace", 2,
                 "--plan: give the one trace that it is a plan of");
}

TEST_F(PlannedCliTest, PerturbedSizesAreOtherSizesAndTheSameForTheSameSeed) {
  const Json as_is = json("t.trace")[0];
  for (const char* what : {"sizes", "allocations"}) {
    const std::string perturb = std::string("--perturb ") + what + " t.trace";
    const Json one = json(perturb)[0], again = json(perturb + " --seed 1")[0],
               two = json(perturb + " --seed 2")[0];
    EXPECT_EQ(one["perturb"], what);
    EXPECT_EQ(one["peak_requested_bytes"], again["peak_requested_bytes"]);
    EXPECT_NE(one["peak_requested_bytes"], two["peak_requested_bytes"]);
    EXPECT_NE(one["peak_requested_bytes"], as_is["peak_requested_bytes"]);
  }
  EXPECT_EQ(run("replay --perturb all t.trace").code, 2);
}

/// Planned memory, of traces with other sizes, is within 0.5 % of live memory. A device gives its memory
/// in pages of 2 MiB, which is 1 % of the smallest trace's: so one page may come on top.
TEST_F(PlannedCliTest, PlannedMemoryIsWithinHalfAPercentOfLiveMemoryAtOtherSizesToo) {
  constexpr double kMost = 1.005;
  constexpr double kPage = 2 << 20;
  const std::string folder = ASHLAR_TRACES_PATH;
  const std::string traces =
      "'" + folder + "/graphsage_sampled_train.trace.gz' '" + folder +
      "/resnet50_train.trace.gz' '" + folder + "/gpt2_small_train.trace.gz' '" + folder +
      "/vgg16_infer_varbatch.trace.gz' '" + folder + "/efficientnet_b0_infer_varbatch.trace.gz' ";
  for (const char* perturb : {"--perturb sizes --seed 1", "--perturb allocations --seed 1",
                              "--perturb allocations --seed 10"}) {
    for (const Json& result : json(traces + perturb)) {
      const auto live = result["peak_requested_bytes"].get<double>();
      const auto planned = result["planned"]["plan_peak_bytes"].get<double>();
      const auto reserved = result["peak_reserved_bytes"].get<double>();
      EXPECT_LE(planned, kMost * live) << result["trace"] << " " << perturb;
      EXPECT_LE(reserved, kMost * live + kPage) << result["trace"] << " " << perturb;
      EXPECT_EQ(result["planned"]["fallbacks"], 0) << result["trace"] << " " << perturb;
    }
  }
}

}  // namespace
