#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "bench/driver/driver_facts.h"
#include "bench/driver/page_batch.h"

namespace ashlar::bench {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

const char* const kTopic = "What waits";
constexpr milliseconds kHeld{120};

double us_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

std::string us_text(double us) { return std::to_string(static_cast<long long>(us)) + " us"; }

/// Refusals for want of memory: the driver could wait for memory that running work gives back.
void find_waits_of_refusals(const DriverSession& session, DriverReport* report) {
  const CudaDriver& cu = session.cu;
  const std::size_t too_much = free_bytes(session) / kPageSize * kPageSize + kGiB;
  CUmemGenericAllocationHandle page = 0;
  CUdeviceptr at = 0;
  {
    RunningKernel kernel(session, kHeld);
    const CUresult result = create_page(session, too_much, &page);
    report->fact(kTopic, "", "a page that does not fit is refused while a kernel runs",
                 result == CUDA_ERROR_OUT_OF_MEMORY && kernel.is_running(),
                 names_of(session, {result}));
  }
  RunningKernel kernel(session, kHeld);
  const CUresult result = cu.mem_alloc(&at, too_much);
  report->fact(kTopic, "", "a segment that does not fit is refused while a kernel runs",
               result == CUDA_ERROR_OUT_OF_MEMORY && kernel.is_running(),
               names_of(session, {result}));
}

struct BesideFree {
  bool was_waiting = false;  ///< the free had not returned when the call began
  double took_us = 0;
  CUresult result = CUDA_SUCCESS;
};

/// One `call` while another thread's free of a segment waits for a running kernel.
BesideFree call_beside_free(const DriverSession& session, const std::function<CUresult()>& call) {
  BesideFree answer;
  CUdeviceptr segment = 0;
  session.cu.mem_alloc(&segment, kPageSize);
  RunningKernel kernel(session, kHeld);
  std::atomic<bool> has_begun{false}, has_ended{false};
  std::thread freeing([&] {
    session.cu.ctx_set_current(session.context);
    has_begun = true;
    session.cu.mem_free(segment);
    has_ended = true;
  });
  while (!has_begun) std::this_thread::yield();
  std::this_thread::sleep_for(milliseconds(10));
  answer.was_waiting = !has_ended;
  const auto begin = Clock::now();
  answer.result = call();
  answer.took_us = us_since(begin);
  freeing.join();
  return answer;
}

void find_wait_beside_free(const DriverSession& session, DriverReport* report, const char* what,
                           const std::function<CUresult()>& call,
                           const std::function<void()>& undo) {
  constexpr unsigned kTries = 5;
  unsigned sound = 0, waited = 0;
  double longest_us = 0;
  CUresult result = CUDA_SUCCESS;
  for (unsigned i = 0; i < kTries; ++i) {
    const BesideFree answer = call_beside_free(session, call);
    if (undo) undo();
    if (answer.was_waiting) ++sound;
    if (answer.took_us > kHeld.count() * 1000.0 / 3) ++waited;
    longest_us = std::max(longest_us, answer.took_us);
    if (result == CUDA_SUCCESS) result = answer.result;
  }
  report->fact(kTopic, "",
               std::string(what) + " returns while another thread's free of a segment waits",
               sound == kTries && waited == 0,
               names_of(session, {result}) + "; " + std::to_string(waited) + " of " +
                   std::to_string(sound) + " waited, the longest " + us_text(longest_us));
}

void find_waits_beside_free(const DriverSession& session, DriverReport* report) {
  const CudaDriver& cu = session.cu;
  CUevent event = nullptr;
  CUdeviceptr word = 0, segment = 0;
  std::size_t free = 0, total = 0;
  unsigned long long id = 0;
  cu.event_create(&event, CU_EVENT_DISABLE_TIMING);
  cu.event_record(event, session.side);
  cu.mem_alloc(&word, kPageSize);
  PageBatch pages(session, 2, kPageSize);
  pages.create(0);
  const auto beside = [&](const char* what, const std::function<CUresult()>& call,
                          const std::function<void()>& undo = {}) {
    find_wait_beside_free(session, report, what, call, undo);
  };
  beside("an event query", [&] { return cu.event_query(event); });
  beside("an event record", [&] { return cu.event_record(event, session.side); });
  beside("a stream's wait for an event",
         [&] { return cu.stream_wait_event(session.side, event, 0); });
  beside("a launch on another stream", [&] { return store(session, session.side, word, 1); });
  beside("a stream's id", [&] { return cu.stream_get_id(session.side, &id); });
  beside("memory info", [&] { return cu.mem_get_info(&free, &total); });
  beside(
      "a segment's allocation", [&] { return cu.mem_alloc(&segment, kPageSize); },
      [&] { cu.mem_free(segment); });
  beside(
      "the creation of a page", [&] { return pages.create(1); }, [&] { pages.release(1); });
  beside(
      "the mapping of a page", [&] { return pages.map(0); }, [&] { pages.unmap(0, 1); });
  pages.map(0);
  beside("access to a page", [&] { return pages.access(0, 1); });
  beside(
      "the unmapping of a page", [&] { return pages.unmap(0, 1); }, [&] { pages.map(0); });
  cu.ctx_synchronize();
  cu.mem_free(word);
  cu.event_destroy(event);
}

/// Times `call` for a while, beside a thread that repeats `disturb`.
void find_delays(const DriverSession& session, DriverReport* report, const std::string& statement,
                 const std::function<void()>& disturb, const std::function<CUresult()>& call) {
  std::atomic<bool> is_over{false};
  std::atomic<unsigned> turns{0};
  std::thread other([&] {
    session.cu.ctx_set_current(session.context);
    while (!is_over) {
      disturb();
      ++turns;
    }
  });
  std::vector<double> times;
  const auto start = Clock::now();
  while (us_since(start) < 400'000) {
    const auto begin = Clock::now();
    call();
    times.push_back(us_since(begin));
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  is_over = true;
  other.join();
  std::sort(times.begin(), times.end());
  char text[160];
  std::snprintf(text, sizeof text, "median %.1f us, p99 %.1f us, longest %.1f us of %zu; %u turns",
                times[times.size() / 2], times[times.size() * 99 / 100], times.back(), times.size(),
                turns.load());
  report->fact(kTopic, "", statement, FactVerdict::kMeasured, text);
}

void find_delays_of_others(const DriverSession& session, DriverReport* report) {
  const CudaDriver& cu = session.cu;
  CUevent event = nullptr;
  CUdeviceptr word = 0;
  cu.event_create(&event, CU_EVENT_DISABLE_TIMING);
  cu.event_record(event, session.side);
  cu.mem_alloc(&word, kPageSize);
  PageBatch large(session, 8, kGiB), small(session, 128, kPageSize);
  const auto create = [&] {
    large.create_all();
    large.release_all();
  };
  const auto remap = [&] {
    small.map_all();
    small.unmap_all();
  };
  const auto nothing = [] { std::this_thread::sleep_for(milliseconds(1)); };
  const auto query = [&] { return cu.event_query(event); };
  const auto launch = [&] { return store(session, session.side, word, 1); };
  const auto map = [&] {
    CUdeviceptr at = 0;
    const CUresult result = cu.mem_address_reserve(&at, kPageSize, 0, 0, 0);
    cu.mem_address_free(at, kPageSize);
    return result;
  };
  find_delays(session, report, "event query, alone", nothing, query);
  find_delays(session, report, "event query, beside a thread that creates 8 pages of 1 GiB", create,
              query);
  find_delays(session, report, "event query, beside a thread that maps 128 pages", remap, query);
  find_delays(session, report, "launch, alone", nothing, launch);
  find_delays(session, report, "launch, beside a thread that creates 8 pages of 1 GiB", create,
              launch);
  find_delays(session, report, "launch, beside a thread that maps 128 pages", remap, launch);
  find_delays(session, report,
              "reserving and freeing 2 MiB, beside a thread that creates 8 pages of 1 GiB", create,
              map);
  cu.ctx_synchronize();
  cu.mem_free(word);
  cu.event_destroy(event);
}

}  // namespace

void find_waiting_facts(const DriverSession& session, DriverReport* report) {
  find_waits_of_refusals(session, report);
  find_waits_beside_free(session, report);
  find_delays_of_others(session, report);
}

}  // namespace ashlar::bench
