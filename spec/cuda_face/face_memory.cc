// Memory of the device and page-locked memory of the host.
#include "spec/cuda_face/shared_bytes.h"

namespace ashlar::spec::cuda_face {

CallResult read_memory_info(device::Device& on, std::size_t* free, std::size_t* total) {
  const Result<device::MemoryInfo> info = on.memory_info();
  if (info.is_ok()) {
    *free = info.value().free.count();
    *total = info.value().total.count();
  }
  return result_of(info.status());
}

CallResult end_registration(device::Device& on, void* base) {
  const CallResult ended = result_of(on.host_unregister(Address::of(base)));
  return ended == kErrorInvalidValue ? CallResult{kErrorNotRegistered} : ended;
}

namespace {

CallResult mem_get_info(std::size_t* free, std::size_t* total) {
  return on_current([&](device::Device& on) { return read_memory_info(on, free, total); });
}

CallResult mem_alloc(DevicePointer* base, std::size_t size) {
  if (size == 0) return kErrorInvalidValue;
  return on_current([&](device::Device& on) { return store(base, on.segment_alloc(Bytes{size})); });
}

CallResult mem_free(DevicePointer base) {
  return on_current([&](device::Device& on) {
    Status of_pool;
    if (free_from_pools(Address{base}, &of_pool)) return result_of(of_pool);
    const bool was_in_file = is_in_file(Address{base});
    const Bytes size = machine()->segment_size(Address{base});
    const Status freed = on.segment_free(Address{base});
    if (freed.is_ok() && was_in_file) return forget_file(Address{base}, size);
    return result_of(freed);
  });
}

CallResult mem_host_alloc(void** base, std::size_t size, unsigned flags) {
  if (size == 0 || flags != kHostPortable) return kErrorInvalidValue;
  return on_current([&](device::Device& on) { return store(base, on.pinned_alloc(Bytes{size})); });
}

CallResult mem_free_host(void* base) {
  return on_current(
      [&](device::Device& on) { return result_of(on.pinned_free(Address::of(base))); });
}

CallResult mem_host_register(void* base, std::size_t size, unsigned flags) {
  if (flags != kHostPortable) return kErrorInvalidValue;
  return on_current([&](device::Device& on) {
    return result_of(on.host_register(Address::of(base), Bytes{size}));
  });
}

CallResult mem_host_unregister(void* base) {
  return on_current([&](device::Device& on) { return end_registration(on, base); });
}

}  // namespace

std::span<const FaceFunction> memory_functions() {
  static const FaceFunction kFunctions[] = {
      {"cuMemGetInfo", 3020, pointer_of(mem_get_info)},
      {"cuMemAlloc", 3020, pointer_of(mem_alloc)},
      {"cuMemFree", 3020, pointer_of(mem_free)},
      {"cuMemHostAlloc", 2020, pointer_of(mem_host_alloc)},
      {"cuMemFreeHost", 2000, pointer_of(mem_free_host)},
      {"cuMemHostRegister", 6050, pointer_of(mem_host_register)},
      {"cuMemHostUnregister", 4000, pointer_of(mem_host_unregister)},
  };
  return kFunctions;
}

}  // namespace ashlar::spec::cuda_face
