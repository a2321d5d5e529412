#include <string>
#include <thread>

#include "bench/driver/capture_session.h"
#include "bench/driver/driver_facts.h"

namespace ashlar::bench {
namespace {

const char* const kTopic = "Captures";
constexpr CUstreamCaptureMode kGlobal = CU_STREAM_CAPTURE_MODE_GLOBAL;
constexpr CUstreamCaptureMode kRelaxed = CU_STREAM_CAPTURE_MODE_RELAXED;

/// What each fact starts from: an event, a word of memory, and nothing capturing.
struct CaptureWorld {
  explicit CaptureWorld(const DriverSession& on) : session(on) {
    session.cu.event_create(&event, CU_EVENT_DISABLE_TIMING);
    session.cu.event_create(&second, CU_EVENT_DISABLE_TIMING);
    session.cu.mem_alloc(&word, kPageSize);
  }
  ~CaptureWorld() {
    session.cu.ctx_synchronize();
    session.cu.event_destroy(event);
    session.cu.event_destroy(second);
    session.cu.mem_free(word);
  }
  CaptureWorld(const CaptureWorld&) = delete;
  CaptureWorld& operator=(const CaptureWorld&) = delete;

  const DriverSession& session;
  CUevent event = nullptr;
  CUevent second = nullptr;
  CUdeviceptr word = 0;
};

bool is_capturing(const DriverSession& session, CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  session.cu.stream_is_capturing(stream, &status);
  return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void find_beginnings(const DriverSession& session, DriverReport* report) {
  const CudaDriver& cu = session.cu;
  {
    CaptureSession capture(session, session.work, kGlobal);
    const CUresult again = cu.stream_begin_capture(session.work, kGlobal);
    const CUresult ended = capture.end();
    report->fact(kTopic, "57", "a second begin on the stream is refused, and the capture goes on",
                 again != CUDA_SUCCESS && ended == CUDA_SUCCESS, names_of(session, {again, ended}));
  }
  const CUresult legacy = cu.stream_begin_capture(CU_STREAM_LEGACY, kRelaxed);
  report->fact(kTopic, "58", "the legacy stream cannot capture", legacy != CUDA_SUCCESS,
               names_of(session, {legacy}));
  CaptureSession capture(session, CU_STREAM_PER_THREAD, kGlobal);
  report->fact(kTopic, "", "the per-thread stream can", capture.begun() == CUDA_SUCCESS,
               names_of(session, {capture.begun()}));
}

void find_captured_events(const DriverSession& session, DriverReport* report) {
  const CudaDriver& cu = session.cu;
  CaptureWorld world(session);
  {
    CaptureSession capture(session, session.work, kRelaxed);
    cu.event_record(world.event, session.work);
    const CUresult asked = cu.event_query(world.event);
    const bool broken = capture.is_invalidated();
    const CUresult ended = capture.end();
    report->fact(kTopic, "66",
                 "a query of an event that the capture recorded is refused as a captured event",
                 asked == CUDA_ERROR_CAPTURED_EVENT, names_of(session, {asked}));
    report->fact(kTopic, "66", "that query invalidates the capture",
                 broken && ended != CUDA_SUCCESS, "end: " + names_of(session, {ended}));
  }
  {
    CaptureSession capture(session, session.work, kRelaxed);
    cu.event_record(world.second, session.work);
    const CUresult asked = cu.event_synchronize(world.second);
    const bool broken = capture.is_invalidated();
    report->fact(kTopic, "67", "to synchronize with it is refused and invalidates the capture",
                 asked != CUDA_SUCCESS && broken, names_of(session, {asked, capture.end()}));
  }
  {
    CaptureSession capture(session, session.work, kRelaxed);
    store(session, session.work, world.word, 1);
    cu.event_record(world.event, session.work);
    const CUresult ended = capture.end();
    const CUresult asked = cu.event_query(world.event), waited = cu.event_synchronize(world.event);
    const CUresult joined = cu.stream_wait_event(session.side, world.event, 0);
    report->fact(kTopic, "68", "it stays refused when the capture has ended",
                 asked != CUDA_SUCCESS && waited != CUDA_SUCCESS,
                 names_of(session, {ended, asked, waited}));
    report->fact(kTopic, "68", "by the error for a captured event",
                 asked == CUDA_ERROR_CAPTURED_EVENT, names_of(session, {asked}));
    report->fact(kTopic, "", "a stream's wait for it then is refused", joined != CUDA_SUCCESS,
                 names_of(session, {joined}));
    cu.event_record(world.event, session.side);
    cu.stream_synchronize(session.side);
    const CUresult recorded = cu.event_query(world.event);
    report->fact(kTopic, "68", "until it is recorded again", recorded == CUDA_SUCCESS,
                 names_of(session, {recorded}));
  }
  {
    CaptureSession capture(session, session.work, kGlobal);
    cu.event_record(world.event, session.work);
    const CUresult destroyed = cu.event_destroy(world.event);
    cu.event_create(&world.event, CU_EVENT_DISABLE_TIMING);
    report->fact(kTopic, "", "a captured event can be destroyed during the capture",
                 destroyed == CUDA_SUCCESS && !capture.is_invalidated(),
                 names_of(session, {destroyed, capture.end()}));
  }
}

void find_forks(const DriverSession& session, DriverReport* report) {
  const CudaDriver& cu = session.cu;
  CaptureWorld world(session);
  const auto fork = [&] {
    cu.event_record(world.event, session.work);
    cu.stream_wait_event(session.side, world.event, 0);
    store(session, session.side, world.word, 1);
  };
  {
    CaptureSession capture(session, session.work, kGlobal);
    fork();
    const bool joined = is_capturing(session, session.side);
    cu.event_record(world.second, session.side);
    cu.stream_wait_event(session.work, world.second, 0);
    const CUresult ended = capture.end();
    report->fact(kTopic, "69", "a stream joins by a captured event, and ends with the capture",
                 joined && ended == CUDA_SUCCESS && !is_capturing(session, session.side),
                 names_of(session, {ended}));
  }
  {
    CaptureSession capture(session, session.work, kGlobal);
    fork();
    const CUresult ended = capture.end();
    report->fact(kTopic, "70",
                 "an end while a forked stream is not joined is refused and ends all the same",
                 ended != CUDA_SUCCESS && !is_capturing(session, session.work) &&
                     !is_capturing(session, session.side),
                 names_of(session, {ended}));
  }
  {
    CaptureSession capture(session, session.work, kGlobal);
    fork();
    CUgraph graph = nullptr;
    const CUresult wrong = cu.stream_end_capture(session.side, &graph);
    const bool broken = capture.is_invalidated();
    const CUresult ended = capture.end();
    report->fact(kTopic, "71", "an end on the forked stream is refused and invalidates the capture",
                 wrong != CUDA_SUCCESS && broken && ended == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
                 names_of(session, {wrong, ended}));
  }
  CaptureSession capture(session, session.work, kGlobal);
  CUgraph graph = nullptr;
  CUresult wrong = CUDA_SUCCESS;
  std::thread([&] {
    cu.ctx_set_current(session.context);
    wrong = cu.stream_end_capture(session.work, &graph);
  }).join();
  const bool is_open = is_capturing(session, session.work);
  const bool is_broken = capture.is_invalidated();
  const CUresult ended = capture.end();
  report->fact(kTopic, "72", "an end on another thread is refused", wrong != CUDA_SUCCESS,
               names_of(session, {wrong}));
  report->fact(kTopic, "72",
               "the capture is invalidated then, stays open, and its own thread ends it",
               is_open && is_broken && ended == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
               std::string(is_open ? "open" : "not open") + (is_broken ? ", invalidated" : "") +
                   "; end: " + names_of(session, {ended}));
}

void find_isolation(const DriverSession& session, DriverReport* report) {
  const CudaDriver& cu = session.cu;
  CaptureWorld world(session);
  {
    cu.event_record(world.event, session.side);
    CaptureSession capture(session, session.work, kRelaxed);
    const CUresult waited = cu.stream_wait_event(session.work, world.event, 0);
    const bool broken = capture.is_invalidated();
    report->fact(kTopic, "73",
                 "a wait for an event of outside is refused and invalidates the capture",
                 waited != CUDA_SUCCESS && broken, names_of(session, {waited, capture.end()}));
  }
  {
    CaptureSession first(session, session.work, kRelaxed);
    CaptureSession second(session, session.side, kRelaxed);
    cu.event_record(world.event, session.work);
    const CUresult waited = cu.stream_wait_event(session.side, world.event, 0);
    const bool broken_first = first.is_invalidated(), broken_second = second.is_invalidated();
    report->fact(kTopic, "74", "joining two captures is refused and invalidates both",
                 waited != CUDA_SUCCESS && broken_first && broken_second,
                 names_of(session, {waited, first.end(), second.end()}));
  }
  CUstream blocking = nullptr;
  cu.stream_create(&blocking, CU_STREAM_DEFAULT);
  {
    CaptureSession capture(session, blocking, kRelaxed);
    const CUresult launched = store(session, CU_STREAM_LEGACY, world.word, 1);
    const bool broken = capture.is_invalidated();
    report->fact(kTopic, "75",
                 "work on the legacy stream is refused while a blocking stream captures, and "
                 "invalidates the capture",
                 launched != CUDA_SUCCESS && broken, names_of(session, {launched, capture.end()}));
  }
  cu.stream_destroy(blocking);
  {
    CaptureSession capture(session, session.work, kGlobal);
    const CUresult launched = store(session, CU_STREAM_LEGACY, world.word, 1);
    report->fact(kTopic, "76", "it is permitted while a non-blocking stream captures",
                 launched == CUDA_SUCCESS && !capture.is_invalidated(),
                 names_of(session, {launched, capture.end()}));
  }
  CaptureSession capture(session, session.work, kGlobal);
  CUdeviceptr at = 0;
  const CUresult unsafe = cu.mem_alloc(&at, kPageSize);
  const CUresult launched = store(session, session.work, world.word, 1);
  report->fact(kTopic, "59", "a launch in an invalidated capture is refused, and so is its end",
               unsafe != CUDA_SUCCESS && launched != CUDA_SUCCESS && capture.end() != CUDA_SUCCESS,
               names_of(session, {unsafe, launched, capture.end()}));
  if (unsafe == CUDA_SUCCESS) cu.mem_free(at);
}

/// Questions about a stream's identity and state, which the allocator asks of streams that may capture.
void find_questions(const DriverSession& session, DriverReport* report) {
  const CudaDriver& cu = session.cu;
  CaptureWorld world(session);
  unsigned long long id = 0;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  {
    CaptureSession capture(session, session.work, kRelaxed);
    cu.event_record(world.event, session.work);
    cu.stream_wait_event(session.side, world.event, 0);
    const CUresult forked = cu.stream_get_id(session.side, &id);
    report->fact(kTopic, "", "a stream that joined a capture can be asked for its id",
                 forked == CUDA_SUCCESS && !capture.is_invalidated(), names_of(session, {forked}));
  }
  {
    CaptureSession capture(session, CU_STREAM_PER_THREAD, kRelaxed);
    const CUresult own = cu.stream_get_id(CU_STREAM_PER_THREAD, &id);
    report->fact(kTopic, "", "so can the per-thread stream while it captures",
                 own == CUDA_SUCCESS && !capture.is_invalidated(), names_of(session, {own}));
  }
  CUstream blocking = nullptr;
  cu.stream_create(&blocking, CU_STREAM_DEFAULT);
  {
    CaptureSession capture(session, blocking, kRelaxed);
    const CUresult asked = cu.stream_is_capturing(CU_STREAM_LEGACY, &status);
    report->fact(kTopic, "",
                 "the legacy stream's state can be asked for while a blocking stream captures",
                 asked == CUDA_SUCCESS && !capture.is_invalidated(),
                 names_of(session, {asked}) + (capture.is_invalidated() ? ", invalidated" : ""));
  }
  {
    CaptureSession capture(session, blocking, kRelaxed);
    const CUresult legacy = cu.stream_get_id(CU_STREAM_LEGACY, &id);
    report->fact(kTopic, "",
                 "the legacy stream's id can be asked for while a blocking stream captures",
                 legacy == CUDA_SUCCESS && !capture.is_invalidated(),
                 names_of(session, {legacy}) + (capture.is_invalidated() ? ", invalidated" : ""));
  }
  cu.stream_destroy(blocking);
}

std::size_t dependencies(const DriverSession& session, CUgraph* graph, const CUgraphNode** nodes) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  std::size_t count = 0;
  session.cu.stream_get_capture_info(session.work, &status, &id, graph, nodes, nullptr, &count);
  return count;
}

void find_dependencies(const DriverSession& session, DriverReport* report) {
  const CudaDriver& cu = session.cu;
  CaptureWorld world(session);
  CaptureSession capture(session, session.work, kGlobal);
  CUgraph graph = nullptr;
  const CUgraphNode* nodes = nullptr;
  const std::size_t none = dependencies(session, &graph, &nodes);
  store(session, session.work, world.word, 1);
  const std::size_t one = dependencies(session, &graph, &nodes);
  const CUgraphNode before = one == 1 ? nodes[0] : nullptr;
  CUgraphNode mark = nullptr;
  const CUresult marked = cu.graph_add_empty_node(&mark, graph, nodes, one);
  const std::size_t still = dependencies(session, &graph, &nodes);
  const bool unmoved = still == 1 && nodes[0] == before;
  cu.event_record(world.event, session.work);
  cu.stream_wait_event(session.side, world.event, 0);
  store(session, session.side, world.word + 4, 1);
  store(session, session.work, world.word, 2);
  cu.event_record(world.second, session.side);
  cu.stream_wait_event(session.work, world.second, 0);
  const std::size_t two = dependencies(session, &graph, &nodes);
  const CUresult ended = capture.end();
  CUgraphExec exec = nullptr;
  const CUresult made =
      ended == CUDA_SUCCESS ? cu.graph_instantiate(&exec, capture.graph(), 0) : ended;
  report->fact(kTopic, "",
               "capture info names the nodes that the next one depends on: none, one, two "
               "after a join",
               none == 0 && one == 1 && two == 2,
               std::to_string(none) + ", " + std::to_string(one) + ", " + std::to_string(two));
  report->fact(kTopic, "",
               "an empty node behind them marks a place: it changes no dependency, and the graph "
               "can be made",
               marked == CUDA_SUCCESS && unmoved && made == CUDA_SUCCESS,
               names_of(session, {marked, ended, made}));
  if (exec != nullptr) cu.graph_exec_destroy(exec);
}

}  // namespace

void find_capture_facts(const DriverSession& session, DriverReport* report) {
  find_beginnings(session, report);
  find_captured_events(session, report);
  find_forks(session, report);
  find_isolation(session, report);
  find_questions(session, report);
  find_dependencies(session, report);
}

}  // namespace ashlar::bench
