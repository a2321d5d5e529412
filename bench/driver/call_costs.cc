#include "bench/driver/call_costs.h"

#include <algorithm>
#include <memory>

#include "bench/driver/cost_timer.h"
#include "bench/driver/page_batch.h"

namespace ashlar::bench {
namespace {

/// Bytes that the batches of one case may hold at once: small enough for every card.
constexpr std::size_t kHeldMax = 12 * kGiB;
constexpr std::size_t kBatchMax = 250;

std::string size_text(std::size_t size) {
  const std::size_t mib = size / kMiB;
  if (mib >= 1024 * 1024) return std::to_string(mib / 1024 / 1024) + " TiB";
  if (mib >= 1024) return std::to_string(mib / 1024) + " GiB";
  return std::to_string(mib) + " MiB";
}

std::size_t batch_of(std::size_t bytes_per_call) {
  return std::clamp<std::size_t>(kHeldMax / bytes_per_call, 1, kBatchMax);
}

void measure_nothing(CostTimer& timer) {
  timer.measure(
      {"nothing", "the clock", kBatchMax, {}, [](std::size_t) { return CUDA_SUCCESS; }, {}, {}});
}

// Pages. A case of its own for each call, so that every call meets the same state.

void measure_page_size(const DriverSession& session, CostTimer& timer, std::size_t size) {
  const std::size_t batch = batch_of(size);
  const std::string of = size_text(size);
  PageBatch pages(session, batch, size);
  const auto create = [&] { return pages.create_all(); };
  const auto map = [&] { return pages.map_all(); };
  const auto unmap = [&] { pages.unmap_all(); };
  const auto release = [&] { pages.release_all(); };
  timer.measure(
      {"cuMemCreate", of, batch, {}, [&](std::size_t i) { return pages.create(i); }, release, {}});
  timer.measure({"cuMemRelease",
                 of + ", not mapped",
                 batch,
                 create,
                 [&](std::size_t i) { return pages.release(i); },
                 release,
                 {}});
  timer.measure(
      {"cuMemMap", of, batch, create, [&](std::size_t i) { return pages.map(i); }, unmap, {}});
  const auto map_only = [&] {
    if (!pages.create_all()) return false;
    for (std::size_t i = 0; i < batch; ++i) {
      if (pages.map(i) != CUDA_SUCCESS) return false;
    }
    return true;
  };
  timer.measure({"cuMemSetAccess",
                 of + ", one handle",
                 batch,
                 map_only,
                 [&](std::size_t i) { return pages.access(i, 1); },
                 unmap,
                 {}});
  timer.measure({"cuMemUnmap",
                 of + ", one handle",
                 batch,
                 map,
                 [&](std::size_t i) { return pages.unmap(i, 1); },
                 unmap,
                 {}});
  timer.measure({"cuMemUnmap",
                 of + ", its handle released before",
                 batch,
                 [&] {
                   if (!pages.map_all()) return false;
                   for (std::size_t i = 0; i < batch; ++i) pages.release(i);
                   return true;
                 },
                 [&](std::size_t i) { return pages.unmap(i, 1); },
                 release,
                 {}});
}

void measure_runs(const DriverSession& session, CostTimer& timer, std::size_t run) {
  const std::size_t batch = batch_of(2 * run * kPageSize);
  const std::string of = std::to_string(run) + " handles of " + size_text(kPageSize);
  PageBatch pages(session, batch * run, kPageSize);
  const auto unmap = [&] { pages.unmap_all(); };
  timer.measure({"cuMemSetAccess",
                 of,
                 batch,
                 [&] {
                   if (!pages.create_all()) return false;
                   for (std::size_t i = 0; i < pages.count(); ++i) {
                     if (pages.map(i) != CUDA_SUCCESS) return false;
                   }
                   return true;
                 },
                 [&](std::size_t i) { return pages.access(i * run, run); },
                 unmap,
                 {}});
  timer.measure({"cuMemUnmap",
                 of,
                 batch,
                 [&] { return pages.map_all(); },
                 [&](std::size_t i) { return pages.unmap(i * run, run); },
                 unmap,
                 {}});
}

/// Calls at a second address of pages that are mapped, with access, at a first.
void measure_second_address(const DriverSession& session, CostTimer& timer) {
  const CudaDriver& cu = session.cu;
  const std::size_t batch = batch_of(kPageSize);
  PageBatch pages(session, batch, kPageSize);
  CUdeviceptr second = 0;
  cu.mem_address_reserve(&second, batch * kPageSize, 0, 0, 0);
  const auto at = [&](std::size_t i) { return second + i * kPageSize; };
  const auto map = [&] {
    if (!pages.map_all()) return false;
    for (std::size_t i = 0; i < batch; ++i) {
      if (cu.mem_map(at(i), kPageSize, 0, pages.handle(i), 0) != CUDA_SUCCESS) return false;
    }
    return true;
  };
  const auto unmap = [&] { cu.mem_unmap(second, batch * kPageSize); };
  timer.measure({"cuMemSetAccess",
                 "2 MiB, at its second address",
                 batch,
                 map,
                 [&](std::size_t i) { return give_access(session, at(i), kPageSize); },
                 unmap,
                 {}});
  const auto give = [&] {
    return map() && give_access(session, second, batch * kPageSize) == CUDA_SUCCESS;
  };
  timer.measure({"cuMemUnmap",
                 "2 MiB, at its second address",
                 batch,
                 give,
                 [&](std::size_t i) { return cu.mem_unmap(at(i), kPageSize); },
                 unmap,
                 {}});
  cu.mem_address_free(second, batch * kPageSize);
}

void measure_ranges(const DriverSession& session, CostTimer& timer) {
  const CudaDriver& cu = session.cu;
  for (const std::size_t size : {kPageSize, kGiB, 64 * kGiB, 1024 * kGiB}) {
    const std::size_t batch = size > 64 * kGiB ? 20 : 100;
    std::vector<CUdeviceptr> ranges(batch, 0);
    const auto reserve = [&](std::size_t i) {
      return cu.mem_address_reserve(&ranges[i], size, 0, 0, 0);
    };
    const auto free = [&](std::size_t i) {
      const CUresult result = cu.mem_address_free(ranges[i], size);
      ranges[i] = 0;
      return result;
    };
    const auto undo = [&] {
      for (std::size_t i = 0; i < batch; ++i) {
        if (ranges[i] != 0) free(i);
      }
    };
    timer.measure({"cuMemAddressReserve", size_text(size), batch, {}, reserve, undo, {}});
    timer.measure({"cuMemAddressFree",
                   size_text(size),
                   batch,
                   [&] {
                     for (std::size_t i = 0; i < batch; ++i) {
                       if (reserve(i) != CUDA_SUCCESS) return false;
                     }
                     return true;
                   },
                   free,
                   undo,
                   {}});
  }
}

/// A pair of calls that hand out memory and take it back.
template <class Handle, class Take, class Free>
void measure_pair(CostTimer& timer, const char* take_name, const char* free_name, std::string of,
                  std::size_t batch, Take take, Free free) {
  std::vector<Handle> held(batch, Handle{});
  const auto take_one = [&](std::size_t i) { return take(&held[i]); };
  const auto free_one = [&](std::size_t i) {
    const CUresult result = free(held[i]);
    held[i] = Handle{};
    return result;
  };
  const auto undo = [&] {
    for (std::size_t i = 0; i < batch; ++i) {
      if (held[i] != Handle{}) free_one(i);
    }
  };
  const auto take_all = [&] {
    for (std::size_t i = 0; i < batch; ++i) {
      if (take_one(i) != CUDA_SUCCESS) return false;
    }
    return true;
  };
  timer.measure({take_name, of, batch, {}, take_one, undo, {}});
  timer.measure({free_name, of, batch, take_all, free_one, undo, {}});
}

void measure_segments(const DriverSession& session, CostTimer& timer) {
  const CudaDriver& cu = session.cu;
  for (const std::size_t size : {2 * kMiB, 20 * kMiB, 200 * kMiB, 2 * kGiB}) {
    measure_pair<CUdeviceptr>(
        timer, "cuMemAlloc", "cuMemFree", size_text(size), batch_of(size),
        [&cu, size](CUdeviceptr* at) { return cu.mem_alloc(at, size); },
        [&cu](CUdeviceptr at) { return cu.mem_free(at); });
  }
  for (const std::size_t size : {2 * kMiB, 64 * kMiB}) {
    measure_pair<void*>(
        timer, "cuMemHostAlloc", "cuMemFreeHost", size_text(size), 2 * kGiB / size / 8,
        [&cu, size](void** at) { return cu.mem_host_alloc(at, size, 0); },
        [&cu](void* at) { return cu.mem_free_host(at); });
  }
  timer.measure({"cuMemGetInfo",
                 "",
                 kBatchMax,
                 {},
                 [&](std::size_t) {
                   std::size_t free = 0, total = 0;
                   return cu.mem_get_info(&free, &total);
                 },
                 {},
                 {}});
}

void measure_events(const DriverSession& session, CostTimer& timer) {
  const CudaDriver& cu = session.cu;
  measure_pair<CUevent>(
      timer, "cuEventCreate", "cuEventDestroy", "", kBatchMax,
      [&cu](CUevent* event) { return cu.event_create(event, CU_EVENT_DISABLE_TIMING); },
      [&cu](CUevent event) { return cu.event_destroy(event); });
  CUevent event = nullptr, behind = nullptr;
  cu.event_create(&event, CU_EVENT_DISABLE_TIMING);
  cu.event_create(&behind, CU_EVENT_DISABLE_TIMING);
  cu.event_record(event, session.side);
  constexpr std::size_t kQueued = 200;  // so many fit into the queue of a stream that is held up
  const auto settle = [&] { cu.stream_synchronize(session.side); };
  const auto record_behind = [&] { cu.event_record(behind, session.work); };
  const auto record = [&](std::size_t) { return cu.event_record(event, session.side); };
  const auto record_busy = [&](std::size_t) { return cu.event_record(behind, session.work); };
  const auto query = [&](std::size_t) { return cu.event_query(event); };
  const auto query_busy = [&](std::size_t) { return cu.event_query(behind); };
  const auto wait = [&](std::size_t) { return cu.stream_wait_event(session.side, event, 0); };
  const auto wait_busy = [&](std::size_t) { return cu.stream_wait_event(session.side, behind, 0); };
  const auto block = [&](std::size_t) { return cu.event_synchronize(event); };
  const auto block_all = [&](std::size_t) { return cu.ctx_synchronize(); };
  const char* const kBusy = "on a stream with a running kernel";
  timer.measure({"cuEventRecord", "on an idle stream", kQueued, {}, record, settle, {}});
  timer.measure({"cuEventRecord", kBusy, kQueued, {}, record_busy, {}, [] {}});
  timer.measure({"cuEventQuery", "complete", kBatchMax, {}, query, {}, {}});
  timer.measure({"cuEventQuery", "not complete", kBatchMax, {}, query_busy, {}, record_behind});
  timer.measure({"cuEventSynchronize", "complete", kBatchMax, {}, block, {}, {}});
  timer.measure({"cuStreamWaitEvent", "complete", kQueued, {}, wait, settle, {}});
  timer.measure({"cuStreamWaitEvent", "not complete", kQueued, {}, wait_busy, {}, record_behind});
  cu.stream_synchronize(session.side);
  timer.measure({"cuCtxSynchronize", "", kBatchMax, {}, block_all, {}, {}});
  cu.event_destroy(event);
  cu.event_destroy(behind);
}

void measure_streams(const DriverSession& session, CostTimer& timer) {
  const CudaDriver& cu = session.cu;
  const auto identify = [&](std::size_t) {
    unsigned long long id = 0;
    return cu.stream_get_id(session.side, &id);
  };
  const auto exchange = [&](std::size_t) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    return cu.exchange_capture_mode(&mode);
  };
  const auto restore = [&] {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    cu.exchange_capture_mode(&mode);
  };
  timer.measure({"cuStreamGetId", "", kBatchMax, {}, identify, {}, {}});
  timer.measure({"cuThreadExchangeStreamCaptureMode", "", kBatchMax, {}, exchange, restore, {}});
}

void measure_captures(const DriverSession& session, CostTimer& timer) {
  const CudaDriver& cu = session.cu;
  CUdeviceptr word = 0;
  cu.mem_alloc(&word, kPageSize);
  const auto begin = [&] {
    if (cu.stream_begin_capture(session.side, CU_STREAM_CAPTURE_MODE_RELAXED) != CUDA_SUCCESS)
      return false;
    return store(session, session.side, word, 1) == CUDA_SUCCESS;
  };
  const auto end = [&] {
    CUgraph graph = nullptr;
    if (cu.stream_end_capture(session.side, &graph) == CUDA_SUCCESS) cu.graph_destroy(graph);
  };
  CUgraph graph = nullptr;
  const CUgraphNode* nodes = nullptr;
  std::size_t count = 0;
  const auto info = [&](std::size_t) {
    CUstreamCaptureStatus status;
    cuuint64_t id = 0;
    return cu.stream_get_capture_info(session.side, &status, &id, &graph, &nodes, nullptr, &count);
  };
  const auto status = [&](std::size_t) {
    CUstreamCaptureStatus answer;
    return cu.stream_is_capturing(session.side, &answer);
  };
  const auto mark = [&](std::size_t i) {
    CUgraphNode node = nullptr;
    const CUresult result = info(i);
    if (result != CUDA_SUCCESS) return result;
    return cu.graph_add_empty_node(&node, graph, nodes, count);
  };
  const char* const kMarked = "in a capture, with GetCaptureInfo";
  timer.measure({"cuStreamIsCapturing", "no", kBatchMax, {}, status, {}, {}});
  timer.measure({"cuStreamIsCapturing", "yes", kBatchMax, begin, status, end, {}});
  timer.measure({"cuStreamGetCaptureInfo", "not capturing", kBatchMax, {}, info, {}, {}});
  timer.measure({"cuStreamGetCaptureInfo", "one dependency", kBatchMax, begin, info, end, {}});
  timer.measure({"cuGraphAddEmptyNode", kMarked, kBatchMax, begin, mark, end, {}});
  cu.mem_free(word);
}

}  // namespace

void measure_costs(const DriverSession& session, const CostOptions& options, DriverReport* report) {
  CostTimer timer(session, options, report);
  measure_nothing(timer);
  for (const std::size_t mib : {2u, 16u, 64u, 256u, 1024u})
    measure_page_size(session, timer, mib * kMiB);
  for (const std::size_t run : {16u, 128u}) measure_runs(session, timer, run);
  measure_second_address(session, timer);
  measure_ranges(session, timer);
  measure_segments(session, timer);
  measure_events(session, timer);
  measure_streams(session, timer);
  measure_captures(session, timer);
}

}  // namespace ashlar::bench
