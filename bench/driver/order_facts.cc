#include <chrono>
#include <string>
#include <thread>

#include "bench/driver/driver_facts.h"
#include "bench/driver/page_batch.h"

namespace ashlar::bench {
namespace {

using std::chrono::milliseconds;

const char* const kTopic = "Events, streams and order";

CUevent make_event(const DriverSession& session) {
  CUevent event = nullptr;
  session.cu.event_create(&event, CU_EVENT_DISABLE_TIMING);
  return event;
}

/// Work on `stream`, then a little time for it to run if nothing holds it. Says whether it has run.
bool runs_now(const DriverSession& session, CUstream stream, CUdeviceptr word) {
  CUevent event = make_event(session);
  store(session, stream, word, 1);
  session.cu.event_record(event, stream);
  std::this_thread::sleep_for(milliseconds(5));
  const bool has_run = session.cu.event_query(event) == CUDA_SUCCESS;
  session.cu.event_destroy(event);
  return has_run;
}

void find_event_facts(const DriverSession& session, DriverReport* report, CUdeviceptr word) {
  const CudaDriver& cu = session.cu;
  CUevent event = make_event(session), spare = make_event(session);
  const CUresult fresh = cu.event_query(event), fresh_wait = cu.event_synchronize(event);
  const CUresult unrecorded = cu.stream_wait_event(session.side, event, 0);
  report->fact(kTopic, "01", "an event never recorded is complete, and a wait for it does nothing",
               fresh == CUDA_SUCCESS && fresh_wait == CUDA_SUCCESS && unrecorded == CUDA_SUCCESS &&
                   runs_now(session, session.side, word),
               names_of(session, {fresh, fresh_wait, unrecorded}));
  cu.event_record(event, session.side);
  cu.stream_synchronize(session.side);
  const CUresult done = cu.event_query(event);
  RunningKernel kernel(session, milliseconds(1000));
  cu.stream_wait_event(session.side, event, 0);
  cu.event_record(event, session.work);
  const bool older = runs_now(session, session.side, word);
  const CUresult again = cu.event_query(event);
  report->fact(kTopic, "04", "a second record replaces the first: complete, then not ready",
               done == CUDA_SUCCESS && again == CUDA_ERROR_NOT_READY,
               names_of(session, {done, again}));
  report->fact(kTopic, "11", "a wait is for the record before it, not for a later one", older, "");
  cu.event_record(spare, session.work);
  cu.stream_wait_event(session.side, spare, 0);
  const CUresult destroyed = cu.event_destroy(spare);
  report->fact(
      kTopic, "05", "an event can be destroyed while its work runs; a wait for it holds still",
      destroyed == CUDA_SUCCESS && kernel.is_running() && !runs_now(session, session.side, word),
      names_of(session, {destroyed}));
  kernel.stop();
  cu.ctx_synchronize();
  cu.event_destroy(event);
}

void find_stream_facts(const DriverSession& session, DriverReport* report, CUdeviceptr word) {
  const CudaDriver& cu = session.cu;
  CUstream blocking = nullptr, gone = nullptr;
  cu.stream_create(&blocking, CU_STREAM_DEFAULT);
  {
    RunningKernel kernel(session, milliseconds(1000), blocking);
    const bool independent = runs_now(session, session.side, word);
    const bool legacy = runs_now(session, CU_STREAM_LEGACY, word);
    report->fact(kTopic, "16", "streams run independently", independent, "");
    report->fact(kTopic, "22", "the legacy stream waits for blocking streams", !legacy, "");
  }
  cu.ctx_synchronize();
  {
    RunningKernel kernel(session, milliseconds(1000), CU_STREAM_LEGACY);
    const bool side = runs_now(session, session.side, word);
    const bool waits = !runs_now(session, blocking, word);
    report->fact(kTopic, "23", "blocking streams wait for the legacy stream", waits, "");
    report->fact(kTopic, "24", "non-blocking streams do not", side, "");
  }
  cu.ctx_synchronize();
  cu.stream_destroy(blocking);
  cu.stream_create(&gone, CU_STREAM_NON_BLOCKING);
  RunningKernel kernel(session, milliseconds(1000), gone);
  const CUresult destroyed = cu.stream_destroy(gone);
  report->fact(kTopic, "17", "a stream can be destroyed under its work, which runs on",
               destroyed == CUDA_SUCCESS && kernel.is_running(), names_of(session, {destroyed}));
}

void find_identities(const DriverSession& session, DriverReport* report) {
  const CudaDriver& cu = session.cu;
  constexpr unsigned kTries = 20;
  unsigned same_handle = 0, same_id = 0;
  CUstream last = nullptr;
  unsigned long long last_id = 0;
  for (unsigned i = 0; i < kTries; ++i) {
    CUstream stream = nullptr;
    unsigned long long id = 0;
    cu.stream_create(&stream, CU_STREAM_NON_BLOCKING);
    cu.stream_get_id(stream, &id);
    if (i > 0 && stream == last) ++same_handle;
    if (i > 0 && id == last_id) ++same_id;
    last = stream;
    last_id = id;
    cu.stream_destroy(stream);
  }
  report->fact(kTopic, "19", "a stream's handle may come back, its id never", same_id == 0,
               "of " + std::to_string(kTries - 1) + " streams " + std::to_string(same_handle) +
                   " had the last one's handle, " + std::to_string(same_id) + " its id");
  unsigned long long mine = 0, other = 0, null = 0, legacy = 0;
  cu.stream_get_id(CU_STREAM_PER_THREAD, &mine);
  cu.stream_get_id(nullptr, &null);
  cu.stream_get_id(CU_STREAM_LEGACY, &legacy);
  std::thread([&] {
    cu.ctx_set_current(session.context);
    cu.stream_get_id(CU_STREAM_PER_THREAD, &other);
  }).join();
  report->fact(kTopic, "20", "the per-thread handle names another stream on every thread",
               mine != other, std::to_string(mine) + ", " + std::to_string(other));
  report->fact(kTopic, "21", "the null handle and the legacy handle name one stream",
               null == legacy, std::to_string(null) + ", " + std::to_string(legacy));
}

struct HostCalls {
  const DriverSession* session;
  CUevent event;
  CUresult query, info, alloc;
};

void make_host_calls(void* data) {
  auto* calls = static_cast<HostCalls*>(data);
  const CudaDriver& cu = calls->session->cu;
  std::size_t free = 0, total = 0;
  CUdeviceptr at = 0;
  calls->query = cu.event_query(calls->event);
  calls->info = cu.mem_get_info(&free, &total);
  calls->alloc = cu.mem_alloc(&at, kPageSize);
  if (calls->alloc == CUDA_SUCCESS) cu.mem_free(at);
}

void find_host_function_facts(const DriverSession& session, DriverReport* report) {
  HostCalls calls{&session, make_event(session), CUDA_SUCCESS, CUDA_SUCCESS, CUDA_SUCCESS};
  session.cu.launch_host_func(session.side, make_host_calls, &calls);
  session.cu.stream_synchronize(session.side);
  report->fact(
      kTopic, "26", "a host function may make no call: event query, memory info, segment alloc",
      calls.query != CUDA_SUCCESS && calls.info != CUDA_SUCCESS && calls.alloc != CUDA_SUCCESS,
      names_of(session, {calls.query, calls.info, calls.alloc}));
  session.cu.event_destroy(calls.event);
}

void find_queue_depth(const DriverSession& session, DriverReport* report, CUdeviceptr word) {
  constexpr unsigned kLaunchesMax = 20'000;
  RunningKernel kernel(session, milliseconds(300));
  unsigned launched = 0;
  bool has_blocked = false;
  for (; launched < kLaunchesMax && !has_blocked; ++launched) {
    store(session, session.work, word, launched);
    if (launched % 64 == 63) has_blocked = !kernel.is_running();
  }
  report->fact(kTopic, "34", "launches behind a running kernel until one blocked, to the next 64",
               FactVerdict::kMeasured,
               std::to_string(launched) + (has_blocked ? "" : ", none did"));
  kernel.stop();
  session.cu.ctx_synchronize();
}

/// Are these calls ordered with work that uses their own memory? Asked only of what is safe: memory that
/// the pending work does not use by these addresses.
void find_pending_facts(const DriverSession& session, DriverReport* report) {
  const CudaDriver& cu = session.cu;
  PageBatch home(session, 1, kPageSize);
  home.map_all();
  CUdeviceptr other = 0, segment = 0;
  cu.mem_address_reserve(&other, kPageSize, 0, 0, 0);
  cu.mem_map(other, kPageSize, 0, home.handle(0), 0);
  give_access(session, other, kPageSize);
  cu.mem_alloc(&segment, kPageSize);
  {
    RunningKernel kernel(session, milliseconds(200));
    store(session, session.work, home.at(0), 77);
    const CUresult unmapped = cu.mem_unmap(other, kPageSize);
    report->fact(kTopic, "55",
                 "unmapping one address of a page returns while work on its other address is "
                 "pending",
                 unmapped == CUDA_SUCCESS && kernel.is_running(), names_of(session, {unmapped}));
    const CUresult released = home.release(0);
    report->fact(kTopic, "52", "so does releasing its handle",
                 released == CUDA_SUCCESS && kernel.is_running(), names_of(session, {released}));
  }
  const bool arrived = read_word(session, home.at(0)) == 77;
  report->fact(kTopic, "", "the pending work arrives through the other address", arrived, "");
  {
    RunningKernel kernel(session, milliseconds(100));
    const CUresult freed = cu.mem_free(segment);
    report->fact(kTopic, "41", "a free of a segment returns while other work is pending",
                 freed == CUDA_SUCCESS && kernel.is_running(), names_of(session, {freed}));
  }
  cu.mem_address_free(other, kPageSize);
}

}  // namespace

void find_order_facts(const DriverSession& session, DriverReport* report) {
  CUdeviceptr word = 0;
  session.cu.mem_alloc(&word, kPageSize);
  find_event_facts(session, report, word);
  find_stream_facts(session, report, word);
  find_identities(session, report);
  find_pending_facts(session, report);
  find_host_function_facts(session, report);
  find_queue_depth(session, report, word);
  session.cu.ctx_synchronize();
  session.cu.mem_free(word);
}

}  // namespace ashlar::bench
