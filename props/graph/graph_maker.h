// Random graphs that every kernel can run, made from bytes: the generator of suites and fuzz targets.
//
// Purpose: every operation but TRANSPOSE and CONTROL; views with offsets and strides, in-place chains, the same source twice, zero
// sizes, broadcasts, writers of views, loops and conditionals, several outputs. Any byte string is a
// graph; a choice that does not fit is left out.
// Thread safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <ashlar/graph/graph.h>
#include <ashlar/graph/memory_request.h>

namespace ashlar::props {

/// Numbers from bytes; zeros once they are used up.
class ByteSource {
 public:
  explicit ByteSource(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  /// A number below `bound`, which is at most 256.
  std::uint64_t below(std::uint64_t bound) {
    if (at_ >= bytes_.size()) return 0;
    return bytes_[at_++] % bound;
  }
  bool is_empty() const { return at_ >= bytes_.size(); }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

/// A graph, and what has to be known to run it.
struct MadeGraph {
  graph::Graph graph;
  /// By leaf that holds numbers of rows or experts: the bound of the numbers.
  std::map<std::uint32_t, std::uint64_t> index_bounds;
};

struct MakerOptions {
  std::size_t nodes_max = 40;
  bool has_regions = true;
  bool has_writers = true;
};

MadeGraph make_graph(ByteSource& bytes, const MakerOptions& options);

/// A request for the graph: buffer types below `types`, a parse order if the graph has neither regions nor
/// writers, further uses.
graph::MemoryRequest make_request(ByteSource& bytes, const graph::Graph& graph,
                                  std::uint64_t types);

/// The graph's tensors, one a line, for messages.
std::string describe(const graph::Graph& graph);

/// `count` bytes of a seed.
std::vector<std::uint8_t> random_bytes(std::uint64_t seed, std::size_t count);

}  // namespace ashlar::props
