#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "bench/driver/capture_session.h"
#include "bench/driver/driver_facts.h"

namespace ashlar::bench {
namespace {

constexpr CUstreamCaptureMode kModes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL,
                                          CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                          CU_STREAM_CAPTURE_MODE_RELAXED};

/// What the calls work on. `is_...` follows what the driver permitted.
struct PermitWorld {
  explicit PermitWorld(const DriverSession& on) : session(on) {
    const CudaDriver& cu = session.cu;
    cu.event_create(&event, CU_EVENT_DISABLE_TIMING);
    cu.event_create(&spare, CU_EVENT_DISABLE_TIMING);
    cu.event_record(event, session.side);
    cu.mem_alloc(&segment, kPageSize);
    cu.mem_host_alloc(&pinned, 4096, 0);
    cu.mem_address_reserve(&range, 2 * kPageSize, 0, 0, 0);
    cu.mem_address_reserve(&second_range, kPageSize, 0, 0, 0);
    create_page(session, kPageSize, &page);
    create_page(session, kPageSize, &second_page);
    is_mapped = cu.mem_map(range, kPageSize, 0, page, 0) == CUDA_SUCCESS;
    cu.stream_synchronize(session.side);
  }
  ~PermitWorld() {
    const CudaDriver& cu = session.cu;
    if (is_mapped) cu.mem_unmap(range, kPageSize);
    if (is_second_mapped) cu.mem_unmap(range + kPageSize, kPageSize);
    cu.mem_release(page);
    if (second_page != 0) cu.mem_release(second_page);
    if (made.page != 0) cu.mem_release(made.page);
    cu.mem_address_free(range, 2 * kPageSize);
    if (second_range != 0) cu.mem_address_free(second_range, kPageSize);
    if (made.range != 0) cu.mem_address_free(made.range, kPageSize);
    for (const CUdeviceptr at : {segment, made.segment}) {
      if (at != 0) cu.mem_free(at);
    }
    for (void* at : {pinned, made.pinned}) {
      if (at != nullptr) cu.mem_free_host(at);
    }
    for (const CUevent each : {event, spare, made.event}) {
      if (each != nullptr) cu.event_destroy(each);
    }
    if (made.stream != nullptr) cu.stream_destroy(made.stream);
    cu.ctx_synchronize();
  }
  PermitWorld(const PermitWorld&) = delete;
  PermitWorld& operator=(const PermitWorld&) = delete;

  /// What the calls made.
  struct Made {
    CUevent event = nullptr;
    CUdeviceptr segment = 0, range = 0;
    void* pinned = nullptr;
    CUmemGenericAllocationHandle page = 0;
    CUstream stream = nullptr;
  };

