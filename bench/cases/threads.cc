// Two threads on two streams, and two threads on one, against one thread: the 1 MiB pair, and the mix with 10^3 live
// each.
//
// Times are wall times over all threads' operations: with perfect scaling two threads take half of one. The empty
// adapter's scaling is the machine's own. One allocator serves all cases of its name.
//
// Repetitions are short and many, so that they see all that the machine is busy with; scaling is the quotient of their medians
// (ratios.cc says why).
#include <memory>
#include <string>

#include <benchmark/benchmark.h>

#include "bench/cases/adapters.h"
#include "bench/cases/cases.h"
#include "bench/cases/mix.h"

namespace ashlar::bench {
namespace {

constexpr std::uint64_t kPairBytes = 1 << 20;
constexpr std::size_t kLivePerThread = 1000;
constexpr double kRepetitionSeconds = 0.002;
constexpr int kRepetitions = 100;

template <class Adapter>
void pair(benchmark::State& state, Adapter& adapter, bool has_own_stream) {
  const unsigned stream = has_own_stream ? static_cast<unsigned>(state.thread_index()) : 0;
  auto block = adapter.allocate(kPairBytes, stream);
  for (auto _ : state) {
    adapter.free(block);
    block = adapter.allocate(kPairBytes, stream);
  }
  adapter.free(block);
}

template <class Adapter>
void mix(benchmark::State& state, Adapter& adapter, bool has_own_stream) {
  const auto thread = static_cast<unsigned>(state.thread_index());
  Mix<Adapter> mix(adapter, kLivePerThread, has_own_stream ? thread : 0, thread + 1);
  for (auto _ : state) mix.turn();
}

template <class Adapter>
void register_for() {
  const auto adapter = std::make_shared<Adapter>();
  const struct {
    const char* name;
    int threads;
    bool has_own_stream;
  } cases[] = {{"1-thread", 1, true}, {"2-threads-2-streams", 2, true}, {"2-threads-1-stream", 2, false}};
  for (const auto& one : cases) {
    const std::string tail = std::string("/") + one.name + "/" + Adapter::kName;
    const auto pairs = [adapter, one](benchmark::State& state) { pair(state, *adapter, one.has_own_stream); };
    const auto mixes = [adapter, one](benchmark::State& state) { mix(state, *adapter, one.has_own_stream); };
    for (auto* registered : {benchmark::RegisterBenchmark(("threads-pair" + tail).c_str(), pairs),
                             benchmark::RegisterBenchmark(("threads-mix" + tail).c_str(), mixes)}) {
      registered->Threads(one.threads)->UseRealTime()->MinTime(kRepetitionSeconds)->Repetitions(kRepetitions);
    }
  }
}

}  // namespace

void register_threads() {
  for_each_shared_adapter([](auto tag) { register_for<typename decltype(tag)::type>(); });
}

}  // namespace ashlar::bench
