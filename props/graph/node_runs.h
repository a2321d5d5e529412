// Kernels against the reference in doubles, node by node.
//
// Each node gets the same sources on both sides, so errors do not add up.
// Thread safety: none.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "props/graph/reference_values.h"
#include "props/graph/value_oracle.h"
#include "src/cpu_backend/cpu_backend.h"

namespace ashlar::props {

/// The tolerance, relative to the largest element of the result: some units in the last place of a float,
/// and one of a half.
inline constexpr double kTolerance = 2e-5;
inline constexpr double kHalfTolerance = 1.0 / 1024;
inline constexpr double kLeastHalf = 1.0 / (1 << 24);  // the smallest half above zero

/// Computes one node of a graph, whose tensors lie there.
using ComputeNode = std::function<Status(const graph::Graph& graph, graph::TensorId node,
                                         const std::vector<Address>& addresses)>;

/// A graph with a buffer for each tensor, run node by node.
class NodeRuns {
 public:
  NodeRuns(const MadeGraph& made, std::uint64_t seed)
      : made_(made), buffers_(std::make_shared<cpu::HostBuffers>()) {
    for (std::uint32_t t = 0; t < made.graph.tensors().size(); ++t) {
      const graph::Tensor& tensor = made.graph.tensors()[t];
      if (tensor.root.value() != t) {
        addresses_.push_back(addresses_[tensor.root.value()] + tensor.view_offset);
        continue;
      }
      const Bytes size = std::max(tensor.extent, Bytes{1});
      addresses_.push_back(buffers_->make(size).value());
      std::memset(addresses_.back().pointer(), 0, size.count());
      const bool is_leaf = tensor.operation == graph::Operation::kNone;
      if (is_leaf) fill_leaf(made, graph::TensorId{t}, seed, addresses_.back());
    }
  }

  /// The first node whose values are others than the reference's.
  std::string run(const ComputeNode& compute) {
    for (const graph::TensorId node : made_.graph.nodes()) {
      if (cpu::kernel_of(made_.graph[node].operation).kernel == nullptr) continue;
      const std::vector<double> expected =
          reference_values(made_.graph, node, [&](std::size_t k, const Place& at) {
            return element(made_.graph.sources(made_.graph[node])[k], at);
          });
      if (const Status status = compute(made_.graph, node, addresses_); !status.is_ok())
        return status.why();
      if (std::string found = compare(node, expected); !found.empty()) return found;
    }
    return "";
  }

 private:
  double element(graph::TensorId id, const Place& at) const {
    const cpu::Operand operand{&made_.graph[id],
                               static_cast<std::byte*>(addresses_[id.value()].pointer())};
    const graph::ElementType type = made_.graph[id].type;
    if (type == graph::ElementType::kI32 || type == graph::ElementType::kI64)
      return static_cast<double>(cpu::read_index(operand, at[0], at[1], at[2], at[3]));
    if (graph::traits_of(type).block_elements == 1)
      return static_cast<double>(cpu::read_element(operand, at[0], at[1], at[2], at[3]));
    std::vector<float> row;
    return static_cast<double>(cpu::read_row(operand, at[1], at[2], at[3], row)[at[0]]);
  }

  std::string compare(graph::TensorId node, const std::vector<double>& expected) const {
    const graph::Tensor& tensor = made_.graph[node];
    const bool is_half = tensor.type == graph::ElementType::kF16;
    double largest = 1e-6;
    for (const double value : expected) {
      if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    }
    // What a float, or a half, cannot hold becomes infinite.
    const double limit = is_half ? 65000 : 3e38;
    for (std::uint64_t n = 0; n < expected.size(); ++n) {
      const double got = element(node, place_of(tensor.shape, n));
      const bool is_lost = !std::isfinite(expected[n]) || std::abs(expected[n]) > limit;
      if (is_lost && !std::isfinite(got)) continue;
      const double tolerance =
          is_half ? kHalfTolerance * largest + kLeastHalf : kTolerance * largest;
      if (std::abs(got - expected[n]) <= tolerance) continue;
      return "tensor " + std::to_string(node.value()) + " (" +
             std::string(graph::traits_of(tensor.operation).name) + ") element " +
             std::to_string(n) + ": " + std::to_string(got) + " for " + std::to_string(expected[n]);
    }
    return "";
  }

  const MadeGraph& made_;
  std::shared_ptr<cpu::HostBuffers> buffers_;
  std::vector<Address> addresses_;
};

}  // namespace ashlar::props
