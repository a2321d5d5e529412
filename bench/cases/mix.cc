// The steady random mix (mix.h) with 10^2 .. 10^6 live blocks, one thread.
//
// A mix lives as long as the program: it is filled and turned over once, and each repetition goes on where the last one
// stopped, once it has warmed up: the cases in between have emptied the caches. malloc stays under 10^5 blocks, which would
// be 160 GB of address space; from there on it is not run.
#include <algorithm>
#include <memory>
#include <string>

#include <benchmark/benchmark.h>

#include "bench/cases/adapters.h"
#include "bench/cases/cases.h"
#include "bench/cases/mix.h"

namespace ashlar::bench {
namespace {

constexpr std::size_t kMallocLiveMax = 10'000;
/// Twice the blocks leave an eighth of them untouched; what is larger than this does not fit the caches anyway.
constexpr std::size_t kWarmUpTurnsMax = 200'000;

template <class Adapter>
struct World {
  explicit World(std::size_t live) : mix(adapter, live, 0, 1) {}
  Adapter adapter;
  Mix<Adapter> mix;
};

template <class Adapter>
void mix(benchmark::State& state, std::shared_ptr<World<Adapter>>& world, std::size_t live) {
  if (!world) world = std::make_shared<World<Adapter>>(live);
  for (std::size_t i = std::min(2 * live, kWarmUpTurnsMax); i > 0; --i) world->mix.turn();
  for (auto _ : state) world->mix.turn();
}

}  // namespace

void register_mix() {
  const struct {
    const char* name;
    std::size_t live;
  } counts[] = {{"10^2", 100}, {"10^3", 1'000}, {"10^4", 10'000}, {"10^5", 100'000}, {"10^6", 1'000'000}};
  for (const auto& count : counts) {
    for_each_adapter([&](auto tag) {
      using Adapter = typename decltype(tag)::type;
      if (std::is_same_v<Adapter, MallocAdapter> && count.live > kMallocLiveMax) return;
      const std::string name = std::string("mix/") + count.name + "/" + Adapter::kName;
      auto world = std::make_shared<std::shared_ptr<World<Adapter>>>();  // made when the benchmark first runs
      benchmark::RegisterBenchmark(name.c_str(), [world, live = count.live](benchmark::State& state) {
        mix<Adapter>(state, *world, live);
      });
    });
  }
}

}  // namespace ashlar::bench
