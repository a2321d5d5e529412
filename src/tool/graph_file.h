// Graph files: JSON lines, one tensor each; plain or gzip.
//
// Line 1 is an object with `rec` = "meta", `align`, the alignment of tensors in bytes, and `n_nodes`, if the number of
// nodes is to be checked. Every other
// line is a tensor: `id` (0, 1, ... in order), `kind` (leaf or node), `op`, `type`, `ne` (elements per
// dimension), `nb` (strides in bytes), `srcs` (ids, or null for an unused place), `view_src` and
// `view_offs` (bytes) for views, `flags` (input, output, param, loss), `prealloc` (true: memory from
// outside), `name`, `layer`; `bytes`, if it is there, is what shape and strides need. Other fields are ignored. It is the form of ggml's graphs; a CPY that names
// itself as its destination is ggml's way to write a cast.
// Thread safety: pure functions of the file system.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ashlar/graph/graph.h>

namespace ashlar::tool {

/// A graph as its file has it.
struct GraphFile {
  graph::Graph graph;  ///< ids as in the file
  Bytes alignment{32};
  std::uint32_t nodes = 0;           ///< lines of kind node
  std::vector<std::int32_t> layers;  ///< by tensor: -1 the model's input, -2 not known
  std::optional<Bytes> peer_bytes;   ///< `gallocr_bytes` of line 1, if it is there
};

/// The text with a '?' for each byte that is no printable ASCII character.
std::string printable(std::string_view text);

/// Reads a graph from `text`. On failure `*error` is `name:line: reason`, one line of printable text.
std::optional<GraphFile> parse_graph(std::string_view text, std::string_view name,
                                     std::string* error);
/// Reads a graph from a file. On failure `*error` is `path: reason` or `path:line: reason`.
std::optional<GraphFile> read_graph(const std::string& path, std::string* error);

}  // namespace ashlar::tool
