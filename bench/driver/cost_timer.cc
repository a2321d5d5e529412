#include "bench/driver/cost_timer.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>

namespace ashlar::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned kProbes = 5;
constexpr std::chrono::milliseconds kProbeKernel{25};
constexpr std::chrono::milliseconds kBatchKernel{4000};

double us_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double, std::micro>(end - begin).count();
}

double quantile_us(std::vector<double>& times, double part) {
  std::sort(times.begin(), times.end());
  return times[static_cast<std::size_t>(part * static_cast<double>(times.size() - 1))];
}

void call_if(const std::function<void()>& function) {
  if (function) function();
}

}  // namespace

bool CostTimer::waits_once(const CostCase& what) {
  if (what.prepare && !what.prepare()) return false;
  RunningKernel kernel(session_, kProbeKernel);
  what.run(0);
  const bool has_ended = !kernel.is_running();
  kernel.stop();
  call_if(what.undo);
  return has_ended;
}

CallTimes CostTimer::time_calls(const CostCase& what, bool is_busy) {
  CallTimes result;
  std::vector<double> times;
  CUresult error = CUDA_SUCCESS;
  const auto start = Clock::now();
  while (times.size() < options_.calls && error == CUDA_SUCCESS &&
         us_between(start, Clock::now()) < options_.seconds_per_case * 1e6) {
    if (what.prepare && !what.prepare()) {
      result.error = "cannot prepare";
      break;
    }
    std::unique_ptr<RunningKernel> kernel;
    if (is_busy) kernel = std::make_unique<RunningKernel>(session_, kBatchKernel);
    if (is_busy) call_if(what.begin_busy);
    for (std::size_t i = 0; i < what.batch && error == CUDA_SUCCESS; ++i) {
      const auto begin = Clock::now();
      const CUresult answer = what.run(i);
      times.push_back(us_between(begin, Clock::now()));
      if (answer != CUDA_SUCCESS && answer != CUDA_ERROR_NOT_READY) error = answer;
    }
    if (kernel != nullptr && !kernel->is_running()) result.error = "the kernel ended too early";
    kernel.reset();
    call_if(what.undo);
    if (!result.error.empty()) break;
  }
  if (error != CUDA_SUCCESS) result.error = name_of(session_, error);
  if (times.empty()) return result;
  result.calls = times.size();
  result.median_us = quantile_us(times, 0.5);
  result.p90_us = quantile_us(times, 0.9);
  result.mean_us =
      std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
  result.max_us = times.back();  // they are sorted by now
  return result;
}

void CostTimer::measure(const CostCase& what) {
  CostRow row{what.call, what.of, {}, {}, 0, 0};
  if (!what.begin_busy) {
    row.idle = time_calls(what, false);
    for (; row.probes < kProbes; ++row.probes) row.waited += waits_once(what) ? 1 : 0;
  }
  if (row.waited < row.probes || row.probes == 0) row.busy = time_calls(what, true);
  std::fprintf(
      stderr, "%-28s %-34s idle %10.2f us (%zu)  busy %10.2f us (%zu)  waits %u of %u %s%s\n",
      row.call.c_str(), row.of.c_str(), row.idle.median_us, row.idle.calls, row.busy.median_us,
      row.busy.calls, row.waited, row.probes, row.idle.error.c_str(), row.busy.error.c_str());
  report_->costs.push_back(row);
}

}  // namespace ashlar::bench
