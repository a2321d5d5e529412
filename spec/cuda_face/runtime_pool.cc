// Stream-ordered memory of the runtime: the default pools of all devices (stream_pool.h), with a release threshold of zero: at a
// synchronisation of a stream or a device, the memory whose free is complete goes back to its device.
//
// A stream that captures is refused with cudaErrorNotSupported, for graphs here have no nodes of memory.
// Thread safety: any thread.
#include <atomic>

#include "spec/cuda_face/runtime_calls.h"
#include "spec/gpu/stream_pool.h"

namespace ashlar::spec::cuda_runtime {
namespace {

/// The pools of the machine that is attached.
StreamPool& pools() {
  static StreamPool of_machine;
  static std::atomic<std::uint64_t> attachment{0};
  const std::uint64_t now = cuda_face::attachment();
  if (attachment.exchange(now) != now) of_machine.forget();
  return of_machine;
}

}  // namespace

void trim_pools() { pools().trim(Bytes{}); }

bool free_from_pool(void* base) {
  if (!pools().free_now(Address::of(base)).is_ok()) return false;
  forget_device(base);
  return true;
}

CallResult cudaMallocAsync(void** base, std::size_t size, StreamPointer stream) {
  if (base == nullptr) return answer(kErrorInvalidValue);
  return on_device(device_of(stream), [&](device::Device& on) {
    *base = nullptr;
    const Result<Stream> asked = stream_outside_captures(on, handle_of(stream));
    if (!asked.is_ok()) return result_of(asked.status());
    if (size == 0) return CallResult{kSuccess};
    const Result<Address> made = pools().allocate(on, Bytes{size}, asked.value());
    if (!made.is_ok()) return result_of(made.status());
    *base = made.value().pointer();
    keep_device(*base, on.traits().id.value());
    return CallResult{kSuccess};
  });
}

CallResult cudaFreeAsync(void* base, StreamPointer stream) {
  if (base == nullptr) return kSuccess;
  return on_device(device_of(stream), [&](device::Device& on) {
    const Result<Stream> asked = stream_outside_captures(on, handle_of(stream));
    if (!asked.is_ok()) return result_of(asked.status());
    const Status freed = pools().free_behind(on, Address::of(base), asked.value());
    if (freed.is_ok()) forget_device(base);
    return result_of(freed);
  });
}

}  // namespace ashlar::spec::cuda_runtime
