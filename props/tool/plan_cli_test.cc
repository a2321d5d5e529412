// `ashlar plan` from end to end: exit codes, exact messages, JSON, and files that are read back.
//
// Imitates: people at a shell, and scripts that parse the output. Does not prove: that plans are good
// (props/plan, bench).
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

TEST_F(PlanCliTest, ReportsPeakBoundAndProof) {
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

TEST_F(PlanCliTest, ACapacityThatCannotBeMetExitsWithOneAndWritesTheBestPlan) {
  const Json json = this->json("two.csv --capacity 63 -o best.csv", 1);
  EXPECT_EQ(json["feasible"], false);
  EXPECT_EQ(json["capacity_bytes"], 63);
  EXPECT_EQ(json["cannot_fit"], Json({"a", "b"}));
  EXPECT_EQ(run("--verify best.csv two.csv").code, 0);
}

TEST_F(PlanCliTest, EachSpaceHasItsCapacityAndNamesBuffersThatCannotFit) {
  write("spaces.csv",
        "id,lower,upper,size,space\na,0,4,48,fast\nb,2,6,16,fast\nc,0,4,48,a=b\nd,2,6,16,a=b\n");
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
  EXPECT_NE(run("spaces.csv --capacity fast=63")
                .out.find("cannot fit in 63 B\n  2 buffers that cannot fit together: a b\n"),
            std::string::npos);
  Ran ran = run("spaces.csv --capacity slow=63");
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.err, "--capacity: there is no space 'slow'\n");
  ran = run("spaces.csv --capacity fast=much");
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.err,
            "--capacity: 'fast=much' is neither a size nor NAME=SIZE; sizes: 4096, 512K, 80GiB or "
            "1.5GiB (powers of 1024), 10GB (powers of 1000)\n");
}

TEST_F(PlanCliTest, ThreadsChangeNothingInThePlan) {
  std::string rows = "id,lower,upper,size\n";
  for (int i = 0; i < 90; ++i) {
    const int lower = i * 37 % 50;
    rows += std::to_string(i) + "," + std::to_string(lower) + "," +
            std::to_string(lower + 1 + i * 13 % 17) + "," + std::to_string(1 + i * 29 % 97) + "\n";
  }
  write("many.csv", rows);
  ASSERT_EQ(run("many.csv --work 300000 -o one.bin").code, 0);
  ASSERT_EQ(run("many.csv --work 300000 --threads 3 -o three.bin").code, 0);
  EXPECT_EQ(slurp(folder_ / "one.bin"), slurp(folder_ / "three.bin"));
}

TEST_F(PlanCliTest, PlansAreReadBackFromEveryKindOfFile) {
  for (const std::string name : {"plan.csv", "plan.csv.gz", "plan.bin"}) {
    ASSERT_EQ(run("two.csv -o " + name).code, 0);
    const Ran ran = run("--verify " + name + " two.csv");
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.out, name + ": a valid plan of 3 buffers\n");
    EXPECT_EQ(json("two.csv --work 0 --warm-start " + name)["peak_bytes"], 64);
  }
}

TEST_F(PlanCliTest, AnInvalidPlanIsRefused) {
  write("bad.csv", "id,lower,upper,size,offset\na,0,4,48,0\nb,2,6,16,32\nc,4,8,48,0\n");
  Ran ran = run("--verify bad.csv two.csv");
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.err, "bad.csv: buffers a and b are both live at 2 and share bytes [32, 48)\n");
  write("less.csv", "id,lower,upper,size,offset\na,0,4,48,0\nb,2,6,16,48\n");
  ran = run("--verify less.csv two.csv");
  EXPECT_EQ(ran.code, 3);
  EXPECT_EQ(ran.err, "less.csv: has no offset for buffer c\n");
  ASSERT_EQ(run("two.csv -o two.bin").code, 0);
  write("other.csv", "id,lower,upper,size\na,0,4,49\nb,2,6,16\nc,4,8,48\n");
  ran = run("--verify two.bin other.csv");
  EXPECT_EQ(ran.code, 3);
  EXPECT_EQ(ran.err, "two.bin: made for another problem: other buffers, or another alignment\n");
}

