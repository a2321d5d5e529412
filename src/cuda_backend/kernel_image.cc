#include "src/cuda_backend/kernel_image.h"

// ASHLAR_KERNEL_IMAGE is the path of the file that nvcc wrote.
#ifdef ASHLAR_KERNEL_IMAGE
extern "C" const std::byte ashlar_kernel_image_begin[];
extern "C" const std::byte ashlar_kernel_image_end[];
asm(".pushsection .rodata\n"
    ".balign 64\n"
    "ashlar_kernel_image_begin:\n"
    ".incbin \"" ASHLAR_KERNEL_IMAGE
    "\"\n"
    "ashlar_kernel_image_end:\n"
    ".popsection\n");
#endif

namespace ashlar::cuda_backend {

std::span<const std::byte> kernel_image() noexcept {
#ifdef ASHLAR_KERNEL_IMAGE
  return {ashlar_kernel_image_begin, ashlar_kernel_image_end};
#else
  return {};
#endif
}

}  // namespace ashlar::cuda_backend
