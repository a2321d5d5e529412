// What an application calls of the CUDA driver, beside what the library and the scheduler's backend call.
//
// Thread safety: a filled table is read only.
// Source: as driver_table.h; props/cuda/gpu_functions_check.cc compares signatures with the toolkit's header.
#pragma once

#include <cstdint>

#include <ashlar/base/status.h>
#include <ashlar/cuda/driver_abi.h>

#include "src/cuda_backend/gpu_functions.h"

namespace ashlar::props {

struct ApplicationFunctions {
  using CallResult = cuda::CallResult;
  using StreamPointer = cuda::StreamPointer;
  using Graph = cuda::Graph;
  using GraphExec = cuda::GraphExec;

  CallResult (*device_get_count)(int* count) = nullptr;
  CallResult (*device_get_name)(char* name, int size, int device) = nullptr;
  CallResult (*launch_host_func)(StreamPointer stream, void (*function)(void*),
                                 void* data) = nullptr;
  CallResult (*write_value)(StreamPointer stream, cuda::DevicePointer word, std::uint64_t value,
                            unsigned flags) = nullptr;
  CallResult (*wait_value)(StreamPointer stream, cuda::DevicePointer word, std::uint64_t value,
                           unsigned flags) = nullptr;
  CallResult (*begin_capture)(StreamPointer stream, int mode) = nullptr;
  CallResult (*end_capture)(StreamPointer stream, Graph* graph) = nullptr;
  CallResult (*instantiate)(GraphExec* executable, Graph graph, unsigned long long flags) = nullptr;
  CallResult (*graph_destroy)(Graph graph) = nullptr;
  CallResult (*graph_launch)(GraphExec executable, StreamPointer stream) = nullptr;
  CallResult (*exec_destroy)(GraphExec executable) = nullptr;
  cuda_backend::WorkFunctions work;

  /// Fills the table from that library (null: the program itself). Errors as cuda::load_driver().
  Status load(const char* library) noexcept;
  /// Makes a captured graph one that can be launched, and destroys it: the other has all of it.
  CallResult make_executable(Graph graph, GraphExec* executable) const noexcept {
    const CallResult made = instantiate(executable, graph, 0);
    const CallResult destroyed = graph_destroy(graph);
    return made == cuda::kSuccess ? destroyed : made;
  }
};

}  // namespace ashlar::props
