// Streams and events.
#include "spec/cuda_face/face_calls.h"

namespace ashlar::spec::cuda_face {

CallResult read_capture_status(device::Device& on, StreamPointer stream, int* status) {
  const Result<device::CaptureStatus> asked = on.capture_status(handle_of(stream));
  if (asked.is_ok()) *status = static_cast<int>(asked.value());
  return asked.code() == Code::kCaptureUnsafe ? CallResult{kErrorCaptureImplicit}
                                              : result_of(asked.status());
}

CallResult read_stream_id(device::Device& on, StreamPointer stream, unsigned long long* id) {
  const Result<Stream> asked = on.identify(handle_of(stream));
  if (asked.is_ok()) *id = asked.value().id.value();
  return result_of(asked.status());
}

CallResult exchange_mode(device::Device& on, int* mode) {
  const Result<device::CaptureMode> before =
      on.exchange_capture_mode(static_cast<device::CaptureMode>(*mode));
  if (before.is_ok()) *mode = static_cast<int>(before.value());
  return result_of(before.status());
}

CallResult query_event(device::Device& on, EventPointer event) {
  const CallResult asked = result_of(on.event_query(handle_of(event)));
  return asked == kErrorCaptureUnsupported ? CallResult{kErrorCapturedEvent} : asked;
}

namespace {

CallResult stream_wait_event(StreamPointer stream, EventPointer event, unsigned flags) {
  if (flags != 0) return kErrorInvalidValue;
  return on_current([&](device::Device& on) {
    return result_of(on.stream_wait(handle_of(stream), handle_of(event)));
  });
}

CallResult stream_is_capturing(StreamPointer stream, int* status) {
  return on_current([&](device::Device& on) { return read_capture_status(on, stream, status); });
}

CallResult exchange_capture_mode(int* mode) {
  if (*mode < 0 || *mode > 2) return kErrorInvalidValue;
  return on_current([&](device::Device& on) { return exchange_mode(on, mode); });
}

CallResult event_create(EventPointer* event, unsigned flags) {
  if (flags != kEventDisableTiming) return kErrorInvalidValue;
  return on_current([&](device::Device& on) { return store(event, on.event_create()); });
}

CallResult event_destroy(EventPointer event) {
  return on_current(
      [&](device::Device& on) { return result_of(on.event_destroy(handle_of(event))); });
}

CallResult event_record(EventPointer event, StreamPointer stream) {
  return on_current([&](device::Device& on) {
    return result_of(on.event_record(handle_of(event), handle_of(stream)));
  });
}

CallResult event_query(EventPointer event) {
  return on_current([&](device::Device& on) { return query_event(on, event); });
}

CallResult event_synchronize(EventPointer event) {
  return on_current([&](device::Device& on) {
    return result_of(on.event_synchronize(handle_of(event), device::kWaitForever));
  });
}

CallResult stream_get_id(StreamPointer stream, unsigned long long* id) {
  return on_current([&](device::Device& on) { return read_stream_id(on, stream, id); });
}

}  // namespace

std::span<const FaceFunction> stream_functions() {
  static const FaceFunction kFunctions[] = {
      {"cuStreamWaitEvent", 3020, pointer_of(stream_wait_event)},
      {"cuStreamIsCapturing", 10000, pointer_of(stream_is_capturing)},
      {"cuThreadExchangeStreamCaptureMode", 10010, pointer_of(exchange_capture_mode)},
      {"cuEventCreate", 2000, pointer_of(event_create)},
      {"cuEventDestroy", 4000, pointer_of(event_destroy)},
      {"cuEventRecord", 2000, pointer_of(event_record)},
      {"cuEventQuery", 2000, pointer_of(event_query)},
      {"cuEventSynchronize", 2000, pointer_of(event_synchronize)},
      {"cuStreamGetId", 12000, pointer_of(stream_get_id)},
  };
  return kFunctions;
}

}  // namespace ashlar::spec::cuda_face