TEST_F(PlanCliTest, BadInputIsOneLineThatNamesTheRow) {
  const struct {
    const char* row;
    const char* says;
  } rows[] = {{"d,0,4,-8,,", "size is negative"},
              {"d,0,4,0,,", "its size is zero"},
              {"d,0,4,18446744073709551616,,", "size does not fit in 64 bits"},
              {"d,0,4,9223372036854775808,,", "size is over 2^62"},
              {"d,0,4,4611686018427387900,,", "sizes, padding and pins add up to over 2^62"},
              {"d,0,4,8,,4611686018427387900", "it is pinned to end over 2^62"},
              {"d,4,4,8,,", "upper is not above lower"},
              {"d,5,4,8,,", "upper is not above lower"},
              {"d,0,9223372036854775808,8,,", "upper does not fit in 64 bits"},
              {"a,0,4,8,,", "line 2 has the same id"},
              {"d,3,5,8,,47", "it is pinned onto a pinned buffer that is live with it (line 2)"},
              {"d,0,4,8,24,", "its alignment is not a power of two"},
              {"d,0,4,8,0,", "its alignment is not a power of two"},
              {"d,0,4,8,16,8", "its pin is not aligned"},
              {"d,0,4", "the line has 3 fields, the header 6"},
              {"d,0,4,8,,,", "the line has more fields than the header"},
              {"", "the line is empty"}};
  for (const auto& row : rows) {
    write("bad.csv", std::string("id,lower,upper,size,alignment,pinned\na,0,4,48,,0\n") + row.row +
                         "\nz,9,10,1,,\n");
    for (const std::string flags :
         {"-o out.csv", "--verify two.csv", "--warm-start two.csv -o out.csv"}) {
      const Ran ran = run("bad.csv " + flags);
      EXPECT_EQ(ran.code, 3) << row.row;
      EXPECT_EQ(ran.err, std::string("bad.csv:3: ") + row.says + "\n");
      EXPECT_EQ(ran.out, "");
    }
    EXPECT_FALSE(fs::exists(folder_ / "out.csv"));
  }
}

TEST_F(PlanCliTest, AVerificationWritesNothingAndTakesNoOutputs) {
  ASSERT_EQ(run("two.csv -o two.plan").code, 0);
  for (const std::string output :
       {"-o q.plan", "--json q.json", "--report q.html", "--warm-start two.plan"}) {
    const Ran ran = run("two.csv --verify two.plan " + output);
    EXPECT_EQ(ran.code, 2) << output;
    EXPECT_EQ(
        ran.err,
        "--verify: plans nothing, so -o, --json, --report and --warm-start are not with it\n");
  }
}

TEST_F(PlanCliTest, UnreadableFilesAreReported) {
  EXPECT_EQ(run("absent.csv").err, "absent.csv: No such file or directory\n");
  EXPECT_EQ(run("absent.csv").code, 3);
  EXPECT_EQ(run(".").code, 3);
  EXPECT_EQ(run(".").err, ".: Is a directory\n");
  EXPECT_EQ(run("two.csv --verify absent.plan").err, "absent.plan: No such file or directory\n");
  EXPECT_EQ(run("--from-trace absent.trace").code, 3);
  const Ran ran = run("two.csv -o no/folder.csv");
  EXPECT_EQ(ran.code, 3);
  EXPECT_EQ(ran.err, "no/folder.csv: No such file or directory\n");

  ASSERT_EQ(run("two.csv -o packed.csv.gz").code, 0);
  EXPECT_EQ(json("packed.csv.gz")["peak_bytes"], 64);  // an offset column is not a condition
  const std::string packed = slurp(folder_ / "packed.csv.gz");
  write("cut.csv.gz", packed.substr(0, packed.size() - 9));
  EXPECT_EQ(run("cut.csv.gz").err, "cut.csv.gz: the gzip data is truncated\n");
  EXPECT_EQ(run("cut.csv.gz").code, 3);
  std::string damaged = packed;
  damaged[packed.size() / 2] = static_cast<char>(damaged[packed.size() / 2] ^ 0x55);
  write("damaged.csv.gz", damaged);
  EXPECT_EQ(run("damaged.csv.gz").err, "damaged.csv.gz: the gzip data is damaged\n");
  EXPECT_EQ(run("two.csv --verify damaged.csv.gz").err,
            "damaged.csv.gz: the gzip data is damaged\n");
}

TEST_F(PlanCliTest, PlanFilesThatAreDamagedOrOfAnotherVersionAreRefused) {
  ASSERT_EQ(run("two.csv -o good.plan").code, 0);
  const std::string good = slurp(folder_ / "good.plan");
  const auto refused = [&](std::size_t at, const std::string& says) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 2);
    write("bad.plan", bad);
    for (const std::string flag : {"--verify ", "--warm-start "}) {
      const Ran ran = run("two.csv " + flag + "bad.plan");
      EXPECT_EQ(ran.code, 3);
      EXPECT_EQ(ran.err, "bad.plan: " + says + "\n");
    }
  };
  refused(0, "not a plan file");
  refused(8, "version 3; only version 1 can be read");
  refused(50, "damaged: the checksum does not match");
  refused(good.size() - 1, "damaged: the checksum does not match");
  write("bad.plan", good.substr(0, good.size() - 1));
  EXPECT_EQ(run("two.csv --verify bad.plan").err, "bad.plan: cut off after " +
                                                      std::to_string(good.size() - 1) + " of " +
                                                      std::to_string(good.size()) + " bytes\n");
  EXPECT_EQ(run("two.csv --verify two.csv").err, "two.csv:1: has no offset column\n");
}

