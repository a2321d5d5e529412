// Misbehaves at the third allocation: ends the process, or what a macro says. Its blocks are never given back.
//
//   PLANT_THROW   throws
//   PLANT_TALK    writes to standard output, and goes on
//   PLANT_LOOP    does not return
//   PLANT_ONCE    removes its file, so that the next world cannot load it
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "props/audit/cuda_calls.h"

namespace {

void misbehave() {
#if defined(PLANT_THROW)
  throw std::runtime_error("no third block");
#elif defined(PLANT_TALK)
  std::puts("this is the third block");
  std::fflush(stdout);
#elif defined(PLANT_LOOP)
  for (volatile bool goes_on = true; goes_on;) continue;
#elif defined(PLANT_ONCE)
  std::remove("once.so");  // of the working directory
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
