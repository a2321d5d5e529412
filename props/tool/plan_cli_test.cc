// `ashlar plan` from end to end: exit codes, exact messages, JSON, files that come back.
//
// Imitates: people at a shell and scripts that parse what it prints. Does not prove: that plans are good (props/plan, bench).
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "props/tool/cli.h"

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

using ashlar::props::Ran;
using ashlar::props::slurp;

class PlanCliTest : public ashlar::props::Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    write("two.csv", "id,lower,upper,size\na,0,4,48\nb,2,6,16\nc,4,8,48\n");
  }
  Ran run(const std::string& arguments) { return Cli::run("plan " + arguments); }
  Json json(const std::string& arguments, int code = 0) {
    const Ran ran = run(arguments + " --json -");
    EXPECT_EQ(ran.code, code) << ran.err;
    return Json::parse(ran.out, nullptr, false);
  }
};

TEST_F(PlanCliTest, SaysWhatItFound) {
  const Json json = this->json("two.csv");
  EXPECT_EQ(json["buffers"], 3);
  EXPECT_EQ(json["lower_bound_bytes"], 64);
  EXPECT_EQ(json["peak_bytes"], 64);
  EXPECT_EQ(json["gap"], 0.0);
  EXPECT_EQ(json["proved_optimal"], true);
  EXPECT_EQ(json["feasible"], true);
  EXPECT_TRUE(json["capacity_bytes"].is_null());
  EXPECT_TRUE(json["seconds"].is_number());
}

TEST_F(PlanCliTest, ACapacityThatCannotBeMetExitsOneAndStillWritesTheBestPlan) {
  const Json json = this->json("two.csv --capacity 63 -o best.csv", 1);
  EXPECT_EQ(json["feasible"], false);
  EXPECT_EQ(json["capacity_bytes"], 63);
  EXPECT_EQ(json["cannot_fit"], Json({"a", "b"}));
  EXPECT_EQ(run("--verify best.csv two.csv").code, 0);
}

TEST_F(PlanCliTest, EachSpaceHasItsCapacityAndSaysWhatCannotFitInIt) {
  write("spaces.csv", "id,lower,upper,size,space\na,0,4,48,fast\nb,2,6,16,fast\nc,0,4,48,a=b\nd,2,6,16,a=b\n");
  Json json = this->json("spaces.csv --capacity 63", 1);
  ASSERT_EQ(json["spaces"].size(), 2u);
  EXPECT_EQ(json["spaces"][0]["cannot_fit"], Json({"a", "b"}));
  EXPECT_EQ(json["spaces"][1]["cannot_fit"], Json({"c", "d"}));
  json = this->json("spaces.csv --capacity 1KiB --capacity a=b=63", 1);
  EXPECT_EQ(json["spaces"][0]["capacity_bytes"], 1024);
  EXPECT_EQ(json["spaces"][0]["feasible"], true);
  EXPECT_FALSE(json["spaces"][0].contains("cannot_fit"));
  EXPECT_EQ(json["spaces"][1]["capacity_bytes"], 63);
  EXPECT_EQ(json["spaces"][1]["cannot_fit"], Json({"c", "d"}));
  json = this->json("--capacity fast=64 spaces.csv");
  EXPECT_EQ(json["spaces"][0]["capacity_bytes"], 64);
  EXPECT_TRUE(json["spaces"][1]["capacity_bytes"].is_null());
  EXPECT_NE(run("spaces.csv --capacity fast=63").out.find("cannot fit in 63 B\n  2 buffers that cannot fit together: a b\n"),
            std::string::npos);
  Ran ran = run("spaces.csv --capacity slow=63");
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.err, "--capacity: there is no space 'slow'\n");
  ran = run("spaces.csv --capacity fast=much");
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.err, "--capacity: 'fast=much' is not a size, nor NAME=SIZE\n");
}

TEST_F(PlanCliTest, ThreadsChangeNothingInThePlan) {
  std::string rows = "id,lower,upper,size\n";
  for (int i = 0; i < 90; ++i) {
    const int lower = i * 37 % 50;
    rows += std::to_string(i) + "," + std::to_string(lower) + "," + std::to_string(lower + 1 + i * 13 % 17) + "," +
            std::to_string(1 + i * 29 % 97) + "\n";
  }
  write("many.csv", rows);
  ASSERT_EQ(run("many.csv --work 300000 -o one.bin").code, 0);
  ASSERT_EQ(run("many.csv --work 300000 --threads 3 -o three.bin").code, 0);
  EXPECT_EQ(slurp(folder_ / "one.bin"), slurp(folder_ / "three.bin"));
}

