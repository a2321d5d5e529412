// `ashlar graph` and `ashlar schedule` from end to end: exit codes, exact messages, JSON, the page.
//
// Imitates: people at a shell with a model's graph, and files that are broken in every way the format has.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "props/tool/cli.h"

namespace {

using Json = nlohmann::json;
using ashlar::props::Ran;
using ashlar::props::slurp;

/// Two layers: x -> product with a weight -> in-place sum, whose second half is cast.
const char* const kGraph =
    R"({"rec":"meta","align":32,"gallocr_bytes":512}
{"rec":"tensor","id":0,"kind":"leaf","name":"x","op":"NONE","type":"f32","ne":[8,2,1,1],"nb":[4,32,64,64],"bytes":64,"srcs":[],"flags":["input"],"prealloc":false,"layer":-1}
{"rec":"tensor","id":1,"kind":"leaf","name":"w","op":"NONE","type":"f32","ne":[8,4,1,1],"nb":[4,32,128,128],"srcs":[],"flags":["param"],"prealloc":true,"layer":0}
{"rec":"tensor","id":2,"kind":"node","name":"y","op":"MUL_MAT","type":"f32","ne":[4,2,1,1],"nb":[4,16,32,32],"srcs":[1,0],"flags":[],"prealloc":false,"layer":0}
{"rec":"tensor","id":3,"kind":"leaf","name":"b","op":"NONE","type":"f32","ne":[4,1,1,1],"nb":[4,16,16,16],"srcs":[],"flags":[],"prealloc":true,"layer":1}
{"rec":"tensor","id":4,"kind":"node","name":"z","op":"ADD","type":"f32","ne":[4,2,1,1],"nb":[4,16,32,32],"srcs":[2,3],"flags":[],"prealloc":false,"layer":1}
{"rec":"tensor","id":5,"kind":"node","name":"v","op":"VIEW","type":"f32","ne":[4,1,1,1],"nb":[4,16,16,16],"srcs":[4],"view_src":4,"view_offs":16,"flags":[],"prealloc":false,"layer":1}
{"rec":"tensor","id":6,"kind":"node","name":"c","op":"CPY","type":"f16","ne":[4,1,1,1],"nb":[2,8,8,8],"srcs":[5,6],"flags":["output"],"prealloc":false,"layer":1}
)";

class GraphCliTest : public ashlar::props::Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    write("g.json", kGraph);
  }
  /// The graph with a piece replaced.
  std::string with(const std::string& what, const std::string& by) {
    std::string text = kGraph;
    const std::size_t at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    return text.replace(at, what.size(), by);
  }
};

TEST_F(GraphCliTest, SaysWhatPlanningSaves) {
  const Ran ran = run("graph g.json --json -");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(json["nodes"], 4);
  EXPECT_EQ(json["tensors"], 7);
  EXPECT_EQ(json["naive_bytes"], 64 + 32 + 32 + 32);
  EXPECT_EQ(json["lower_bound_bytes"], 96);
  EXPECT_EQ(json["planned_bytes"], 96);
  EXPECT_EQ(json["in_place_nodes"], 1);
  EXPECT_EQ(json["peer_bytes"], 512);
  EXPECT_GT(json["plan_ns"], 0);
  EXPECT_GT(json["apply_ns"], 0);
  const Ran table = run("graph g.json g.json");
  EXPECT_EQ(table.code, 0);
  EXPECT_NE(table.out.find("g.json: 4 nodes, 7 tensors, 1 of the nodes in place\n"),
            std::string::npos);
  EXPECT_EQ(Json::parse(run("graph g.json g.json --json -").out).size(), 2u);
}

TEST_F(GraphCliTest, DrawsThePlan) {
  const Ran ran = run("graph g.json --report page.html --json out.json");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const std::string page = slurp(folder_ / "page.html");
  EXPECT_NE(page.find("<html"), std::string::npos);
  EXPECT_NE(page.find("2 y"), std::string::npos);
  EXPECT_EQ(Json::parse(slurp(folder_ / "out.json"))["planned_bytes"], 96);
  EXPECT_EQ(run("graph g.json --report missing/page.html").code, 3);
}

TEST_F(GraphCliTest, SchedulesOverBackends) {
  const Json half = Json::parse(run("schedule g.json --placement half --json -").out);
  EXPECT_EQ(half["backends"], 2);
  EXPECT_EQ(half["splits"], 2);
  EXPECT_EQ(half["copies"], 1);
  EXPECT_EQ(half["bytes_copied"], 32);
  const Json one = Json::parse(run("schedule g.json --backends 1 --json -").out);
  EXPECT_EQ(one["splits"], 1);
  EXPECT_EQ(one["bytes_copied"], 0);
  const Json three = Json::parse(run("schedule g.json --backends 3 --json -").out);
  EXPECT_EQ(three["placement"], "auto");
  EXPECT_EQ(three["splits"], 2);
  EXPECT_EQ(three["copies"], 2);
  const Ran told = run("schedule g.json --placement alternate --verbose");
  EXPECT_EQ(told.code, 0);
  EXPECT_NE(told.out.find("split on gpu0: 1 nodes, copies x (64 B)"), std::string::npos)
      << told.out;
  EXPECT_NE(told.out.find("by user"), std::string::npos);
  EXPECT_NE(told.out.find("by memory"), std::string::npos);
  EXPECT_NE(told.out.find("by root"), std::string::npos);
  EXPECT_EQ(run("schedule g.json --placement best").code, 2);
  EXPECT_EQ(run("schedule g.json --backends 0").code, 2);
  EXPECT_EQ(run("schedule nowhere.json").code, 3);
}

