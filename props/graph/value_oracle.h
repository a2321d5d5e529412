// The value oracle (G1): a graph run in planned memory computes the same bits as with each tensor in a
// buffer of its own.
//
// Every buffer is filled with poison first, another one in each of the two runs, so that what is read
// before it is written shows. Each node's result is compared right after the node has run, and the
// tensors that are kept once more at the end. Loops run twice, conditionals by a coin.
// Thread safety: none.
#pragma once

#include <string>
#include <vector>

#include <ashlar/graph/graph_allocator.h>

#include "props/graph/graph_maker.h"

namespace ashlar::props {

struct OracleOptions {
  graph::MemoryRequest request;
  std::vector<graph::BufferType> types{graph::BufferType{}};
  std::uint64_t seed = 1;  ///< of the values of leafs, and of the coins
  unsigned threads = 1;
};

/// The first difference, or what the judge of spec/ or the allocator says; empty if all is well.
std::string compare_runs(const MadeGraph& made, const OracleOptions& options);

/// The graph's values with each tensor in a buffer of its own: bytes by tensor, packed as they lie. Views
/// have those of their part. For references.
class SeparateRun {
 public:
  /// The leafs' values are those of the seed.
  SeparateRun(const MadeGraph& made, std::uint64_t seed);
  std::vector<float> values(graph::TensorId tensor) const;

 private:
  const MadeGraph& made_;
  std::vector<std::vector<std::byte>> memory_;
  std::vector<Address> addresses_;
};

/// Whether the elements at two places are the same bits; what lies between them does not count.
bool has_equal_elements(const graph::Tensor& tensor, const void* a, const void* b);

/// Writes a leaf's values: numbers below its bound, or small floats, by seed and id.
void fill_leaf(const MadeGraph& made, graph::TensorId leaf, std::uint64_t seed, Address at);

}  // namespace ashlar::props
