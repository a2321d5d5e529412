// CUB's CachingDeviceAllocator, as the toolkit has it, with its default bins.
#include <cub/util_allocator.cuh>

namespace {

cub::CachingDeviceAllocator& allocator() {
  static cub::CachingDeviceAllocator made{true};  // skips its destructor's work
  return made;
}

}  // namespace

extern "C" [[gnu::visibility("default")]] void* audit_alloc(std::size_t size, int device,
                                                            cudaStream_t stream) {
  void* block = nullptr;
  return allocator().DeviceAllocate(device, &block, size, stream) == cudaSuccess ? block : nullptr;
}

extern "C" [[gnu::visibility("default")]] void audit_free(void* block, std::size_t, int device,
                                                          cudaStream_t) {
  static_cast<void>(allocator().DeviceFree(device, block));
}

extern "C" [[gnu::visibility("default")]] void audit_empty_cache() {
  static_cast<void>(allocator().FreeAllCached());
}
