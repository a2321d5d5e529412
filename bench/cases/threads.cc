// Two threads on two streams, and two threads on one, against one thread: the 1 MiB pair, and the mix with 10^3 live each.
//
// A repetition is one moment of a few milliseconds: the first thread alone, both on a stream each, the second alone, both on
// one stream; who does not run sleeps. Scaling is a quotient within the moment: one allocator serves all repetitions of a case,
// and where medians of single parts, each over other states of its heaps, were divided, anything came out from 1.5 to 2.5 (in a
// heap that a mix has gone through, a pair costs a third more than in a new one: free blocks of other sizes are in the index).
// The empty adapter's scaling is the machine's own.
#include <atomic>
#include <barrier>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include <benchmark/benchmark.h>

#include "bench/cases/adapters.h"
#include "bench/cases/cases.h"
#include "bench/cases/mix.h"

namespace ashlar::bench {
namespace {

constexpr std::uint64_t kPairBytes = 1 << 20;
constexpr std::size_t kLivePerThread = 1000;
constexpr double kPartSeconds = 0.002;
constexpr int kTurnsBetweenLooks = 100;  // at the clock
constexpr int kRepetitions = 100;

template <class Adapter>
class Pair {
 public:
  Pair(Adapter& adapter, unsigned stream)
      : adapter_(adapter), stream_(stream), block_(adapter.allocate(kPairBytes, stream)) {}
  ~Pair() { adapter_.free(block_); }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  void turn() {
    adapter_.free(block_);
    block_ = adapter_.allocate(kPairBytes, stream_);
  }

 private:
  Adapter& adapter_;
  unsigned stream_;
  typename Adapter::Handle block_;
};

/// Turns per second, over one part of a moment.
template <class Work>
double rate_of(Work& work) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  for (std::uint64_t turns = kTurnsBetweenLooks;; turns += kTurnsBetweenLooks) {
    for (int i = 0; i < kTurnsBetweenLooks; ++i) work.turn();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (seconds >= kPartSeconds) return static_cast<double>(turns) / seconds;
  }
}

/// Two threads that go through a moment's parts together.
class Couple {
 public:
  /// Sleeps until the other is here too.
  void meet() { barrier_.arrive_and_wait(); }
  /// The same, but begins within nanoseconds of the other: a sleeper would begin when it has been woken.
  void meet_awake() {
    meet();
    awake_.fetch_add(1);
    while (awake_.load() % 2 != 0) {
    }
  }

 private:
  std::barrier<> barrier_{2};
  std::atomic<unsigned> awake_{0};
};

/// Turns per second of each thread.
struct Rates {
  double alone[2] = {};
  double two_streams[2] = {};
  double one_stream[2] = {};
};

/// One thread's part in the moment. make(stream, seed) makes what it turns.
template <class Make>
void go_through(Couple& couple, unsigned thread, Make&& make, Rates* rates) {
  {
    auto work = make(thread, thread + 1);
    rate_of(work);  // warms up
    couple.meet();
    if (thread == 0) rates->alone[0] = rate_of(work);
    couple.meet_awake();
    rates->two_streams[thread] = rate_of(work);
    couple.meet();
    if (thread == 1) rates->alone[1] = rate_of(work);
    couple.meet();
  }
  auto work = make(0, thread + 1);
  couple.meet_awake();
  rates->one_stream[thread] = rate_of(work);
}

template <class Make>
void moment(benchmark::State& state, Make&& make) {
  for (auto _ : state) {
    Couple couple;
    Rates rates;
    std::thread second([&] { go_through(couple, 1, make, &rates); });
    go_through(couple, 0, make, &rates);
    second.join();
    const double alone = (rates.alone[0] + rates.alone[1]) / 2;
    const double two_streams = rates.two_streams[0] + rates.two_streams[1];
    state.counters["alone_ns"] = 1e9 / alone;
    state.counters["two_streams_ns"] = 1e9 / two_streams;
    state.counters["one_stream_ns"] = 1e9 / (rates.one_stream[0] + rates.one_stream[1]);
    state.counters["scaling"] = two_streams / alone;
  }
}

template <class Adapter>
void register_for() {
  const auto pairs = [adapter = std::make_shared<Adapter>()](benchmark::State& state) {
    moment(state, [&](unsigned stream, unsigned) { return Pair<Adapter>(*adapter, stream); });
  };
  const auto mixes = [adapter = std::make_shared<Adapter>()](benchmark::State& state) {
    moment(state, [&](unsigned stream, unsigned seed) { return Mix<Adapter>(*adapter, kLivePerThread, stream, seed); });
  };
  const std::string name = Adapter::kName;
  for (auto* registered : {benchmark::RegisterBenchmark(("threads-pair/" + name).c_str(), pairs),
                           benchmark::RegisterBenchmark(("threads-mix/" + name).c_str(), mixes)}) {
    registered->Iterations(1)->Repetitions(kRepetitions);
  }
}

}  // namespace

void register_threads() {
  for_each_shared_adapter([](auto tag) { register_for<typename decltype(tag)::type>(); });
}

}  // namespace ashlar::bench
