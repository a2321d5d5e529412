// The stored graphs of real models, planned and scheduled, beside what ggml's allocator and scheduler make of
// them (bench/data/graphs).
//
// Imitates: the models of the stored graphs, at their real sizes.
// Does not prove: times; `ci/report graph` measures those.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include <ashlar/graph/graph_allocator.h>

#include "props/tool/cli.h"
#include "spec/graph/imaginary_buffers.h"
#include "src/tool/files.h"
#include "src/tool/graph_file.h"

namespace {

namespace fs = std::filesystem;
using ashlar::Bytes;
using Json = nlohmann::json;

std::vector<std::string> stored_graphs() {
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(ASHLAR_GRAPHS_PATH)) {
    if (entry.path().extension() == ".gz") paths.push_back(entry.path().string());
  }
  return paths;
}

/// The file's first line.
Json meta_of(const std::string& path) {
  std::string error, text;
  const auto bytes = ashlar::tool::read_file(path, &error);
  ashlar::tool::gunzip(*bytes, [&text](std::string_view piece) {
    text.append(piece);
    return text.find('\n') == std::string::npos;
  });
  return Json::parse(text.substr(0, text.find('\n')));
}

TEST(StoredGraphs, ArePlannedAtTheirLowerBounds) {
  std::size_t at_bound = 0;
  for (const std::string& path : stored_graphs()) {
    std::string error;
    const auto file = ashlar::tool::read_graph(path, &error);
    ASSERT_TRUE(file.has_value()) << error;
    ashlar::spec::ImaginaryBuffers source;
    const ashlar::graph::GraphAllocator allocator(source, {{file->alignment}});
    const auto memory = allocator.measure(file->graph, {}).value();
    const Json meta = meta_of(path);
    const std::uint64_t bound = meta["lb_inplace"], peer = meta["gallocr_bytes"];
    EXPECT_LE(memory.total.count(), peer) << path;
    EXPECT_LE(memory.total.count(), bound + bound / 100) << path;
    at_bound += memory.total.count() <= bound ? 1 : 0;
  }
  EXPECT_EQ(at_bound, 15u);
}

class StoredGraphsCli : public ashlar::props::Cli {
 protected:
  Json schedule(const std::string& path, const std::string& options) {
    const auto ran = run("schedule '" + path + "' " + options + " --json -");
    EXPECT_EQ(ran.code, 0) << ran.err;
    return Json::parse(ran.out, nullptr, false);
  }
};

// Scenarios B, C and E of ggml-sched.tsv.
TEST_F(StoredGraphsCli, AreScheduledWithNoMoreThanThePeersSplitsCopiesAndBytes) {
  std::ifstream table(std::string(ASHLAR_GRAPHS_PATH) + "/ggml-sched.tsv");
  std::string line;
  std::getline(table, line);  // the header
  const std::map<std::string, std::string> options{
      {"B_fake_cpu_half", "--placement half --backends 2"},
      {"C_two_fake_cpu", "--placement half --backends 3"},
      {"E_alternating", "--placement alternate --backends 2"}};
  std::size_t compared = 0;
  while (std::getline(table, line)) {
    std::istringstream fields(line);
    std::string graph, scenario;
    std::uint64_t ok = 0, splits = 0, copies = 0, bytes = 0;
    fields >> graph >> scenario >> ok >> splits >> copies >> bytes;
    const std::string path = std::string(ASHLAR_GRAPHS_PATH) + "/" + graph + ".json.gz";
    if (options.count(scenario) == 0 || !fs::exists(path)) continue;
    const Json ours = schedule(path, options.at(scenario));
    EXPECT_LE(ours["splits"], splits) << line;
    EXPECT_LE(ours["copies"], copies) << line;
    EXPECT_LE(ours["bytes_copied"], bytes) << line;
    compared += 1;
  }
  EXPECT_EQ(compared, 42u);
}

TEST_F(StoredGraphsCli, AreCutWithNoMoreBytesThanByLayers) {
  for (const std::string& path : stored_graphs()) {
    const Json half = schedule(path, "--placement half"), cut = schedule(path, "--placement auto");
    EXPECT_LE(cut["bytes_copied"], half["bytes_copied"]) << path;
    EXPECT_GE(cut["splits"], 2) << path;  // both backends are used
  }
}

}  // namespace
