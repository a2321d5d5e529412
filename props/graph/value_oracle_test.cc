// G1 over random graphs: planned, aliased memory gives the same bits as a buffer for each tensor.
//
// Imitates: any model. ASHLAR_GRAPHS sets how many graphs are tried (default 3000).
// Does not prove: kernels right (cpu_backend_test.cc), only that memory changes nothing.
#include "props/graph/value_oracle.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

namespace ashlar {
namespace {

using props::ByteSource;
using props::compare_runs;
using props::MadeGraph;
using props::MakerOptions;
using props::OracleOptions;

std::uint64_t graphs_to_try() {
  const char* const text = std::getenv("ASHLAR_GRAPHS");
  return text == nullptr ? 3000 : std::strtoull(text, nullptr, 10);
}

TEST(ValueOracle, PlannedMemoryChangesNoValueOfAnyGraph) {
  std::array<std::uint64_t, graph::kOperations> nodes{};
  std::uint64_t in_order = 0, in_regions = 0, limited = 0;
  for (std::uint64_t seed = 0; seed < graphs_to_try(); ++seed) {
    const auto data = props::random_bytes(seed, 64 + seed % 7 * 100);
    ByteSource bytes(data);
    OracleOptions options;
    const std::uint64_t types = 1 + bytes.below(2);
    options.types.assign(types, {64_B, bytes.below(3) == 1 ? 4096_B : Bytes::max(), nullptr});
    limited += options.types[0].buffer_max == 4096_B ? 1 : 0;
    options.seed = seed;
    options.threads = seed % 16 == 0 ? 2 : 1;
    MakerOptions maker;
    maker.has_writers = seed % 4 != 0;
    maker.has_regions = seed % 3 == 0;
    const MadeGraph made = make_graph(bytes, maker);
    const auto rest = props::random_bytes(seed + 1'000'000'000, 400);
    ByteSource more(rest);
    options.request = make_request(more, made.graph, types);
    in_order += options.request.order.empty() ? 0 : 1;
    in_regions += made.graph.regions().empty() ? 0 : 1;
    for (const graph::TensorId node : made.graph.nodes())
      nodes[static_cast<std::size_t>(made.graph[node].operation)] += 1;
    ASSERT_EQ(compare_runs(made, options), "") << "seed " << seed << "\n"
                                               << props::describe(made.graph);
  }
  // The generator reaches everything.
  EXPECT_GT(in_order, graphs_to_try() / 50);
  EXPECT_GT(in_regions, graphs_to_try() / 20);
  EXPECT_GT(limited, graphs_to_try() / 10);
  for (std::uint8_t k = 0; k < graph::kOperations; ++k) {
    const auto operation = static_cast<graph::Operation>(k);
    const bool is_made = operation != graph::Operation::kNone &&
                         operation != graph::Operation::kTranspose &&
                         operation != graph::Operation::kControl;
    if (!is_made) continue;
    EXPECT_GT(nodes[k], 0u) << traits_of(operation).name;
  }
}

}  // namespace
}  // namespace ashlar
