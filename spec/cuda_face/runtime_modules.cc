// What the compiler's start-up code of a CUDA source calls. Kernels of such a module are never launched here, so nothing is kept.
//
// Thread safety: any thread.
#include "spec/cuda_face/runtime_calls.h"

namespace ashlar::spec {
namespace [[gnu::visibility("default")]] cuda_runtime {

void** register_fat_binary(void* binary) asm("__cudaRegisterFatBinary");
void register_fat_binary_end(void** module) asm("__cudaRegisterFatBinaryEnd");
void unregister_fat_binary(void** module) asm("__cudaUnregisterFatBinary");
char init_module(void** module) asm("__cudaInitModule");

void** register_fat_binary(void*) {
  static void* module = nullptr;
  return &module;
}
void register_fat_binary_end(void**) {}
void unregister_fat_binary(void**) {}
char init_module(void**) { return 1; }

}  // namespace cuda_runtime
}  // namespace ashlar::spec
