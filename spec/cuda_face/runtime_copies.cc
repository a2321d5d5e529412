// Copies and fills: work that touches the machine's bytes, and moves them where the addresses have bytes (give_bytes).
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "spec/cuda_face/runtime_calls.h"

namespace ashlar::spec::cuda_runtime {
namespace {

/// Is that side of a copy the machine's? Without bytes only the kind of the copy tells.
bool is_touched(const void* at, bool kind_says_device) {
  return cuda_face::has_bytes() ? cuda_face::is_of_machine(Address::of(at).value())
                                : kind_says_device;
}

CallResult enqueue(StreamPointer stream, const std::vector<Touch>& touches,
                   std::function<void()> work, bool waits) {
  return on_device(device_of(stream), [&](device::Device& on) {
    const CallResult enqueued = cuda_face::enqueue_work(stream, touches, std::move(work));
    return enqueued == kSuccess && waits ? wait_for_stream(on, stream) : enqueued;
  });
}

}  // namespace

CallResult copy(void* to, const void* from, std::size_t size, int kind, StreamPointer stream,
                bool waits) {
  if (kind < kHostToHost || kind > kCopyDefault) return answer(kErrorInvalidValue);
  if (size == 0) return kSuccess;
  if (to == nullptr || from == nullptr) return answer(kErrorInvalidValue);
  std::vector<Touch> touches;
  if (is_touched(from, kind >= kDeviceToHost))
    touches.push_back({Address::of(from), Bytes{size}, Access::kRead});
  if (is_touched(to, kind == kHostToDevice || kind >= kDeviceToDevice))
    touches.push_back({Address::of(to), Bytes{size}, Access::kWrite});
  const bool moves = cuda_face::has_bytes();
  return enqueue(
      stream, touches,
      [=] {
        if (moves) std::memmove(to, from, size);
      },
      waits);
}

CallResult fill(void* at, int value, std::size_t size, StreamPointer stream, bool waits) {
  if (size == 0) return kSuccess;
  if (at == nullptr) return answer(kErrorInvalidValue);
  const bool moves = cuda_face::has_bytes();
  return enqueue(
      stream, {{Address::of(at), Bytes{size}, Access::kWrite}},
      [=] {
        if (moves) std::memset(at, value, size);
      },
      waits);
}

CallResult cudaMemcpy(void* to, const void* from, std::size_t size, int kind) {
  return copy(to, from, size, kind, nullptr, true);
}

CallResult cudaMemcpyAsync(void* to, const void* from, std::size_t size, int kind,
                           StreamPointer stream) {
  return copy(to, from, size, kind, stream, false);
}

CallResult cudaMemset(void* at, int value, std::size_t size) {
  return fill(at, value, size, nullptr, false);
}

CallResult cudaMemsetAsync(void* at, int value, std::size_t size, StreamPointer stream) {
  return fill(at, value, size, stream, false);
}

}  // namespace ashlar::spec::cuda_runtime
