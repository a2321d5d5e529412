// Small versions of the stored models: planned memory, schedules over several backends, and a transformer from
// end to end, against a reference in doubles.
//
// Imitates: inference and training steps as ggml's models have them.
// Does not prove: real sizes; `ashlar graph` plans those.
#include "props/graph/model_graphs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "props/graph/reference_values.h"
#include "props/graph/value_oracle.h"
#include "props/sched/schedule_oracle.h"
#include "src/cpu_backend/conversions.h"
#include "src/cpu_backend/cpu_backend.h"

namespace ashlar {
namespace {

using graph::ElementType;
using graph::Graph;
using graph::Operation;
using graph::Tensor;
using graph::TensorId;
using props::ModelGraph;
using props::Place;

/// The whole graph in doubles. An element is named by its byte in its root, so views need nothing; halves
/// are rounded when they are stored, as memory rounds them.
class ReferenceRun {
 public:
  /// The values of leafs are those at `leafs`, by tensor.
  ReferenceRun(const Graph& graph, const std::vector<Address>& leafs)
      : graph_(graph), elements_(graph.tensors().size()) {
    for (std::uint32_t t = 0; t < leafs.size(); ++t) {
      const Tensor& tensor = graph.tensors()[t];
      if (tensor.operation == Operation::kNone && tensor.root.value() == t) load(t, leafs[t]);
    }
    for (const TensorId node : graph.nodes()) {
      if (cpu::kernel_of(graph[node].operation).kernel == nullptr) continue;
      const auto values = props::reference_values(graph, node, [&](std::size_t k, const Place& at) {
        return at_place(graph.sources(graph[node])[k], at);
      });
      for (std::uint64_t n = 0; n < values.size(); ++n) {
        double& element = slot(node, props::place_of(graph[node].shape, n));
        element = values[n];
        if (graph[node].type == ElementType::kF16) {
          element = static_cast<double>(
              cpu::half_to_float(cpu::float_to_half(static_cast<float>(element))));
        }
      }
    }
  }

  double at_place(TensorId id, const Place& at) { return slot(id, at); }

 private:
  double& slot(TensorId id, const Place& at) {
    const Tensor& tensor = graph_[id];
    const std::uint64_t elements = traits_of(tensor.type).block_elements;
    std::uint64_t byte = tensor.view_offset.count();
    for (std::size_t d = 1; d < at.size(); ++d) byte += at[d] * tensor.strides[d];
    byte += at[0] / elements * tensor.strides[0];
    return elements_[tensor.root.value()][byte * elements + at[0] % elements];
  }

  void load(std::uint32_t t, Address from) {
    const Tensor& tensor = graph_.tensors()[t];
    const cpu::Operand operand{&tensor, static_cast<std::byte*>(from.pointer())};
    std::vector<float> scratch;
    for (std::uint64_t n = 0; n < graph::elements_of(tensor.shape); ++n) {
      const Place at = props::place_of(tensor.shape, n);
      const bool is_whole = tensor.type == ElementType::kI32 || tensor.type == ElementType::kI64;
      slot(TensorId{t}, at) =
          is_whole
              ? static_cast<double>(cpu::read_index(operand, at[0], at[1], at[2], at[3]))
              : static_cast<double>(cpu::read_row(operand, at[1], at[2], at[3], scratch)[at[0]]);
    }
  }

  const Graph& graph_;
  std::vector<std::map<std::uint64_t, double>> elements_;  // by root, by byte
};

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

/// A transformer on processors: the last `backends - 1` share the layers, the first the rest.
class TransformerRun {
 public:
  TransformerRun(const ModelGraph& model, std::size_t backends) : model_(model) {
    for (std::size_t k = 0; k < backends; ++k) {
      memories_.push_back(std::make_shared<cpu::HostBuffers>());
      processors_.push_back(
          std::make_unique<cpu::CpuBackend>("cpu" + std::to_string(k), memories_[k], 2));
      pointers_.push_back(processors_[k].get());
    }
    const Graph& graph = model.made.graph;
    external_.resize(graph.tensors().size());
    leafs_.resize(graph.tensors().size());
    for (std::uint32_t t = 0; t < graph.tensors().size(); ++t) {
      const Tensor& tensor = graph.tensors()[t];
      if (tensor.operation != Operation::kNone || tensor.root.value() != t) continue;
      const bool is_external = (tensor.flags & graph::kExternal) != 0;
      const std::size_t home = model.layers[t] <= 0 ? 0 : backends - 1;
      leafs_[t] = memories_[home]->make(tensor.extent).value();
      fill_leaf(model.made, TensorId{t}, 11, leafs_[t]);
      if (is_external) external_[t] = leafs_[t];
    }
  }

  /// The largest difference of a logit from the reference, over the largest logit.
  double difference() {
    const Graph& graph = model_.made.graph;
    ReferenceRun reference(graph, leafs_);
    sched::GraphScheduler scheduler(pointers_);
    EXPECT_TRUE(scheduler.reserve(graph, external_).is_ok()) << scheduler.last_error();
    for (std::uint32_t t = 0; t < graph.tensors().size(); ++t) {
      if (leafs_[t].is_null() || !external_[t].is_null()) continue;
      const auto* const from = static_cast<const std::byte*>(leafs_[t].pointer());
      EXPECT_TRUE(scheduler.set(TensorId{t}, {from, graph.tensors()[t].extent.count()}).is_ok());
    }
    EXPECT_TRUE(scheduler.run(graph, external_).is_ok());
    splits_ = scheduler.schedule()->splits.size();
    const TensorId logits = model_.outputs[0];
    std::vector<float> got(graph::elements_of(graph[logits].shape));
    EXPECT_TRUE(scheduler.get(logits, std::as_writable_bytes(std::span(got))).is_ok());
    double worst = 0, largest = 0;
    for (std::uint64_t n = 0; n < got.size(); ++n) {
      const double expected = reference.at_place(logits, props::place_of(graph[logits].shape, n));
      worst = std::max(worst, std::abs(static_cast<double>(got[n]) - expected));
      largest = std::max(largest, std::abs(expected));
      if (!std::isfinite(static_cast<double>(got[n]))) worst = INFINITY;
    }
    return worst / largest;
  }
  std::size_t splits() const { return splits_; }

 private:
  const ModelGraph& model_;
  std::vector<std::shared_ptr<cpu::HostBuffers>> memories_;
  std::vector<std::unique_ptr<cpu::CpuBackend>> processors_;
  std::vector<sched::Backend*> pointers_;
  std::vector<Address> external_, leafs_;
  std::size_t splits_ = 0;
};

/// Floats and a cache of halves, whose rounding a float may tip: three units in the last place of a half.
constexpr double kEndToEnd = 3.0 / 1024;

TEST(Transformer, RunsFromEndToEndOnOneProcessorAndOnTwo) {
  for (const bool has_one_attention : {false, true}) {
    for (const std::uint64_t experts : {std::uint64_t{0}, std::uint64_t{4}}) {
      props::TransformerShape shape;
      shape.has_one_attention = has_one_attention;
      shape.experts = experts;
      const ModelGraph model = transformer(shape);
      TransformerRun one(model, 1), two(model, 2);
      EXPECT_LE(one.difference(), kEndToEnd) << model.name;
      EXPECT_LE(two.difference(), kEndToEnd) << model.name;
      EXPECT_EQ(one.splits(), 1u);
      EXPECT_GE(two.splits(), 2u);
    }
  }
}

}  // namespace
}  // namespace ashlar