TEST_F(PlanCliTest, VerifyingAPlanChecksTheCapacity) {
  ASSERT_EQ(run("two.csv -o two.plan").code, 0);
  EXPECT_EQ(run("two.csv --verify two.plan --capacity 64").code, 0);
  const Ran ran = run("two.csv --verify two.plan --capacity 63");
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.err.rfind("two.plan: buffer ", 0), 0u) << ran.err;
  EXPECT_NE(ran.err.find(" ends at 64, past the capacity 63\n"), std::string::npos) << ran.err;
}

TEST_F(PlanCliTest, TheWrittenCsvHasTheProblemsRows) {
  write("all.csv",
        "id,lower,upper,size,alignment,gaps,hint,pinned,group,space\n"
        "a,0,9,8,,3-5,16,,,s\nb,0,9,8,8,,0,,g,s\nc,0,9,4,,,,0,g,s\nd,1,2,8,,,,16,,t\n");
  ASSERT_EQ(run("all.csv -o out.csv").code, 0);
  EXPECT_EQ(
      slurp(folder_ / "out.csv"),
      "id,lower,upper,size,alignment,gaps,hint,pinned,group,space,offset\n"
      "a,0,9,8,1,3-5,16,,,s,8\nb,0,9,8,8,,0,,g,s,0\nc,0,9,4,1,,,0,g,s,0\nd,1,2,8,1,,,16,,t,16\n");
}

TEST_F(PlanCliTest, AHintIsKeptIfThePlanIsNoWorse) {
  const char* const orders[][3] = {{"0", "16", "8"}, {"16", "8", "0"}, {"8", "0", "16"}};
  for (const auto& hints : orders) {
    std::string rows = "id,lower,upper,size,hint,offset\n";
    for (int i = 0; i < 3; ++i)
      rows += std::to_string(i) + ",0,4,8," + hints[i] + "," + hints[i] + "\n";
    write("hints.csv", rows);
    ASSERT_EQ(run("hints.csv -o out.csv").code, 0);
    EXPECT_EQ(slurp(folder_ / "out.csv"), rows);
  }
}

TEST_F(PlanCliTest, AMalformedCommandLineIsAUsageError) {
  EXPECT_EQ(run("").code, 2);
  EXPECT_EQ(run("two.csv --from-trace two.csv").code, 2);
  EXPECT_EQ(run("two.csv --capacity much").code, 2);
  EXPECT_EQ(run("two.csv --time-limit -1").code, 2);
  EXPECT_EQ(run("two.csv --threads 0").code, 2);
  EXPECT_EQ(run("two.csv --no-such-flag").code, 2);
}

TEST_F(PlanCliTest, ATraceIsAProblemWithASpaceForEachStream) {
  write("t.trace",
        "{\"format\":\"alloc-trace\",\"version\":1}\na 1 100\na 2 50\nf 1\na 3 100\na 4 7 9\na 5 "
        "0\nf 2\n");
  const Json json = this->json("--from-trace t.trace");
  EXPECT_EQ(json["buffers"], 4);
  ASSERT_EQ(json["spaces"].size(), 2u);
  // the second buffer on top of the first, at the allocator's granule
  EXPECT_EQ(json["spaces"][0]["peak_bytes"], 512 + 50);
  EXPECT_EQ(json["spaces"][0]["alignment_bytes"], 512);
  EXPECT_EQ(json["spaces"][0]["proof"], "proved least of 3 buffers at multiples of 512 B");
  EXPECT_EQ(json["spaces"][1]["peak_bytes"], 7);
  const Json any = this->json("--from-trace t.trace --alignment 1");
  EXPECT_EQ(any["spaces"][0]["peak_bytes"], 150);
  EXPECT_EQ(any["spaces"][0]["proof"], "proved least of 3 buffers at any offset");
  EXPECT_EQ(this->json("--from-trace t.trace --alignment 4K")["spaces"][0]["peak_bytes"], 4146);
}

TEST_F(PlanCliTest, AnAlignmentIsAPowerOfTwoAndOfATrace) {
  write("t.trace", "{\"format\":\"alloc-trace\",\"version\":1}\na 1 100\n");
  EXPECT_EQ(run("two.csv --alignment 512").err,
            "--alignment: needs --from-trace; a problem states the alignments of its buffers\n");
  for (const char* bad : {"0", "3", "much", "2G"}) {
    const Ran ran = run(std::string("--from-trace t.trace --alignment ") + bad);
    EXPECT_EQ(ran.code, 2);
    EXPECT_EQ(ran.err,
              std::string("--alignment: '") + bad + "' is not a power of two up to 1.000 GiB\n");
  }
}

TEST_F(PlanCliTest, ThePageIsWritten) {
  ASSERT_EQ(run("two.csv --report page.html").code, 0);
  EXPECT_NE(slurp(folder_ / "page.html").find("</html>"), std::string::npos);
}

}  // namespace
