// The steady random mix (steady_mix.h) with 10^2 .. 10^6 live blocks, one thread; and how its time
// per turn grows from 10^2 to 10^5 live blocks.
//
// mix and mix-growth prefetch their handles and take sizes up to 16 MiB. "-plain" in a name means
// plain handles, "-64MiB" sizes up to 64 MiB.
//
// mix-growth times both sides of its quotient within one repetition, one after the other. A turn
// with 10^5 blocks live costs twice as much while other programs on the machine fill the shared
// cache, and that changes from minute to minute.
//
// A mix is made once and lives as long as the program. Each repetition continues from the blocks
// that the last one left. It first warms up, because the cases run in between have emptied the
// caches. malloc is run with at most 10^4 blocks: 10^5 would take 160 GB of address space.
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
constexpr std::size_t kPinnedLiveMax = 100'000;  // as far as its figures go
/// The maximum number of turns of a warm-up. Below it a warm-up makes two turns per block, which
/// leaves about an eighth of the blocks untouched. A mix that would need more turns does not fit
/// the caches, so they would not warm it.
constexpr std::size_t kWarmUpTurnsMax = 200'000;

constexpr std::size_t kFew = 100;
constexpr std::size_t kMany = 100'000;
constexpr std::size_t kGrowthTurns = 200'000;
constexpr int kGrowthRepetitions = 25;

template <class Adapter, Handles kHandles>
struct World {
  World(std::size_t live, double size_max) : mix(adapter, live, 0, 1, size_max) {}
  Adapter adapter;
  Mix<Adapter, kHandles> mix;
};

/// A world that is made when a benchmark first uses it.
template <class Adapter, Handles kHandles>
class LazyWorld {
 public:
  LazyWorld(std::size_t live, double size_max) : live_(live), size_max_(size_max) {}

  World<Adapter, kHandles>& warmed_up() {
    if (!world_) world_ = std::make_unique<World<Adapter, kHandles>>(live_, size_max_);
    for (std::size_t i = std::min(2 * live_, kWarmUpTurnsMax); i > 0; --i) world_->mix.turn();
    return *world_;
  }

 private:
  std::size_t live_;
  double size_max_;
  std::unique_ptr<World<Adapter, kHandles>> world_;
};

/// CPU time per turn, in ns.
template <class Adapter, Handles kHandles>
double time_turns(LazyWorld<Adapter, kHandles>& world) {
  World<Adapter, kHandles>& warm = world.warmed_up();
  const std::clock_t begin = std::clock();
  for (std::size_t i = 0; i < kGrowthTurns; ++i) warm.mix.turn();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC * 1e9 /
         static_cast<double>(kGrowthTurns);
}

constexpr const char* suffix(Handles handles) { return handles == Handles::kPlain ? "-plain" : ""; }

template <class Adapter, Handles kHandles>
void register_growth_of(int repetitions_max) {
  using Lazy = LazyWorld<Adapter, kHandles>;
  const auto few = std::make_shared<Lazy>(kFew, kMixSizeMax);
  const auto many = std::make_shared<Lazy>(kMany, kMixSizeMax);
  const auto growth = [few, many](benchmark::State& state) {
    for (auto _ : state) {
      const double few_before = time_turns(*few);
      const double with_many = time_turns(*many);
      const double with_few = (few_before + time_turns(*few)) / 2;
      state.counters["few_ns"] = with_few;
      state.counters["many_ns"] = with_many;
      state.counters["growth"] = with_many / with_few;
    }
  };
  const std::string name =
      std::string("mix") + suffix(kHandles) + "-growth/10^2..10^5/" + Adapter::kName;
  benchmark::RegisterBenchmark(name.c_str(), growth)
      ->Iterations(1)
      ->Repetitions(std::min(kGrowthRepetitions, repetitions_max));
}

struct Sizes {
  const char* suffix;
  double max;
};
constexpr Sizes kSizes{"", kMixSizeMax};
constexpr Sizes kLargeSizes{"-64MiB", kMixLargeSizeMax};

/// Registers the mix with 10^exponent live blocks for every adapter.
template <Handles kHandles>
void register_mix_of(const Sizes& sizes, int exponent) {
  std::size_t live = 1;
  for (int i = 0; i < exponent; ++i) live *= 10;
  const std::string name = std::string("mix") + suffix(kHandles) + sizes.suffix + "/10^" +
                           std::to_string(exponent) + "/";
  for_each_adapter([&](auto tag) {
    using Adapter = typename decltype(tag)::type;
    if (std::is_same_v<Adapter, MallocAdapter> && live > kMallocLiveMax) return;
    if (std::is_same_v<Adapter, PinnedAdapter> && live > kPinnedLiveMax) return;
    const auto world = std::make_shared<LazyWorld<Adapter, kHandles>>(live, sizes.max);
    benchmark::RegisterBenchmark((name + Adapter::kName).c_str(), [world](benchmark::State& state) {
      World<Adapter, kHandles>& warm = world->warmed_up();
      for (auto _ : state) warm.mix.turn();
    });
  });
}

}  // namespace

void register_mix(int repetitions_max) {
  register_growth_of<AshlarAdapter, Handles::kPrefetched>(repetitions_max);
  register_growth_of<FloorAdapter, Handles::kPrefetched>(repetitions_max);
  register_growth_of<AshlarAdapter, Handles::kPlain>(repetitions_max);
  register_growth_of<FloorAdapter, Handles::kPlain>(repetitions_max);
  for (const int exponent : {2, 3, 4, 5, 6})
    register_mix_of<Handles::kPrefetched>(kSizes, exponent);
  for (const int exponent : {2, 4, 5}) register_mix_of<Handles::kPlain>(kSizes, exponent);
  register_mix_of<Handles::kPrefetched>(kLargeSizes, 4);
  register_mix_of<Handles::kPlain>(kLargeSizes, 4);
}

}  // namespace ashlar::bench
