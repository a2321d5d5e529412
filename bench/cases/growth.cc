// One thread's hits while another thread grows by 1 GiB again and again, on a device whose growth
// takes 3 ms; and the same thread's hits without growth.
//
// A hit of 1 MiB is due every microsecond. Two figures are taken of each, clock reads (about 40 ns)
// included: its latency, from its begin to its end, and its lateness, from when it was due to its
// end. A thread blocked once for 2 ms has one slow hit and 2000 late ones, so only the lateness
// shows how long it was blocked. Lateness also contains the machine's own pauses of about 30 us,
// with and without growth, so both figures are reported. In the run without growth the other core
// spins, so that the two runs differ in the allocator only.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/adapters/slow_device.h"
#include "bench/cases/adapters.h"
#include "bench/cases/cases.h"
#ifdef ASHLAR_BENCH_CUB
#include "bench/adapters/cuda_runtime.h"
#endif

namespace ashlar::bench {
namespace {

constexpr std::size_t kSamples = 50'000;  // 50 ms: about 16 growths of 3 ms
constexpr std::chrono::microseconds kInterval{1};
constexpr int kRepetitions = 25;
constexpr std::uint64_t kHitBytes = 1 << 20;
constexpr std::size_t kGrowthsMax = 100'000;

struct Latency {
  double p50_ns = 0;
  double p999_ns = 0;
  double p999_late_ns = 0;
};

struct Samples {
  std::vector<std::uint32_t> ns;
  std::vector<std::uint32_t> late_ns;
};

/// Reorders `samples`.
double quantile(std::vector<std::uint32_t>& samples, double part) {
  const auto nth =
      samples.begin() + static_cast<std::ptrdiff_t>(part * static_cast<double>(samples.size()));
  std::nth_element(samples.begin(), nth, samples.end());
  return static_cast<double>(*nth);
}

template <class Adapter>
Latency sample_hits(Adapter& adapter, Samples& samples) {
  using Clock = std::chrono::steady_clock;
  const auto ns_since = [](Clock::time_point from, Clock::time_point to) {
    return static_cast<std::uint32_t>(
        std::min<std::int64_t>(UINT32_MAX, std::chrono::nanoseconds(to - from).count()));
  };
  samples.ns.clear();
  samples.late_ns.clear();
  auto due = Clock::now();
  for (std::size_t i = 0; i < kSamples; ++i) {
    due += kInterval;
    auto before = Clock::now();
    while (before < due) before = Clock::now();
    const auto block = adapter.allocate(kHitBytes, 0);
    const auto after = Clock::now();
    samples.ns.push_back(ns_since(before, after));
    samples.late_ns.push_back(ns_since(due, after));
    adapter.free(block);
  }
  return {quantile(samples.ns, 0.5), quantile(samples.ns, 0.999), quantile(samples.late_ns, 0.999)};
}

/// Runs `sample` while another thread repeats `work`. Returns how often `work` ended meanwhile.
template <class Sample, class Work>
std::size_t sample_beside(Sample&& sample, Work&& work) {
  std::atomic<bool> is_done{false};
  std::atomic<std::size_t> repetitions{0};
  std::thread other([&] {
    while (!is_done.load(std::memory_order_relaxed) && repetitions < kGrowthsMax) {
      work();
      ++repetitions;
    }
  });
  while (repetitions == 0) std::this_thread::yield();
  const std::size_t before = repetitions;
  sample();
  const std::size_t meanwhile = repetitions - before;
  is_done = true;
  other.join();
  return meanwhile;
}

/// Makes growth slow for a scope: every CubAdapter shares CUB's device.
struct SlowCuda {
#ifdef ASHLAR_BENCH_CUB
  SlowCuda() { set_cuda_growth_cost(SlowDevice::kGrowth.count(), SlowDevice::kMicroseconds); }
  ~SlowCuda() { set_cuda_growth_cost(UINT64_MAX, 0); }
#endif
};

template <class Adapter>
void growth(benchmark::State& state) {
  [[maybe_unused]] const SlowCuda slow_cuda;
  Samples samples;
  samples.ns.reserve(kSamples);
  samples.late_ns.reserve(kSamples);
  for (auto _ : state) {
    Adapter adapter;
    std::vector<typename Adapter::Handle> grown;
    grown.reserve(kGrowthsMax);
    adapter.free(adapter.allocate(kHitBytes, 0));
    sample_hits(adapter, samples);  // warms up
    Latency alone, growing;
    sample_beside([&] { alone = sample_hits(adapter, samples); },
                  [] { spin_for(SlowDevice::kMicroseconds); });
    const std::size_t growths =
        sample_beside([&] { growing = sample_hits(adapter, samples); },
                      [&] { grown.push_back(adapter.allocate(SlowDevice::kGrowth.count(), 1)); });
    for (const auto& block : grown) adapter.free(block);
    state.counters["p50_alone"] = alone.p50_ns;
    state.counters["p999_alone"] = alone.p999_ns;
    state.counters["p50_growing"] = growing.p50_ns;
    state.counters["p999_growing"] = growing.p999_ns;
    state.counters["p999_late_alone"] = alone.p999_late_ns;
    state.counters["p999_late_growing"] = growing.p999_late_ns;
    state.counters["growths"] = static_cast<double>(growths);
  }
}

}  // namespace

void register_growth(int repetitions_max) {
  const int repetitions = std::min(kRepetitions, repetitions_max);
  using Ours = CachingAllocatorAdapter<SlowDevice>;
  benchmark::RegisterBenchmark("growth/1GiB/ashlar", growth<Ours>)
      ->Iterations(1)
      ->Repetitions(repetitions);
#ifdef ASHLAR_BENCH_CUB
  benchmark::RegisterBenchmark("growth/1GiB/cub", growth<CubAdapter>)
      ->Iterations(1)
      ->Repetitions(repetitions);
#endif
}

}  // namespace ashlar::bench
