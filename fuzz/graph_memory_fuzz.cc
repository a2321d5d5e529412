// Fuzz target: planned memory of any graph against separate buffers (clauses G1, G2), bit for bit.
//
// Imitates: unforeseen graphs: views, in-place chains, writers, loops, groups of concurrent nodes, limits of
// buffers. Every byte string is a graph (props/graph/graph_maker.h).
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>

#include "props/graph/value_oracle.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ashlar;
  const std::span<const std::uint8_t> input(data, size);
  // The first quarter, up to 64 bytes, chooses the request.
  const std::size_t for_request = std::min<std::size_t>(size / 4, 64);
  props::ByteSource choices(input.first(for_request)), nodes(input.subspan(for_request));
  props::OracleOptions options;
  const std::uint64_t types = 1 + choices.below(3);
  constexpr std::uint64_t kLimits[] = {~std::uint64_t{0}, 4096, 64, ~std::uint64_t{0}};
  options.types.clear();
  for (std::uint64_t k = 0; k < types; ++k)
    options.types.push_back({64_B, Bytes{kLimits[choices.below(4)]}, nullptr});
  options.seed = choices.below(256);
  options.threads = choices.below(8) == 1 ? 2 : 1;
  props::MakerOptions maker;
  maker.has_regions = choices.below(2) == 0;
  maker.has_writers = choices.below(2) == 0;
  const props::MadeGraph made = make_graph(nodes, maker);
  options.request = make_request(choices, made.graph, types);
  const std::string found = compare_runs(made, options);
  if (found.empty()) return 0;
  std::fprintf(stderr, "%s\n%s", found.c_str(), props::describe(made.graph).c_str());
  std::abort();
}
