// Misbehaves at the third allocation: ends the process, or what a macro says. Its blocks are never given back.
//
//   PLANT_THROW   throws
#include <cstdlib>
#include <stdexcept>

#include "props/audit/cuda_calls.h"

namespace {

void misbehave() {
#if defined(PLANT_THROW)
  throw std::runtime_error("no third block");
#else
  std::abort();
#endif
}

}  // namespace

extern "C" void* audit_alloc(std::size_t size, int, void*) {
  static int calls = 0;
  if (++calls == 3) misbehave();
  void* block = nullptr;
  return cudaMalloc(&block, size) == 0 ? block : nullptr;
}

extern "C" void audit_free(void*, std::size_t, int, void*) {}
