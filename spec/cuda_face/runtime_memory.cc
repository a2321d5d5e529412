// Memory of the device, and page-locked memory of the host.
//
// cudaFree waits for all work of the memory's device; cudaFreeHost and cudaHostUnregister are not documented to wait, so the
// machine reports work that is still in flight there (D4).
#include "spec/cuda_face/runtime_calls.h"

namespace ashlar::spec::cuda_runtime {
namespace {

/// Keeps what was allocated, and its device.
CallResult keep(void** base, const Result<Address>& made, device::Device& on) {
  if (!made.is_ok()) return result_of(made.status());
  *base = made.value().pointer();
  keep_device(*base, on.traits().id.value());
  return kSuccess;
}

}  // namespace

CallResult cudaMalloc(void** base, std::size_t size) {
  if (base == nullptr) return answer(kErrorInvalidValue);
  return on_thread_device([&](device::Device& on) {
    *base = nullptr;
    return size == 0 ? kSuccess : keep(base, on.segment_alloc(Bytes{size}), on);
  });
}

CallResult cudaFree(void* base) {
  return on_device(device_of(base), [&](device::Device& on) {
    if (base == nullptr) return CallResult{kSuccess};
    // Not synchronize(): a relaxed capture permits cudaFree, and lives on.
    const Status done = cuda_face::until_possible([&] { return machine()->drain(on.traits().id); });
    if (!done.is_ok()) return result_of(done);
    if (free_from_pool(base)) return CallResult{kSuccess};
    const Status freed = on.segment_free(Address::of(base));
    if (freed.is_ok()) forget_device(base);
    return result_of(freed);
  });
}

CallResult cudaMallocHost(void** base, std::size_t size) { return cudaHostAlloc(base, size, 0); }

CallResult cudaHostAlloc(void** base, std::size_t size, unsigned flags) {
  if (base == nullptr || flags > kHostAllocFlagsMax) return answer(kErrorInvalidValue);
  return on_thread_device([&](device::Device& on) {
    *base = nullptr;
    return size == 0 ? kSuccess : keep(base, on.pinned_alloc(Bytes{size}), on);
  });
}

CallResult cudaFreeHost(void* base) {
  return on_device(device_of(base), [&](device::Device& on) {
    if (base == nullptr) return CallResult{kSuccess};
    const Status freed = on.pinned_free(Address::of(base));
    if (freed.is_ok()) forget_device(base);
    return result_of(freed);
  });
}

CallResult cudaHostRegister(void* base, std::size_t size, unsigned flags) {
  if (base == nullptr || size == 0 || flags > kHostAllocFlagsMax) return answer(kErrorInvalidValue);
  return on_thread_device([&](device::Device& on) {
    const Status registered = on.host_register(Address::of(base), Bytes{size});
    if (registered.is_ok()) keep_device(base, on.traits().id.value());
    return result_of(registered);
  });
}

CallResult cudaHostUnregister(void* base) {
  return on_device(device_of(base), [&](device::Device& on) {
    const CallResult ended = cuda_face::end_registration(on, base);
    if (ended == kSuccess) forget_device(base);
    return ended;
  });
}

CallResult cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  if (free == nullptr || total == nullptr) return answer(kErrorInvalidValue);
  return on_thread_device(
      [&](device::Device& on) { return cuda_face::read_memory_info(on, free, total); });
}

}  // namespace ashlar::spec::cuda_runtime
