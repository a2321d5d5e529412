// What an application does with a GPU: streams, copies between addresses that the CPU can reach, host functions, captures, graphs.
//
// Copies and kernels do their work when their stream gets there. A host function runs on a thread of its own, at once, and its
// stream waits for the end of it.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include <ashlar/base/mutex.h>

#include "spec/cuda_face/face_calls.h"

namespace ashlar::spec::cuda_face {
namespace {

using Works = std::vector<std::function<void()>>;
/// A graph, and whatever was made of it to be launched.
struct CapturedWork {
  GraphId graph;
  Works works;
  int holders = 1;  ///< the graph, and its executables; the machine's graph goes with the last
};

/// A capture, whose streams are told by the machine's number of it.
struct Capturing {
  std::uint64_t number = 0;
  StreamPointer origin = nullptr;
  Works works;
};

/// What the face knows of face_work. Graphs are never taken out, so that their addresses are handles.
struct Work {
  Mutex lock;
  std::vector<Capturing> capturing ASHLAR_GUARDED_BY(lock);
  std::deque<CapturedWork> graphs ASHLAR_GUARDED_BY(lock);
  std::vector<std::thread> functions ASHLAR_GUARDED_BY(lock);
};
Work face_work;

/// The machine's number of what the stream captures; 0: nothing.
std::uint64_t capture_of(StreamPointer stream) {
  const Result<device::CaptureMark> mark =
      machine()->device(current_device()).capture_mark(handle_of(stream));
  return mark.is_ok() ? mark.value().capture : 0;
}

Stream stream_of(StreamPointer stream) {
  return {handle_of(stream), StreamId{}, DeviceId{current_device()}};
}

CallResult stream_create(StreamPointer* stream, unsigned flags) {
  if (flags > 1) return kErrorInvalidValue;
  return on_current([&](device::Device&) {
    const Result<Stream> made = machine()->create_stream(
        DeviceId{current_device()}, flags == 1 ? StreamKind::kNonBlocking : StreamKind::kBlocking);
    if (made.is_ok()) *stream = reinterpret_cast<StreamPointer>(made.value().handle.value());
    return result_of(made.status());
  });
}

CallResult stream_destroy(StreamPointer stream) {
  return on_current(
      [&](device::Device&) { return result_of(machine()->destroy_stream(stream_of(stream))); });
}

CallResult stream_synchronize(StreamPointer stream) {
  return on_current([&](device::Device& on) {
    const Result<EventHandle> behind = on.event_create();
    if (!behind.is_ok()) return result_of(behind.status());
    Status done = on.event_record(behind.value(), handle_of(stream));
    if (done.is_ok()) {
      done = until_possible(
          [&] { return on.event_synchronize(behind.value(), device::kWaitForever); });
    }
    static_cast<void>(on.event_destroy(behind.value()));
    if (done.is_ok()) trim_at_synchronization();
    return result_of(done);
  });
}

CallResult memcpy_async(DevicePointer to, DevicePointer from, std::size_t bytes,
                        StreamPointer stream) {
  std::vector<Touch> touches;
  if (is_of_machine(from)) touches.push_back({Address{from}, Bytes{bytes}, Access::kRead});
  if (is_of_machine(to)) touches.push_back({Address{to}, Bytes{bytes}, Access::kWrite});
  return enqueue_work(stream, touches, [to, from, bytes] {
    if (has_bytes()) std::memmove(Address{to}.pointer(), Address{from}.pointer(), bytes);
  });
}

CallResult launch_host_func(StreamPointer stream, void (*function)(void*), void* data) {
  return on_current([&](device::Device&) {
    SimGpu* const gpu = machine();
    const HostFlag is_over = gpu->new_flag();
    const Status enqueued = gpu->host_function(stream_of(stream), is_over);
    if (!enqueued.is_ok()) return result_of(enqueued);
    const MutexGuard guard(face_work.lock);
    face_work.functions.emplace_back([gpu, is_over, function, data] {
      function(data);
      gpu->raise(is_over);
    });
    return CallResult{kSuccess};
  });
}

}  // namespace

CallResult stream_begin_capture(StreamPointer stream, int mode) {
  return on_current([&](device::Device&) {
    const Status begun =
        machine()->begin_capture(stream_of(stream), static_cast<device::CaptureMode>(mode));
    if (!begun.is_ok()) return result_of(begun);
    const std::uint64_t number = capture_of(stream);
    const MutexGuard guard(face_work.lock);
    face_work.capturing.push_back({number, stream, {}});
    return CallResult{kSuccess};
  });
}

CallResult stream_end_capture(StreamPointer stream, Graph* graph) {
  return on_current([&](device::Device&) {
    const Result<GraphId> ended = machine()->end_capture(stream_of(stream));
    const MutexGuard guard(face_work.lock);
    Works works;
    const auto is_of_stream = [&](Capturing& each) {
      if (each.origin != stream) return false;
      works = std::move(each.works);
      return true;
    };
    // An end on a wrong thread or stream leaves the capture open, but lost.
    std::erase_if(face_work.capturing, is_of_stream);
    *graph = nullptr;
    if (!ended.is_ok()) return result_of(ended.status());
    face_work.graphs.push_back({ended.value(), std::move(works)});
    *graph = reinterpret_cast<Graph>(&face_work.graphs.back());
    return CallResult{kSuccess};
  });
}

namespace {

CallResult drop_graph(CapturedWork& captured) {
  {
    const MutexGuard guard(face_work.lock);
    if (--captured.holders > 0) return kSuccess;
  }
  return result_of(machine()->destroy_graph(captured.graph));
}

}  // namespace

CallResult graph_destroy(Graph graph) {
  return on_current(
      [&](device::Device&) { return drop_graph(*reinterpret_cast<CapturedWork*>(graph)); });
}

namespace {

CallResult graph_instantiate(GraphExec* executable, Graph graph, unsigned long long flags) {
  if (flags != 0) return kErrorInvalidValue;
  const MutexGuard guard(face_work.lock);
  ++reinterpret_cast<CapturedWork*>(graph)->holders;
  *executable = reinterpret_cast<GraphExec>(graph);
  return kSuccess;
}

CallResult graph_launch(GraphExec executable, StreamPointer stream) {
  return on_current([&](device::Device&) {
    const auto* const captured = reinterpret_cast<const CapturedWork*>(executable);
    const Status launched = machine()->launch_graph(stream_of(stream), captured->graph);
    if (!launched.is_ok()) return result_of(launched);
    return result_of(machine()->host_function(stream_of(stream), 0, [works = captured->works] {
      for (const auto& work : works) work();
    }));
  });
}

CallResult graph_exec_destroy(GraphExec executable) {
  return on_current(
      [&](device::Device&) { return drop_graph(*reinterpret_cast<CapturedWork*>(executable)); });
}

CallResult stream_write_value(StreamPointer stream, DevicePointer word, std::uint64_t value,
                              unsigned flags) {
  if (flags != 0) return kErrorInvalidValue;
  return on_current([&](device::Device&) {
    return result_of(machine()->write_value(stream_of(stream), Address{word}, value));
  });
}

/// Of the four conditions the first: at least the value.
CallResult stream_wait_value(StreamPointer stream, DevicePointer word, std::uint64_t value,
                             unsigned flags) {
  if (flags != 0) return kErrorInvalidValue;
  return on_current([&](device::Device&) {
    return result_of(machine()->wait_value(stream_of(stream), Address{word}, value));
  });
}

CallResult device_get_name(char* name, int size, DeviceNumber) {
  constexpr char kName[] = "a simulated GPU";
  if (size < static_cast<int>(sizeof kName)) return kErrorInvalidValue;
  std::memcpy(name, kName, sizeof kName);
  return kSuccess;
}

}  // namespace

CallResult enqueue_fault(StreamPointer stream) {
  return on_current(
      [&](device::Device&) { return result_of(machine()->launch_faulty(stream_of(stream))); });
}

CallResult enqueue_work(StreamPointer stream, std::span<const Touch> touches,
                        std::function<void()> work, HostFlag held_by) {
  return on_current([&](device::Device&) {
    const Status launched = machine()->launch(stream_of(stream), touches);
    if (!launched.is_ok()) return result_of(launched);
    {
      const MutexGuard guard(face_work.lock);
      const std::uint64_t number = face_work.capturing.empty() ? 0 : capture_of(stream);
      for (Capturing& each : face_work.capturing) {
        if (number == 0 || each.number != number) continue;
        each.works.push_back(std::move(work));
        return CallResult{kSuccess};
      }
    }
    return result_of(machine()->host_function(stream_of(stream), held_by, std::move(work)));
  });
}

void end_host_functions() {
  std::vector<std::thread> running;
  {
    const MutexGuard guard(face_work.lock);
    running.swap(face_work.functions);
    face_work.capturing.clear();
  }
  for (std::thread& each : running) each.join();
}

std::span<const FaceFunction> work_functions() {
  static const FaceFunction kFunctions[] = {
      {"cuDeviceGetName", 2000, pointer_of(device_get_name)},
      {"cuStreamCreate", 2000, pointer_of(stream_create)},
      {"cuStreamDestroy", 4000, pointer_of(stream_destroy)},
      {"cuStreamSynchronize", 2000, pointer_of(stream_synchronize)},
      {"cuMemcpyAsync", 4000, pointer_of(memcpy_async)},
      {"cuLaunchHostFunc", 10000, pointer_of(launch_host_func)},
      {"cuStreamWriteValue64", 11070, pointer_of(stream_write_value)},
      {"cuStreamWaitValue64", 11070, pointer_of(stream_wait_value)},
      {"cuStreamBeginCapture", 10010, pointer_of(stream_begin_capture)},
      {"cuStreamEndCapture", 10000, pointer_of(stream_end_capture)},
      {"cuGraphInstantiateWithFlags", 11040, pointer_of(graph_instantiate)},
      {"cuGraphLaunch", 10000, pointer_of(graph_launch)},
      {"cuGraphExecDestroy", 10000, pointer_of(graph_exec_destroy)},
      {"cuGraphDestroy", 10000, pointer_of(graph_destroy)}};
  return kFunctions;
}

}  // namespace ashlar::spec::cuda_face