  const DriverSession& session;
  CUevent event = nullptr, spare = nullptr;
  CUdeviceptr segment = 0, range = 0, second_range = 0;
  void* pinned = nullptr;
  CUmemGenericAllocationHandle page = 0, second_page = 0;
  Made made;
  bool is_mapped = false, is_second_mapped = false;
};

/// What the simulated GPU says of a call.
enum class SimulatedPermit { kSafe, kUnsafe, kRefused };

struct PermitCase {
  const char* call;
  SimulatedPermit simulated;
  std::function<CUresult(PermitWorld&)> run;
};

/// Forgets a handle that the driver took back.
template <class Handle>
CUresult taken(CUresult result, Handle& handle) {
  if (result == CUDA_SUCCESS) handle = Handle{};
  return result;
}

void add_memory_cases(const CudaDriver& cu, std::vector<PermitCase>& all) {
  constexpr auto kUnsafe = SimulatedPermit::kUnsafe;
  all.push_back({"cuMemAlloc", kUnsafe,
                 [&cu](PermitWorld& w) { return cu.mem_alloc(&w.made.segment, kPageSize); }});
  all.push_back({"cuMemFree", kUnsafe,
                 [&cu](PermitWorld& w) { return taken(cu.mem_free(w.segment), w.segment); }});
  all.push_back({"cuMemHostAlloc", kUnsafe,
                 [&cu](PermitWorld& w) { return cu.mem_host_alloc(&w.made.pinned, 4096, 0); }});
  all.push_back({"cuMemFreeHost", kUnsafe,
                 [&cu](PermitWorld& w) { return taken(cu.mem_free_host(w.pinned), w.pinned); }});
  all.push_back({"cuMemAddressReserve", kUnsafe, [&cu](PermitWorld& w) {
                   return cu.mem_address_reserve(&w.made.range, kPageSize, 0, 0, 0);
                 }});
  all.push_back({"cuMemAddressFree", kUnsafe, [&cu](PermitWorld& w) {
                   return taken(cu.mem_address_free(w.second_range, kPageSize), w.second_range);
                 }});
  all.push_back({"cuMemCreate", kUnsafe,
                 [](PermitWorld& w) { return create_page(w.session, kPageSize, &w.made.page); }});
  all.push_back({"cuMemRelease", kUnsafe, [&cu](PermitWorld& w) {
                   return taken(cu.mem_release(w.second_page), w.second_page);
                 }});
  all.push_back({"cuMemMap", kUnsafe, [&cu](PermitWorld& w) {
                   const CUresult result =
                       cu.mem_map(w.range + kPageSize, kPageSize, 0, w.second_page, 0);
                   w.is_second_mapped = result == CUDA_SUCCESS;
                   return result;
                 }});
  all.push_back({"cuMemSetAccess", kUnsafe,
                 [](PermitWorld& w) { return give_access(w.session, w.range, kPageSize); }});
  all.push_back({"cuMemUnmap", kUnsafe, [&cu](PermitWorld& w) {
                   return taken(cu.mem_unmap(w.range, kPageSize), w.is_mapped);
                 }});
  all.push_back({"cuMemGetInfo", SimulatedPermit::kSafe, [&cu](PermitWorld&) {
                   std::size_t free = 0, total = 0;
                   return cu.mem_get_info(&free, &total);
                 }});
}

void add_stream_cases(const CudaDriver& cu, std::vector<PermitCase>& all) {
  constexpr auto kSafe = SimulatedPermit::kSafe;
  constexpr auto kUnsafe = SimulatedPermit::kUnsafe;
  all.push_back({"cuEventCreate", kSafe, [&cu](PermitWorld& w) {
                   return cu.event_create(&w.made.event, CU_EVENT_DISABLE_TIMING);
                 }});
  all.push_back({"cuEventDestroy", kSafe,
                 [&cu](PermitWorld& w) { return taken(cu.event_destroy(w.spare), w.spare); }});
  all.push_back({"cuEventRecord on a stream outside", kSafe,
                 [&cu](PermitWorld& w) { return cu.event_record(w.spare, w.session.side); }});
  all.push_back({"cuEventQuery of an event of outside", kUnsafe,
                 [&cu](PermitWorld& w) { return cu.event_query(w.event); }});
  all.push_back({"cuEventQuery of an event never recorded", kUnsafe,
                 [&cu](PermitWorld& w) { return cu.event_query(w.spare); }});
  all.push_back({"cuEventSynchronize, an event of outside", kUnsafe,
                 [&cu](PermitWorld& w) { return cu.event_synchronize(w.event); }});
  all.push_back({"cuStreamWaitEvent outside", kSafe, [&cu](PermitWorld& w) {
                   return cu.stream_wait_event(w.session.side, w.event, 0);
                 }});
  const auto identify = [&cu](CUstream stream) {
    unsigned long long id = 0;
    return cu.stream_get_id(stream, &id);
  };
  all.push_back({"cuStreamGetId of the capturing stream", kSafe,
                 [identify](PermitWorld& w) { return identify(w.session.work); }});
  all.push_back({"cuStreamGetId of a stream outside", kSafe,
                 [identify](PermitWorld& w) { return identify(w.session.side); }});
  all.push_back({"cuStreamGetId of the legacy stream", kSafe,
                 [identify](PermitWorld&) { return identify(CU_STREAM_LEGACY); }});
  all.push_back({"cuStreamGetId of the per-thread stream", kSafe,
                 [identify](PermitWorld&) { return identify(CU_STREAM_PER_THREAD); }});
  all.push_back({"cuStreamGetCaptureInfo", kSafe, [&cu](PermitWorld& w) {
                   CUstreamCaptureStatus status;
                   cuuint64_t id = 0;
                   return cu.stream_get_capture_info(w.session.work, &status, &id, nullptr, nullptr,
                                                     nullptr, nullptr);
                 }});
  all.push_back({"cuLaunchKernel outside", kSafe,
                 [](PermitWorld& w) { return store(w.session, w.session.side, w.segment, 1); }});
  all.push_back({"cuStreamIsCapturing", kSafe, [&cu](PermitWorld& w) {
                   CUstreamCaptureStatus status;
                   return cu.stream_is_capturing(w.session.work, &status);
                 }});
  all.push_back({"cuCtxSynchronize", SimulatedPermit::kRefused,
                 [&cu](PermitWorld&) { return cu.ctx_synchronize(); }});
  // The Device interface has none of these.
  all.push_back({"cuStreamQuery outside (not simulated)", kUnsafe,
                 [&cu](PermitWorld& w) { return cu.stream_query(w.session.side); }});
  all.push_back({"cuStreamQuery of the capturing stream (not simulated)", SimulatedPermit::kRefused,
                 [&cu](PermitWorld& w) { return cu.stream_query(w.session.work); }});
  all.push_back({"cuStreamSynchronize outside (not simulated)", kUnsafe,
                 [&cu](PermitWorld& w) { return cu.stream_synchronize(w.session.side); }});
  all.push_back({"cuStreamCreate (not simulated)", kSafe, [&cu](PermitWorld& w) {
                   return cu.stream_create(&w.made.stream, CU_STREAM_NON_BLOCKING);
                 }});
}

/// The rule of spec/gpu/capture.cc: which thread modes a call is refused to.
std::vector<std::string> simulated_cells(SimulatedPermit permit) {
  switch (permit) {
    case SimulatedPermit::kSafe: return {"...", "...", "...", "...", "...", "..."};
    case SimulatedPermit::kRefused: return {"xxx", "xxx", "xxx", "xxx", "xxx", "xxx"};
    case SimulatedPermit::kUnsafe: return {"xx.", "x..", "xx.", "...", "...", "..."};
  }
  return {};
}

struct PermitAnswer {
  char letter;
  CUresult result;
};

PermitAnswer ask(const DriverSession& session, const PermitCase& what,
                 CUstreamCaptureMode capture_mode, bool is_own, CUstreamCaptureMode thread_mode) {
  PermitWorld world(session);
  CaptureSession capture(session, session.work, capture_mode);
  CUresult result = CUDA_SUCCESS;
  const auto call = [&] {
    CUstreamCaptureMode mode = thread_mode;
    session.cu.exchange_capture_mode(&mode);
    result = what.run(world);
    session.cu.exchange_capture_mode(&mode);
  };
  if (is_own) {
    call();
  } else {
    std::thread([&] {
      session.cu.ctx_set_current(session.context);
      call();
    }).join();
  }
  const bool is_broken = capture.is_invalidated() || capture.end() != CUDA_SUCCESS;
  capture.end();
  const bool is_permitted = result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY;
  return {is_permitted ? (is_broken ? 'i' : '.') : (is_broken ? 'x' : 'r'), result};
}

}  // namespace

void find_capture_permits(const DriverSession& session, DriverReport* report) {
  std::vector<PermitCase> cases;
  add_memory_cases(session.cu, cases);
  add_stream_cases(session.cu, cases);
  for (const PermitCase& what : cases) {
    CaptureRow row{what.call, {}, simulated_cells(what.simulated), ""};
    std::set<std::string> errors;
    for (const CUstreamCaptureMode capture_mode : kModes) {
      for (const bool is_own : {true, false}) {
        std::string cell;
        for (const CUstreamCaptureMode thread_mode : kModes) {
          const PermitAnswer answer = ask(session, what, capture_mode, is_own, thread_mode);
          cell += answer.letter;
          if (answer.result != CUDA_SUCCESS) errors.insert(names_of(session, {answer.result}));
        }
        row.cells.push_back(cell);
      }
    }
    for (const std::string& error : errors) row.errors += (row.errors.empty() ? "" : ", ") + error;
    std::fprintf(stderr, "%-55s", row.call.c_str());
    for (const std::string& cell : row.cells) std::fprintf(stderr, " %s", cell.c_str());
    std::fprintf(stderr, " %s\n", row.errors.c_str());
    report->captures.push_back(row);
  }
}

}  // namespace ashlar::bench