TEST_F(PlanCliTest, PlansComeBackFromBothKindsOfFile) {
  for (const std::string name : {"plan.csv", "plan.csv.gz", "plan.bin"}) {
    ASSERT_EQ(run("two.csv -o " + name).code, 0);
    const Ran ran = run("--verify " + name + " two.csv");
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.out, name + ": a valid plan of 3 buffers\n");
    EXPECT_EQ(json("two.csv --work 0 --warm-start " + name)["peak_bytes"], 64);
  }
}

TEST_F(PlanCliTest, APlanThatIsNoneIsSaidToBeNone) {
  write("bad.csv", "id,lower,upper,size,offset\na,0,4,48,0\nb,2,6,16,32\nc,4,8,48,0\n");
  Ran ran = run("--verify bad.csv two.csv");
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.err, "bad.csv: buffers a and b are both live at 2 and share bytes [32, 48)\n");
  write("less.csv", "id,lower,upper,size,offset\na,0,4,48,0\nb,2,6,16,48\n");
  ran = run("--verify less.csv two.csv");
  EXPECT_EQ(ran.code, 3);
  EXPECT_EQ(ran.err, "less.csv: says no offset for buffer c\n");
  ASSERT_EQ(run("two.csv -o two.bin").code, 0);
  write("other.csv", "id,lower,upper,size\na,0,4,49\nb,2,6,16\nc,4,8,48\n");
  ran = run("--verify two.bin other.csv");
  EXPECT_EQ(ran.code, 3);
  EXPECT_EQ(ran.err, "two.bin: made for another problem\n");
}

TEST_F(PlanCliTest, BadInputIsOneLineThatNamesTheRow) {
  const struct {
    const char* row;
    const char* says;
  } rows[] = {{"d,4,4,8", "upper"}, {"d,0,4,-8", "size"}, {"d,0,4,18446744073709551616", "size"}, {"a,0,4,8", "id"}, {"d,0,4", "field"}};
  for (const auto& row : rows) {
    write("bad.csv", std::string("id,lower,upper,size\na,0,4,48\n") + row.row + "\n");
    const Ran ran = run("bad.csv -o out.csv");
    EXPECT_EQ(ran.code, 3) << row.row;
    EXPECT_EQ(ran.err.rfind("bad.csv:3: ", 0), 0u) << ran.err;
    EXPECT_NE(ran.err.find(row.says), std::string::npos) << ran.err;
    EXPECT_EQ(ran.err.find('\n'), ran.err.size() - 1);
    EXPECT_FALSE(fs::exists(folder_ / "out.csv"));
  }
  EXPECT_EQ(run("absent.csv").err, "absent.csv: No such file or directory\n");
}

TEST_F(PlanCliTest, TheCommandLineIsHeldToItsForm) {
  EXPECT_EQ(run("").code, 2);
  EXPECT_EQ(run("two.csv --from-trace two.csv").code, 2);
  EXPECT_EQ(run("two.csv --capacity much").code, 2);
  EXPECT_EQ(run("two.csv --time-limit -1").code, 2);
  EXPECT_EQ(run("two.csv --threads 0").code, 2);
  EXPECT_EQ(run("two.csv --no-such-flag").code, 2);
}

TEST_F(PlanCliTest, ATraceIsAProblemWithASpaceForEachStream) {
  write("t.trace", "{\"format\":\"alloc-trace\",\"version\":1}\na 1 100\na 2 50\nf 1\na 3 100\na 4 7 9\na 5 0\nf 2\n");
  const Json json = this->json("--from-trace t.trace");
  EXPECT_EQ(json["buffers"], 4);
  ASSERT_EQ(json["spaces"].size(), 2u);
  EXPECT_EQ(json["spaces"][0]["peak_bytes"], 150);
  EXPECT_EQ(json["spaces"][1]["peak_bytes"], 7);
}

TEST_F(PlanCliTest, ThePageIsWritten) {
  ASSERT_EQ(run("two.csv --report page.html").code, 0);
  EXPECT_NE(slurp(folder_ / "page.html").find("</html>"), std::string::npos);
}

}  // namespace
