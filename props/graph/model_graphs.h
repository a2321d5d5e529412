// Small versions of real models' graphs: the operations, views, caches and wiring of the stored graphs, with
// shapes that a test can run.
//
// Purpose: the oracles run what models are, and a transformer runs from end to end.
// Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "props/graph/graph_maker.h"

namespace ashlar::props {

/// A model's graph and its results.
struct ModelGraph {
  std::string name;
  MadeGraph made;
  std::vector<graph::TensorId> outputs;
  std::vector<std::int32_t> layers;  ///< by tensor: its layer, -1 for the model's input
};

/// A transformer as Llama has it: `layers` blocks, a cache of halves, weights of packed types; attention as one
/// operation or by soft-max; feed-forward networks of one expert or several.
struct TransformerShape {
  std::uint64_t layers = 2, width = 64, heads = 4, kv_heads = 2, hidden = 96, vocabulary = 50;
  std::uint64_t tokens = 5, cache = 8;
  bool has_one_attention = false;
  std::uint64_t experts = 0;  ///< 0: no experts
  graph::ElementType weights = graph::ElementType::kF32;
};
ModelGraph transformer(const TransformerShape& shape);

/// The models of the stored graphs: MLP, GPT-2, Llama (both attentions), Mixtral, Whisper's encoder, a residual
/// network, MNIST's convolutional network in training.
std::vector<ModelGraph> small_models();

}  // namespace ashlar::props
