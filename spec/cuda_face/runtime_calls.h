// What the files of the runtime's face share: the calling thread's device and last error, and where handles were made.
//
// Thread safety: any thread.
#pragma once

#include <cstdint>

#include "spec/cuda_face/face_calls.h"
#include "spec/cuda_face/runtime_abi.h"

namespace ashlar::spec::cuda_runtime {

using cuda_face::handle_of;
using cuda_face::machine;
using cuda_face::result_of;
using namespace ashlar::cuda;  // NOLINT(google-build-using-namespace): the answers

/// The runtime's state of a thread, which begins anew with another machine.
struct RuntimeThread {
  std::uint64_t attachment = 0;
  int device = 0;
  CallResult last_error = kSuccess;
};
RuntimeThread& runtime_thread();

/// Keeps an answer that is an error as the thread's last one. Every function's answer goes through here.
CallResult answer(CallResult result);

/// The machine has a device of that number.
bool has_device(int device);

// The devices of what was made here. Of what came from elsewhere, and of the default streams, it is the thread's device.
int device_of(StreamPointer stream);
int device_of(EventPointer event);
int device_of(const void* memory);
/// The device of the handle or the address is that from now on.
void keep_device(const void* made, int device);
void forget_device(const void* made);

/// Makes the call on that device, with the device's context current for what the driver's face does.
template <class Call>
CallResult on_device(int device, Call&& call) {
  if (const CallResult planned = cuda_face::take_planned(); planned != kSuccess)
    return answer(planned);
  if (machine() == nullptr) return answer(kErrorNoDevice);
  cuda_face::make_current(device);
  const CallResult result = call(machine()->device(device));
  cuda_face::make_current(-1);
  return answer(result);
}
template <class Call>
CallResult on_thread_device(Call&& call) {
  return on_device(runtime_thread().device, call);
}

/// Waits for what was enqueued on the stream so far. REQUIRES: its device is `on`, and current.
CallResult wait_for_stream(device::Device& on, StreamPointer stream);

// Copies and fills (runtime_copies.cc); they wait for the end if told to.
CallResult copy(void* to, const void* from, std::size_t size, int kind, StreamPointer stream,
                bool waits);
CallResult fill(void* at, int value, std::size_t size, StreamPointer stream, bool waits);

// The pool of stream-ordered memory (runtime_pool.cc).
/// Gives back to the devices what was freed, and whose free is complete.
void trim_pools();
/// Frees memory of the pool, whose work is done, at once. False: it is none.
bool free_from_pool(void* base);

}  // namespace ashlar::spec::cuda_runtime
