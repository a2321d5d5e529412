// Captures of streams.
#include "spec/cuda_face/runtime_calls.h"

namespace ashlar::spec::cuda_runtime {
namespace {

constexpr int kModes = 3;  // cudaStreamCaptureMode: global, thread-local, relaxed

}  // namespace

CallResult cudaStreamIsCapturing(StreamPointer stream, int* status) {
  if (status == nullptr) return answer(kErrorInvalidValue);
  return on_device(device_of(stream), [&](device::Device& on) {
    return cuda_face::read_capture_status(on, stream, status);
  });
}

CallResult cudaStreamBeginCapture(StreamPointer stream, int mode) {
  if (mode < 0 || mode >= kModes) return answer(kErrorInvalidValue);
  return on_device(device_of(stream),
                   [&](device::Device&) { return cuda_face::stream_begin_capture(stream, mode); });
}

CallResult cudaStreamEndCapture(StreamPointer stream, Graph* graph) {
  if (graph == nullptr) return answer(kErrorInvalidValue);
  return on_device(device_of(stream),
                   [&](device::Device&) { return cuda_face::stream_end_capture(stream, graph); });
}

CallResult cudaGraphDestroy(Graph graph) {
  if (graph == nullptr) return answer(kErrorInvalidValue);
  return on_thread_device([&](device::Device&) { return cuda_face::graph_destroy(graph); });
}

CallResult cudaThreadExchangeStreamCaptureMode(int* mode) {
  if (mode == nullptr || *mode < 0 || *mode >= kModes) return answer(kErrorInvalidValue);
  return on_thread_device([&](device::Device& on) { return cuda_face::exchange_mode(on, mode); });
}

}  // namespace ashlar::spec::cuda_runtime