TEST_F(GraphCliTest, TakesAnyNameOfAFileAndOfATensor) {
  write("name\xff.json", with(R"("name":"x")", R"("name":"x\u001b[1m\ny")"));
  for (const char* const rest : {"", " --json -", " --json out.json"}) {
    EXPECT_EQ(run(std::string("graph name\xff.json") + rest).code, 0) << rest;
    EXPECT_EQ(run(std::string("schedule name\xff.json") + rest).code, 0) << rest;
  }
  EXPECT_EQ(Json::parse(slurp(folder_ / "out.json"))["graph"], "name\uFFFD.json");
  const Ran told = run("schedule name\xff.json --placement alternate --verbose");
  EXPECT_NE(told.out.find("copies x?[1m?y (64 B)"), std::string::npos) << told.out;
}

TEST_F(GraphCliTest, CountsNodesWithoutTheirKind) {
  std::string text = kGraph;
  for (std::size_t at = 0; (at = text.find(R"("kind":"node",)")) != std::string::npos;)
    text.erase(at, 14);
  write("plain.json", text);
  EXPECT_EQ(Json::parse(run("graph plain.json --json -").out)["nodes"], 4);
}

TEST_F(GraphCliTest, RefusesAFileThatEndsTooEarly) {
  const std::string whole = with(R"("align":32)", R"("n_nodes":4,"align":32)");
  write("whole.json", whole);
  EXPECT_EQ(run("graph whole.json").code, 0);
  write("cut.json", whole.substr(0, whole.find(R"({"rec":"tensor","id":5)")));
  const Ran ran = run("graph cut.json");
  EXPECT_EQ(ran.code, 3);
  EXPECT_EQ(ran.err, "cut.json:6: the file ends after 2 of 4 nodes\n");
}

TEST_F(GraphCliTest, RefusesMoreCopiedBytesThanCanBeCounted) {
  const std::string wide = "[72057594037927936,1,1,1]";  // 2^56 floats: 2^58 bytes
  std::string text = "{\"rec\":\"meta\",\"align\":32}\n";
  for (int t = 0; t < 8; ++t) {
    text += R"({"rec":"tensor","id":)" + std::to_string(t) + R"(,"op":")" +
            (t == 0 ? "NONE" : "RELU") + R"(","type":"f32","ne":)" + wide +
            R"(,"nb":[4,288230376151711744,288230376151711744,288230376151711744],"srcs":[)" +
            (t == 0 ? "" : std::to_string(t - 1)) + R"(],"layer":)" + std::to_string(t) + "}\n";
  }
  write("wide.json", text);
  const Ran ran = run("schedule wide.json --placement alternate --backends 3");
  EXPECT_EQ(ran.code, 3) << ran.out;
  EXPECT_NE(ran.err.find("so many bytes to copy that sums of them might wrap"), std::string::npos)
      << ran.err;
}

TEST_F(GraphCliTest, RefusesABrokenFileWithItsLine) {
  const struct {
    const char* what;
    const char* by;
    const char* error;
  } cases[] = {
      {R"("srcs":[1,0])", R"("srcs":[1,4])",
       "bad.json:4: a source that is not added before: forward or cyclic\n"},
      {R"("srcs":[1,0])", R"("srcs":[1,2])",
       "bad.json:4: a source that is not added before: forward or cyclic\n"},
      {R"("srcs":[1,0])", R"("srcs":[1])", "bad.json:4: too few sources for the operation\n"},
      {R"("view_offs":16)", R"("view_offs":20)", "bad.json:7: a view outside its root\n"},
      {R"("view_offs":16)", R"("view_offs":-1)", "bad.json:7: 'view_offs' is no number from 0\n"},
      {R"("nb":[4,32,128,128])", R"("nb":[4,16,128,128])",
       "bad.json:3: strides that let elements overlap\n"},
      {R"("nb":[4,32,128,128])", R"("nb":[4,33,128,128])",
       "bad.json:3: a stride is no multiple of the type's alignment\n"},
      {R"("nb":[4,32,128,128])", R"("nb":[4,32,128])",
       "bad.json:3: 'nb' is not a list of four numbers\n"},
      {R"("nb":[4,32,128,128])", R"("nb":[0,0,0,0])", "bad.json:3: 'nb' has only zeros\n"},
      {R"("bytes":64)", R"("bytes":60)",
       "bad.json:2: 'bytes' is not 64, what shape and strides need\n"},
      {R"("op":"MUL_MAT")", R"("op":"MUL_MATS")", "bad.json:4: unknown op 'MUL_MATS'\n"},
      {R"("type":"f16")", R"("type":"f12")", "bad.json:8: unknown type 'f12'\n"},
      {R"("flags":["output"])", R"("flags":["out"])", "bad.json:8: unknown flag 'out'\n"},
      {R"("id":4)", R"("id":5)", "bad.json:6: 'id' is not 4, the next one\n"},
      {R"("rec":"meta")", R"("rec":"tensor")", "bad.json:1: the first line is not 'meta'\n"},
      {R"("align":32)", R"("align":33)", "bad.json:1: 'align' is not a power of two up to 65536\n"},
      {R"({"rec":"tensor","id":3)", "[3]\n{", "bad.json:5: the line is no JSON object\n"},
  };
  for (const auto& one : cases) {
    write("bad.json", with(one.what, one.by));
    for (const char* const command : {"graph bad.json", "schedule bad.json"}) {
      const Ran ran = run(command);
      EXPECT_EQ(ran.code, 3) << one.by;
      EXPECT_EQ(ran.err, one.error);
      EXPECT_EQ(ran.out, "");
    }
  }
  write("bad.json", "");
  EXPECT_EQ(run("graph bad.json").err, "bad.json:1: the file is empty\n");
  EXPECT_EQ(run("graph g.json bad.json --json out.json").code, 3);
}

}  // namespace
