// The report of a plan: what it embeds of problems that are small enough to compute by hand, and what
// it leaves out of large ones.
//
// Imitates: a browser without a network, and numbers that JavaScript would round. Does not prove: that
// the picture looks right.
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/tool/plan_report.h"
#include "src/tool/plan_usage.h"

namespace ashlar {
namespace {

using plan::Buffer;
using plan::Lifetime;
using Json = nlohmann::json;

// Space "hbm" of 100 B has a group of `x` and `y` at 0; `</script>`, which has a gap and is pinned at
// 8; and `z` above it. Space "sram", unlimited, has one large buffer. The plan wastes 8 B below `z`, and
// names `</script>` and `z` as buffers that cannot fit.
struct Example {
  plan::Problem problem;
  plan::Plan plan;

  Example() {
    const auto add = [this](const char* id, Lifetime life, Bytes size) {
      problem.ids.emplace_back(id);
      Buffer& buffer = problem.buffers.emplace_back();
      buffer.life = life;
      buffer.size = size;
      return &buffer;
    };
    problem.spaces = {{"hbm", 100_B}, {"sram", plan::kNowhere}};
    problem.groups = {"in </b> place"};
    problem.gaps = {{12, 14}};
    add("x", {10, 14}, 8_B)->group = 0;
    add("y", {13, 20}, 4_B)->group = 0;
    Buffer* const gappy = add("</script>", {10, 20}, 90_B);
    gappy->pinned = 8_B;
    gappy->gaps_end = 1;
    add("z", {15, 16}, 16_B)->alignment = 2_B;
    add("large", {-3, 20}, Bytes{(std::uint64_t{1} << 53) + 1})->space = 1;
    plan.offsets = {0_B, 0_B, 8_B, 106_B, 0_B};
    plan.spaces = {{122_B, 110_B}, {problem.buffers[4].size, problem.buffers[4].size}};
    plan.cannot_fit = {2, 3};
  }
};

Json data_of(const std::string& page) {
  const std::string opening = "<script type=\"application/json\" id=\"data\">";
  const std::size_t begin = page.find(opening) + opening.size();
  return Json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

TEST(PlanReport, IsOnePageThatLoadsNothing) {
  const Example example;
  const std::string page = tool::plan_page(example.problem, example.plan, "a </title><b>", 1.5);
  EXPECT_EQ(page.rfind("<!doctype html>", 0), 0u);
  for (const char* part : {"http:", "https:", "@import", "src=", "url(", "@DATA@", "@STYLE@",
                           "@SCRIPT@", "</title><b>", "</script>\"", "</b> place"}) {
    EXPECT_EQ(page.find(part), std::string::npos) << part;
  }
  EXPECT_NE(page.find("function plot("), std::string::npos) << "the shared script is in the page";
  EXPECT_NE(page.find("--live0:"), std::string::npos);
}

TEST(PlanReport, HoldsTheFiguresOfEachSpace) {
  const Example example;
  const Json data = data_of(tool::plan_page(example.problem, example.plan, "a </title><b>", 1.5));
  EXPECT_EQ(data["title"], "a </title><b>");
  EXPECT_EQ(data["seconds"], 1.5);
  EXPECT_EQ(data["groups"], 1);
  EXPECT_EQ(data["from"], -3) << "all spaces share an axis of time";
  EXPECT_EQ(data["span"], 23);
  ASSERT_EQ(data["spaces"].size(), 2u);
  const Json& hbm = data["spaces"][0];
  EXPECT_EQ(hbm["name"], "hbm");
  EXPECT_EQ(hbm["buffers"], 4);
  EXPECT_EQ(hbm["peak"], 122);
  EXPECT_EQ(hbm["lower_bound"], 110);
  EXPECT_EQ(hbm["proved"], false);
  EXPECT_EQ(hbm["capacity"], 100);
  EXPECT_EQ(hbm["fits"], false);
  EXPECT_EQ(hbm["cannot_fit"], 2);
  const Json& sram = data["spaces"][1];
  EXPECT_EQ(sram["peak"], "9007199254740993") << "a number would be rounded";
  EXPECT_EQ(sram["proved"], true);
  EXPECT_TRUE(sram["capacity"].is_null());
  EXPECT_EQ(sram["cannot_fit"], 0);
}

TEST(PlanReport, WhetherItFitsMayBeUnknown) {
  Example example;
  example.problem.spaces[0].capacity = 115_B;
  EXPECT_TRUE(data_of(tool::plan_page(example.problem, example.plan, "t", 0))["spaces"][0]["fits"]
                  .is_null());
  example.problem.spaces[0].capacity = 122_B;
  EXPECT_EQ(data_of(tool::plan_page(example.problem, example.plan, "t", 0))["spaces"][0]["fits"],
            true);
}

TEST(PlanReport, HoldsABoxForEveryBufferWithThePiecesOfItsLife) {
  const Example example;
  const Json data = data_of(tool::plan_page(example.problem, example.plan, "t", 0));
  const Json& hbm = data["spaces"][0];
  EXPECT_EQ(hbm["groups"], Json::parse(R"([["in </b> place", 2]])"));
  EXPECT_EQ(hbm["boxes"], Json::parse(R"([
    ["x", 0, 8, 1, -1, 0, 0, 13, 17],
    ["y", 0, 4, 1, -1, 0, 0, 16, 23],
    ["</script>", 8, 90, 1, 8, -1, 1, 13, 15, 17, 23],
    ["z", 106, 16, 2, -1, -1, 1, 18, 19]])"));
  EXPECT_EQ(data["spaces"][1]["boxes"],
            Json::parse(R"([["large", 0, "9007199254740993", 1, -1, -1, 0, 0, 23]])"));
}

TEST(PlanReport, HoldsTheLiveBytesAndTheHighestEndOverTime) {
  const Example example;
  const Json usage =
      data_of(tool::plan_page(example.problem, example.plan, "t", 0))["spaces"][0]["usage"];
  EXPECT_EQ(usage["from"], Json({13, 15, 16, 17, 18, 19, 23}));
  EXPECT_EQ(usage["most"], Json({98, 8, 8, 94, 110, 94, 0})) << "of a group, the largest counts";
  EXPECT_EQ(usage["least"], usage["most"]);
  EXPECT_EQ(usage["end"], Json({98, 8, 8, 98, 122, 98, 0}));
}

TEST(PlanReport, TimesAreExactHoweverLarge) {
  plan::Problem problem;
  problem.buffers.resize(2);
  problem.buffers[0].life = {std::numeric_limits<plan::Time>::min(),
                             std::numeric_limits<plan::Time>::max()};
  problem.buffers[1].life = {0, 1};
  for (Buffer& buffer : problem.buffers) buffer.size = 1_B;
  const plan::Plan plan{{0_B, 1_B}, {{2_B, 2_B}}, {}};
  const Json data = data_of(tool::plan_page(problem, plan, "t", 0));
  EXPECT_EQ(data["from"], "-9223372036854775808");
  EXPECT_EQ(data["span"], "18446744073709551615");
  EXPECT_EQ(data["spaces"][0]["boxes"],
            Json::parse(R"([[0, 0, 1, 1, -1, -1, 0, 0, "18446744073709551615"],
                            [1, 1, 1, 1, -1, -1, 0, "9223372036854775808", "9223372036854775809"]])"));
}

TEST(PlanReport, AProblemWithoutBuffersHasAPage) {
  const Json data = data_of(tool::plan_page({}, {{}, {{}}, {}}, "t", 0));
  EXPECT_EQ(data["spaces"][0]["boxes"], Json::array());
  EXPECT_EQ(data["spaces"][0]["usage"]["from"], Json::array());
}

TEST(PlanReport, DrawsTheLargestBuffersAndThoseThatCannotFit) {
  constexpr std::uint32_t kBuffers = 60'010;
  plan::Problem problem;
  problem.buffers.resize(kBuffers);
  plan::Plan plan;
  for (std::uint32_t b = 0; b < kBuffers; ++b) {
    problem.buffers[b].life = {b, b + 1};
    problem.buffers[b].size = b < 10 ? 1_B : 2_B;
  }
  problem.buffers[20].life.upper = 24;  // two rectangles
  problem.gaps = {{21, 22}};
  problem.buffers[20].gaps_end = 1;
  plan.offsets.resize(kBuffers);
  plan.spaces = {{2_B, 2_B}};
  plan.cannot_fit = {3};
  const Json space = data_of(tool::plan_page(problem, plan, "t", 0))["spaces"][0];
  EXPECT_EQ(space["buffers"], kBuffers);
  std::size_t rectangles = 0;
  for (const Json& box : space["boxes"]) rectangles += (box.size() - 7) / 2;
  EXPECT_EQ(rectangles, 60'000u);
  EXPECT_EQ(space["boxes"][0][0], 3) << "small, but it cannot fit";
  EXPECT_EQ(space["boxes"][1][0], 10) << "buffers of one byte are left out first";
  EXPECT_LE(space["usage"]["from"].size(), 6'001u);
}

TEST(PlanReport, ASpaceAfterTheFortiethHasOnlyFigures) {
  plan::Problem problem;
  problem.spaces.resize(41);
  const plan::Plan plan{{}, std::vector<plan::SpaceAnswer>(41), {}};
  const Json data = data_of(tool::plan_page(problem, plan, "t", 0));
  EXPECT_TRUE(data["spaces"][39].contains("boxes"));
  EXPECT_FALSE(data["spaces"][40].contains("boxes"));
  EXPECT_EQ(data["spaces"][40]["peak"], 0);
}

// One buffer at each time, of one or two bytes, with a peak at 50 and a hole at 70. Both must show when
// points are merged.
TEST(PlanUsage, NoPeakOrHoleIsLostWhenPointsAreMerged) {
  plan::Problem problem;
  std::vector<Bytes> offsets;
  std::vector<std::uint32_t> buffers;
  for (plan::Time t = 0; t < 100; ++t) {
    if (t == 70) continue;
    buffers.push_back(static_cast<std::uint32_t>(buffers.size()));
    Buffer& buffer = problem.buffers.emplace_back();
    buffer.life = {t, t + 1};
    buffer.size = t == 50 ? 9_B : Bytes{1 + static_cast<std::uint64_t>(t) % 2};
    offsets.push_back(0_B);
  }
  EXPECT_EQ(tool::usage_of(problem, offsets, buffers, 101).size(), 101u)
      << "every change has a point where there is room";
  const std::vector<tool::UsagePoint> points = tool::usage_of(problem, offsets, buffers, 10);
  const std::vector<tool::UsagePoint> expected = {
      {0, 1_B, 2_B, 2_B},  {11, 1_B, 2_B, 2_B}, {22, 1_B, 2_B, 2_B}, {33, 1_B, 2_B, 2_B},
      {44, 1_B, 9_B, 9_B}, {55, 1_B, 2_B, 2_B}, {66, 0_B, 2_B, 2_B}, {77, 1_B, 2_B, 2_B},
      {88, 1_B, 2_B, 2_B}, {99, 2_B, 2_B, 2_B}, {100, 0_B, 0_B, 0_B}};
  EXPECT_EQ(points, expected);
}

// A burst of changes, a long time without any, and another burst: a merged point must end when its
// burst ends.
TEST(PlanUsage, AMergedPointDoesNotLastLongerThanItsSpan) {
  plan::Problem problem;
  problem.buffers.resize(5);
  const Lifetime lives[] = {{0, 1000}, {1, 2}, {3, 4}, {996, 997}, {998, 999}};
  const std::uint64_t sizes[] = {1, 100, 100, 50, 50};
  for (std::size_t b = 0; b < 5; ++b) {
    problem.buffers[b].life = lives[b];
    problem.buffers[b].size = Bytes{sizes[b]};
  }
  const std::vector<tool::UsagePoint> points =
      tool::usage_of(problem, {0_B, 1_B, 1_B, 1_B, 1_B}, {0, 1, 2, 3, 4}, 9);
  const std::vector<tool::UsagePoint> expected = {
      {0, 1_B, 101_B, 101_B}, {112, 1_B, 1_B, 1_B}, {996, 1_B, 51_B, 51_B}, {1000, 0_B, 0_B, 0_B}};
  EXPECT_EQ(points, expected);
}

}  // namespace
}  // namespace ashlar
