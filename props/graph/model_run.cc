#include "props/graph/model_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "props/graph/value_oracle.h"
#include "src/cpu_backend/conversions.h"
#include "src/cpu_backend/kernels.h"

namespace ashlar::props {

using graph::ElementType;
using graph::Graph;
using graph::Operation;
using graph::Tensor;
using graph::TensorId;

ReferenceRun::ReferenceRun(const Graph& graph, const std::vector<Address>& leafs)
    : graph_(graph), elements_(graph.tensors().size()) {
  for (std::uint32_t t = 0; t < leafs.size(); ++t) {
    const Tensor& tensor = graph.tensors()[t];
    if (tensor.operation == Operation::kNone && tensor.root.value() == t) load(t, leafs[t]);
  }
  for (const TensorId node : graph.nodes()) {
    if (cpu::kernel_of(graph[node].operation).kernel == nullptr) continue;
    const auto values = reference_values(graph, node, [&](std::size_t k, const Place& at) {
      return at_place(graph.sources(graph[node])[k], at);
    });
    for (std::uint64_t n = 0; n < values.size(); ++n) {
      double& element = slot(node, place_of(graph[node].shape, n));
      element = values[n];
      if (graph[node].type == ElementType::kF16) {
        element = static_cast<double>(
            cpu::half_to_float(cpu::float_to_half(static_cast<float>(element))));
      }
    }
  }
}

double& ReferenceRun::slot(TensorId id, const Place& at) {
  const Tensor& tensor = graph_[id];
  const std::uint64_t elements = traits_of(tensor.type).block_elements;
  std::uint64_t byte = tensor.view_offset.count();
  for (std::size_t d = 1; d < at.size(); ++d) byte += at[d] * tensor.strides[d];
  byte += at[0] / elements * tensor.strides[0];
  return elements_[tensor.root.value()][byte * elements + at[0] % elements];
}

void ReferenceRun::load(std::uint32_t t, Address from) {
  const Tensor& tensor = graph_.tensors()[t];
  const cpu::Operand operand{&tensor, static_cast<std::byte*>(from.pointer())};
  std::vector<float> scratch;
  for (std::uint64_t n = 0; n < graph::elements_of(tensor.shape); ++n) {
    const Place at = place_of(tensor.shape, n);
    const bool is_whole = tensor.type == ElementType::kI32 || tensor.type == ElementType::kI64;
    slot(TensorId{t}, at) =
        is_whole ? static_cast<double>(cpu::read_index(operand, at[0], at[1], at[2], at[3]))
                 : static_cast<double>(cpu::read_row(operand, at[1], at[2], at[3], scratch)[at[0]]);
  }
}

ModelRun::ModelRun(const ModelGraph& model, std::vector<sched::Backend*> backends)
    : model_(model), backends_(std::move(backends)) {
  const Graph& graph = model.made.graph;
  external_.resize(graph.tensors().size());
  leafs_.resize(graph.tensors().size());
  for (std::uint32_t t = 0; t < graph.tensors().size(); ++t) {
    const Tensor& tensor = graph.tensors()[t];
    if (tensor.operation != Operation::kNone || tensor.root.value() != t) continue;
    leafs_[t] = host_.make(tensor.extent).value();
    fill_leaf(model.made, TensorId{t}, 11, leafs_[t]);
    if ((tensor.flags & graph::kExternal) == 0) continue;
    sched::Backend& home = model.layers[t] <= 0 ? *backends_.front() : *backends_.back();
    external_[t] = home.make_buffer(tensor.extent).value();
    weights_.push_back({&home, external_[t]});
    const auto* const from = static_cast<const std::byte*>(leafs_[t].pointer());
    EXPECT_TRUE(home.set(external_[t], {from, tensor.extent.count()}).is_ok());
  }
}

ModelRun::~ModelRun() {
  for (const Weight& weight : weights_) EXPECT_TRUE(weight.home->release_buffer(weight.at).is_ok());
}

double ModelRun::difference() {
  const Graph& graph = model_.made.graph;
  ReferenceRun reference(graph, leafs_);
  sched::GraphScheduler scheduler(backends_);
  if (!scheduler.reserve(graph, external_).is_ok()) {
    ADD_FAILURE() << scheduler.last_error();
    return std::numeric_limits<double>::infinity();
  }
  for (std::uint32_t t = 0; t < graph.tensors().size(); ++t) {
    if (leafs_[t].is_null() || !external_[t].is_null()) continue;
    const auto* const from = static_cast<const std::byte*>(leafs_[t].pointer());
    EXPECT_TRUE(scheduler.set(TensorId{t}, {from, graph.tensors()[t].extent.count()}).is_ok());
  }
  EXPECT_TRUE(scheduler.run(graph, external_).is_ok());
  splits_ = scheduler.schedule()->splits.size();
  const TensorId output = model_.outputs[0];
  std::vector<float> got(graph::elements_of(graph[output].shape));
  EXPECT_TRUE(scheduler.get(output, std::as_writable_bytes(std::span(got))).is_ok());
  double worst = 0, largest = 0;
  for (std::uint64_t n = 0; n < got.size(); ++n) {
    const double expected = reference.at_place(output, place_of(graph[output].shape, n));
    worst = std::max(worst, std::abs(static_cast<double>(got[n]) - expected));
    largest = std::max(largest, std::abs(expected));
    if (!std::isfinite(got[n])) worst = std::numeric_limits<double>::infinity();
  }
  return worst / largest;
}

}  // namespace ashlar::props
