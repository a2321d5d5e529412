// What the files of the CUDA face share: the machine, the current context, and how answers become the driver's.
//
// Thread safety: as cuda_face.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "spec/cuda_face/cuda_face.h"

namespace ashlar::spec::cuda_face {

using namespace ashlar::cuda;  // NOLINT(google-build-using-namespace): the driver's types and codes

inline constexpr CallResult kErrorNotFound = 500;  // CUDA_ERROR_NOT_FOUND

/// A function, as the interface of that version has it.
struct FaceFunction {
  std::string_view name;
  int version = 0;
  void* function = nullptr;
};

template <class Function>
void* pointer_of(Function* function) {
  return reinterpret_cast<void*>(function);
}

std::span<const FaceFunction> context_functions();
std::span<const FaceFunction> memory_functions();
std::span<const FaceFunction> page_functions();
std::span<const FaceFunction> pool_functions();
std::span<const FaceFunction> stream_functions();
std::span<const FaceFunction> capture_functions();
std::span<const FaceFunction> work_functions();
std::span<const FaceFunction> share_functions();
std::span<const FaceFunction> kernel_functions();

/// Enqueues work that touches those bytes, or adds it to what the stream captures.
CallResult enqueue_work(StreamPointer stream, std::span<const Touch> touches,
                        std::function<void()> work, HostFlag held_by = 0);
/// Enqueues a kernel that faults.
CallResult enqueue_fault(StreamPointer stream);
/// Frees memory of a pool at once, with that answer. False: it is of none.
bool free_from_pools(Address base, Status* freed);
/// Pools that keep nothing give back what is freed and done: the host has waited for work.
void trim_at_synchronization();
/// False for memory of the host that the machine knows nothing of; give_bytes() tells it from the machine's.
bool is_of_machine(std::uint64_t address);
/// Do the machine's addresses have bytes behind them?
bool has_bytes();

// What both interfaces, the driver's and the runtime's, answer of a device.
CallResult read_memory_info(device::Device& on, std::size_t* free, std::size_t* total);
CallResult end_registration(device::Device& on, void* base);
CallResult read_capture_status(device::Device& on, StreamPointer stream, int* status);
CallResult read_stream_id(device::Device& on, StreamPointer stream, unsigned long long* id);
/// REQUIRES: a mode's number.
CallResult exchange_mode(device::Device& on, int* mode);
CallResult query_event(device::Device& on, EventPointer event);
// What both do with captures, on the current context.
CallResult stream_begin_capture(StreamPointer stream, int mode);
CallResult stream_end_capture(StreamPointer stream, Graph* graph);
CallResult graph_destroy(Graph graph);

/// Forgets what was captured on an earlier machine.
void forget_captures();
/// Forgets which device reaches which.
void forget_peers();
/// Waits for the host functions that run.
void end_host_functions();

/// Makes a call that waits, again while it could never end: a host function that runs on another thread may end, and with it
/// the wait.
template <class Call>
Status until_possible(Call&& call) {
  constexpr int kTriesMax = 10'000;
  Status done = call();
  for (int tries = 0; done.code() == Code::kDeadlock && tries < kTriesMax; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    done = call();
  }
  return done;
}

/// The machine; null if none is attached.
SimGpu* machine();
/// Where none is attached, the first machine() makes one and attaches it. Called before main().
void make_when_needed(SimGpu* (*how)());
/// Another number after each attach(): what was kept for another number is about an earlier machine.
std::uint64_t attachment();
/// The answer that was planned for the next call, which is taken; kSuccess: none.
CallResult take_planned();
/// What the GPUs have of it; -1: there is no such attribute.
int attribute(int which);
/// The calling thread's contexts, the current one last.
std::vector<Context>& contexts();
/// The number of the device whose context that is; -1: it is nobody's.
std::int32_t device_of(Context context);
/// The number of the device of the current context. REQUIRES: there is one.
std::int32_t current_device();

/// The driver's code for what the machine answers.
CallResult result_of(const Status& status);

/// Makes the call on the device of the thread's current context.
template <class Call>
CallResult on_current(Call&& call) {
  if (const CallResult planned = take_planned(); planned != kSuccess) return planned;
  if (machine() == nullptr) return kErrorDeinitialized;
  if (contexts().empty()) return kErrorInvalidContext;
  return call(machine()->device(current_device()));
}

/// Stores the value of an answer.
template <class To, class From>
CallResult store(To** to, const Result<From>& answer) {
  if (answer.is_ok()) *to = reinterpret_cast<To*>(answer.value().value());
  return result_of(answer.status());
}
template <class From>
CallResult store(std::uint64_t* to, const Result<From>& answer) {
  if (answer.is_ok()) *to = answer.value().value();
  return result_of(answer.status());
}

inline StreamHandle handle_of(StreamPointer stream) {
  return StreamHandle{reinterpret_cast<std::uintptr_t>(stream)};
}
inline EventHandle handle_of(EventPointer event) {
  return EventHandle{reinterpret_cast<std::uintptr_t>(event)};
}

}  // namespace ashlar::spec::cuda_face
