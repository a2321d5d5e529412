// The steady random mix (mix.h) with 10^2 .. 10^6 live blocks, one thread; and how its time grows
// from 10^2 to 10^5.
//
// Growth is a quotient within one moment: turns with 10^5 blocks live cost twice as much while
// neighbours on the machine take the shared cache, and that changes by the minute.
//
// A mix lives as long as the program: it is filled and turned over once, and each repetition goes
// on where the last one stopped, once it has warmed up: the cases in between have emptied the
// caches. malloc stays under 10^5 blocks, which would be 160 GB of address space; from there on it
// is not run.
#include <algorithm>
#include <ctime>
#include <memory>
#include <string>

#include <benchmark/benchmark.h>

#include "bench/cases/adapters.h"
#include "bench/cases/cases.h"
#include "bench/cases/steady_mix.h"

namespace ashlar::bench {
namespace {

constexpr std::size_t kMallocLiveMax = 10'000;
/// Twice the blocks leave an eighth of them untouched; what is larger than this does not fit the
/// caches anyway.
constexpr std::size_t kWarmUpTurnsMax = 200'000;

constexpr std::size_t kFew = 100;
constexpr std::size_t kMany = 100'000;
constexpr std::size_t kGrowthTurns = 200'000;
constexpr int kGrowthRepetitions = 25;

template <class Adapter>
struct World {
  explicit World(std::size_t live) : mix(adapter, live, 0, 1) {}
  Adapter adapter;
  Mix<Adapter> mix;
};

template <class Adapter>
World<Adapter>& warmed_up(std::shared_ptr<World<Adapter>>& world, std::size_t live) {
  if (!world) world = std::make_shared<World<Adapter>>(live);
  for (std::size_t i = std::min(2 * live, kWarmUpTurnsMax); i > 0; --i) world->mix.turn();
  return *world;
}

template <class Adapter>
void mix(benchmark::State& state, std::shared_ptr<World<Adapter>>& world, std::size_t live) {
  World<Adapter>& warm = warmed_up(world, live);
  for (auto _ : state) warm.mix.turn();
}

/// ns of CPU time a turn.
template <class Adapter>
double time_turns(std::shared_ptr<World<Adapter>>& world, std::size_t live) {
  World<Adapter>& warm = warmed_up(world, live);
  const std::clock_t begin = std::clock();
  for (std::size_t i = 0; i < kGrowthTurns; ++i) warm.mix.turn();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC * 1e9 /
         static_cast<double>(kGrowthTurns);
}

template <class Adapter>
void register_growth_of() {
  const auto few = std::make_shared<std::shared_ptr<World<Adapter>>>();
  const auto many = std::make_shared<std::shared_ptr<World<Adapter>>>();
  const std::string name = std::string("mix-growth/10^2..10^5/") + Adapter::kName;
  const auto growth = [few, many](benchmark::State& state) {
    for (auto _ : state) {
      const double few_before = time_turns(*few, kFew);
      const double with_many = time_turns(*many, kMany);
      const double with_few = (few_before + time_turns(*few, kFew)) / 2;
      state.counters["few_ns"] = with_few;
      state.counters["many_ns"] = with_many;
      state.counters["growth"] = with_many / with_few;
    }
  };
  benchmark::RegisterBenchmark(name.c_str(), growth)
      ->Iterations(1)
      ->Repetitions(kGrowthRepetitions);
}

}  // namespace

void register_mix() {
  register_growth_of<AshlarAdapter>();
  register_growth_of<FloorAdapter>();
  const struct {
    const char* name;
    std::size_t live;
  } counts[] = {
      {"10^2", 100}, {"10^3", 1'000}, {"10^4", 10'000}, {"10^5", 100'000}, {"10^6", 1'000'000}};
  for (const auto& count : counts) {
    for_each_adapter([&](auto tag) {
      using Adapter = typename decltype(tag)::type;
      if (std::is_same_v<Adapter, MallocAdapter> && count.live > kMallocLiveMax) return;
      const std::string name = std::string("mix/") + count.name + "/" + Adapter::kName;
      // made when the benchmark first runs
      auto world = std::make_shared<std::shared_ptr<World<Adapter>>>();
      benchmark::RegisterBenchmark(name.c_str(),
                                   [world, live = count.live](benchmark::State& state) {
                                     mix<Adapter>(state, *world, live);
                                   });
    });
  }
}

}  // namespace ashlar::bench
