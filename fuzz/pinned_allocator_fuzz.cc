// Fuzz target: the allocator of page-locked memory over two simulated GPUs. Every input is a program
// (props/pinned/pinned_world.h), each of whose steps is checked.
//
// Imitates: lawful callers that capture and also misuse pointers, and drivers that fail. Does not prove: anything about
// threads.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "props/pinned/pinned_world.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ashlar::props::InputBytes input(data, size);
  ashlar::props::PinnedWorld world(input);
  const std::string finding = world.run();
  if (finding.empty()) return 0;
  std::fprintf(stderr, "%s\n", finding.c_str());
  std::abort();
}
