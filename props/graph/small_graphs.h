// Graphs of a few tensors for examples: f32 tensors that are given by their bytes.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <ashlar/graph/graph.h>

namespace ashlar::props {

/// Builds a graph; every step must succeed.
class SmallGraph {
 public:
  graph::Graph graph;

  graph::TensorId input(std::uint64_t bytes) { return leaf(bytes, graph::kInput); }
  graph::TensorId leaf(std::uint64_t bytes, std::uint8_t flags = graph::kNoFlags) {
    graph::TensorSpec spec;
    spec.shape[0] = bytes / 4;
    spec.flags = flags;
    return add(spec);
  }
  graph::TensorId node(graph::Operation operation, std::uint64_t bytes,
                       std::vector<graph::TensorId> sources, std::uint8_t flags = graph::kNoFlags) {
    graph::TensorSpec spec;
    spec.operation = operation;
    spec.shape[0] = bytes / 4;
    spec.sources = std::move(sources);
    spec.flags = flags;
    return add(spec);
  }
  /// A node of its first source's shape.
  graph::TensorId same(graph::Operation operation, std::vector<graph::TensorId> sources,
                       std::uint8_t flags = graph::kNoFlags) {
    graph::TensorSpec spec;
    spec.operation = operation;
    spec.shape = graph[sources[0]].shape;
    spec.sources = std::move(sources);
    spec.flags = flags;
    return add(spec);
  }
  graph::TensorId view(graph::TensorId of, std::uint64_t bytes, std::uint64_t offset = 0) {
    graph::TensorSpec spec;
    spec.operation = graph::Operation::kView;
    spec.shape[0] = bytes / 4;
    spec.sources = {of};
    spec.view_source = of;
    spec.view_offset = Bytes{offset};
    return add(spec);
  }
  /// CPY of `from` into all of `into`.
  graph::TensorId copy_into(graph::TensorId from, graph::TensorId into,
                            std::uint8_t flags = graph::kNoFlags) {
    graph::TensorSpec spec;
    spec.operation = graph::Operation::kCpy;
    spec.shape = graph[into].shape;
    spec.sources = {from};
    spec.view_source = into;
    spec.flags = flags;
    return add(spec);
  }
  graph::TensorId add(const graph::TensorSpec& spec) { return graph.add(spec).value(); }
};

}  // namespace ashlar::props
