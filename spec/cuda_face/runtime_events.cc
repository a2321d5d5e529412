// Events. The machine's have no time, so every event is as one with cudaEventDisableTiming.
#include "spec/cuda_face/runtime_calls.h"

namespace ashlar::spec::cuda_runtime {

CallResult cudaEventCreate(EventPointer* event) { return cudaEventCreateWithFlags(event, 0); }

CallResult cudaEventCreateWithFlags(EventPointer* event, unsigned flags) {
  if (event == nullptr || flags > kEventFlagsMax) return answer(kErrorInvalidValue);
  return on_thread_device([&](device::Device& on) {
    const Result<EventHandle> made = on.event_create();
    if (!made.is_ok()) return result_of(made.status());
    *event = reinterpret_cast<EventPointer>(made.value().value());
    keep_device(*event, on.traits().id.value());
    return CallResult{kSuccess};
  });
}

CallResult cudaEventDestroy(EventPointer event) {
  return on_device(device_of(event), [&](device::Device& on) {
    const Status ended = on.event_destroy(handle_of(event));
    if (ended.is_ok()) forget_device(event);
    return result_of(ended);
  });
}

CallResult cudaEventRecord(EventPointer event, StreamPointer stream) {
  return cudaEventRecordWithFlags(event, stream, 0);
}

CallResult cudaEventRecordWithFlags(EventPointer event, StreamPointer stream, unsigned flags) {
  if (flags != 0) return answer(kErrorInvalidValue);
  return on_device(device_of(stream), [&](device::Device& on) {
    return result_of(on.event_record(handle_of(event), handle_of(stream)));
  });
}

CallResult cudaEventQuery(EventPointer event) {
  return on_device(device_of(event),
                   [&](device::Device& on) { return cuda_face::query_event(on, event); });
}

CallResult cudaEventSynchronize(EventPointer event) {
  return on_device(device_of(event), [&](device::Device& on) {
    return result_of(cuda_face::until_possible(
        [&] { return on.event_synchronize(handle_of(event), device::kWaitForever); }));
  });
}

}  // namespace ashlar::spec::cuda_runtime
