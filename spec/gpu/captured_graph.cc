#include "spec/gpu/captured_graph.h"

namespace ashlar::spec {
namespace {

/// One run of the body of that number, or of the graph (0).
void append_run(const CapturedGraph& graph, BodyRuns runs, std::uint32_t number,
                std::vector<std::size_t>* order) {
  const std::size_t first = number == 0 ? 0 : graph.bodies[number - 1].begin;
  for (std::size_t i = first; i <= graph.touches.size(); ++i) {
    for (std::uint32_t inner = number + 1; inner <= graph.bodies.size(); ++inner) {
      const CapturedGraph::Body& body = graph.bodies[inner - 1];
      if (body.parent != number || body.begin != i) continue;
      for (std::uint32_t n = 0; n < runs.of(inner); ++n) append_run(graph, runs, inner, order);
    }
    if (i < graph.touches.size() && graph.body_of[i] == number) order->push_back(i);
  }
}

}  // namespace

std::vector<std::size_t> run_order(const CapturedGraph& graph, BodyRuns runs) {
  std::vector<std::size_t> order;
  append_run(graph, runs, 0, &order);
  return order;
}

}  // namespace ashlar::spec
