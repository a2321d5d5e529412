// Small versions of the stored models: planned memory, schedules over several backends, and a transformer from
// end to end, against a reference in doubles.
//
// Imitates: inference and training steps as ggml's models have them.
// Does not prove: real sizes; `ashlar graph` plans those.
#include "props/graph/model_graphs.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "props/graph/model_run.h"
#include "props/graph/value_oracle.h"
#include "props/sched/schedule_oracle.h"
#include "src/cpu_backend/cpu_backend.h"

namespace ashlar {
namespace {

using graph::Operation;
using graph::TensorId;
using props::ModelGraph;
using props::ModelRun;

TEST(ModelGraphs, HaveTheOperationsOfTheStoredGraphs) {
  std::set<Operation> made;
  for (const ModelGraph& model : props::small_models()) {
    for (const TensorId node : model.made.graph.nodes()) {
      made.insert(model.made.graph[node].operation);
      EXPECT_TRUE(cpu::has_kernel(model.made.graph, node)) << model.name << " " << node.value();
    }
  }
  EXPECT_GE(made.size(), 30u);
}

TEST(ModelGraphs, GiveTheSameBitsInPlannedMemory) {
  for (const ModelGraph& model : props::small_models()) {
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      props::OracleOptions options;
      options.seed = seed;
      options.types[0].buffer_max = seed % 2 == 0 ? Bytes::max() : 4096_B;
      options.threads = seed == 4 ? 2 : 1;
      EXPECT_EQ(compare_runs(model.made, options), "") << model.name;
    }
  }
}

TEST(ModelGraphs, GiveTheSameBitsOverSeveralBackends) {
  for (const ModelGraph& model : props::small_models()) {
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      props::ScheduleCase one;
      one.seed = seed;
      one.backends = 2 + static_cast<std::uint32_t>(seed % 3);
      one.copy_places = 1 + static_cast<std::uint32_t>(seed % 2);
      one.is_pipelined = seed % 4 == 3;
      EXPECT_EQ(compare_schedules(model.made, one), "") << model.name << " seed " << seed;
    }
  }
}

TEST(Transformer, RunsFromEndToEndOnOneProcessorAndOnTwo) {
  for (const bool has_one_attention : {false, true}) {
    for (const std::uint64_t experts : {std::uint64_t{0}, std::uint64_t{4}}) {
      props::TransformerShape shape;
      shape.has_one_attention = has_one_attention;
      shape.experts = experts;
      const ModelGraph model = transformer(shape);
      cpu::CpuBackend first("cpu0", std::make_shared<cpu::HostBuffers>(), 2);
      cpu::CpuBackend second("cpu1", std::make_shared<cpu::HostBuffers>(), 2);
      ModelRun one(model, {&first}), two(model, {&first, &second});
      EXPECT_LE(one.difference(), props::kEndToEnd) << model.name;
      EXPECT_LE(two.difference(), props::kEndToEnd) << model.name;
      EXPECT_EQ(one.splits(), 1u);
      EXPECT_GE(two.splits(), 2u);
    }
  }
}

}  // namespace
}  // namespace ashlar
