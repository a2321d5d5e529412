// Streams: their order, and waiting for them.
#include "spec/cuda_face/runtime_calls.h"

namespace ashlar::spec::cuda_runtime {

CallResult wait_for_stream(device::Device& on, StreamPointer stream) {
  const Result<EventHandle> behind = on.event_create();
  if (!behind.is_ok()) return result_of(behind.status());
  Status done = on.event_record(behind.value(), handle_of(stream));
  if (done.is_ok()) {
    done = cuda_face::until_possible(
        [&] { return on.event_synchronize(behind.value(), device::kWaitForever); });
  }
  static_cast<void>(on.event_destroy(behind.value()));
  return result_of(done);
}

CallResult cudaStreamCreate(StreamPointer* stream) { return cudaStreamCreateWithFlags(stream, 0); }

CallResult cudaStreamCreateWithFlags(StreamPointer* stream, unsigned flags) {
  if (stream == nullptr || flags > kStreamNonBlocking) return answer(kErrorInvalidValue);
  return on_thread_device([&](device::Device& on) {
    const DeviceId id = on.traits().id;
    const Result<Stream> made = machine()->create_stream(
        id, flags == kStreamNonBlocking ? StreamKind::kNonBlocking : StreamKind::kBlocking);
    if (!made.is_ok()) return result_of(made.status());
    *stream = reinterpret_cast<StreamPointer>(made.value().handle.value());
    keep_device(*stream, id.value());
    return CallResult{kSuccess};
  });
}

/// The machine knows no priorities: every number is in range and means the same.
CallResult cudaStreamCreateWithPriority(StreamPointer* stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}

CallResult cudaStreamDestroy(StreamPointer stream) {
  if (handle_of(stream).value() <= kStreamPerThread) return answer(kErrorInvalidHandle);
  return on_device(device_of(stream), [&](device::Device& on) {
    const Status ended = machine()->destroy_stream({handle_of(stream), StreamId{}, on.traits().id});
    if (ended.is_ok()) forget_device(stream);
    return result_of(ended);
  });
}

CallResult cudaStreamQuery(StreamPointer stream) {
  return on_device(device_of(stream), [&](device::Device& on) {
    const Result<Stream> asked = on.identify(handle_of(stream));
    if (!asked.is_ok()) return result_of(asked.status());
    return machine()->pending(asked.value()) == 0 ? CallResult{kSuccess}
                                                  : CallResult{kErrorNotReady};
  });
}

CallResult cudaStreamSynchronize(StreamPointer stream) {
  return on_device(device_of(stream), [&](device::Device& on) {
    const CallResult done = wait_for_stream(on, stream);
    if (done == kSuccess) trim_pools();
    return done;
  });
}

CallResult cudaStreamWaitEvent(StreamPointer stream, EventPointer event, unsigned flags) {
  if (flags > 1) return answer(kErrorInvalidValue);  // 1: cudaEventWaitExternal
  return on_device(device_of(stream), [&](device::Device& on) {
    return result_of(on.stream_wait(handle_of(stream), handle_of(event)));
  });
}

CallResult cudaStreamGetId(StreamPointer stream, unsigned long long* id) {
  if (id == nullptr) return answer(kErrorInvalidValue);
  return on_device(device_of(stream),
                   [&](device::Device& on) { return cuda_face::read_stream_id(on, stream, id); });
}

}  // namespace ashlar::spec::cuda_runtime
