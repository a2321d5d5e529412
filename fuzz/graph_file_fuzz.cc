// Fuzz target: the reader of graph files. An input is refused with one line that names file and line, or gives
// a graph that can be planned and scheduled.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <ashlar/graph/graph_allocator.h>

#include "spec/graph/imaginary_buffers.h"
#include "spec/graph/memory_judge.h"
#include "src/tool/graph_file.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

/// More tensors than this are planned, but not judged: the judge looks at every pair.
constexpr std::size_t kJudgedMax = 200;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ashlar;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string error;
  const auto file = tool::parse_graph(text, "in.json", &error);
  if (!file) {
    require(error.rfind("in.json:", 0) == 0);
    for (const char c : error) require(c >= ' ' && c < 127);
    return 0;
  }
  spec::ImaginaryBuffers source;
  const std::vector<graph::BufferType> types{{file->alignment, Bytes::max(), nullptr}};
  graph::GraphAllocator allocator(source, types);
  std::vector<Address> addresses(file->graph.tensors().size());
  const Status status = allocator.allocate(file->graph, {}, addresses);
  require(status.is_ok() || status.code() == Code::kSizeOverflow);
  if (status.is_ok() && addresses.size() <= kJudgedMax)
    require(!spec::judge_memory(file->graph, {}, types, source.live(), addresses));
  return 0;
}
