// A pin: the memory of one block is pinned and let go again, beside so many pinned blocks. Only ours has it.
#include <string>

#include <benchmark/benchmark.h>

#include "bench/adapters/ashlar_adapter.h"
#include "bench/cases/cases.h"

namespace ashlar::bench {
namespace {

void pin(benchmark::State& state, std::uint64_t others) {
  constexpr std::uint64_t kBytes = 4 << 10;
  AshlarAdapter adapter;
  const auto pinned = [&](Address block) {
    const Result<cache::PinnedRange> got = adapter.allocator->pin(block);
    if (!got.is_ok()) give_up(AshlarAdapter::kName, got.status().why());
    return got.value();
  };
  for (std::uint64_t i = 0; i < others; ++i) pinned(adapter.allocate(kBytes, 0));
  const Address block = adapter.allocate(kBytes, 0);
  for (auto _ : state) {
    const Status ended = adapter.allocator->unpin(pinned(block));
    if (!ended.is_ok()) give_up(AshlarAdapter::kName, ended.why());
  }
}

}  // namespace

void register_pin() {
  const struct {
    const char* name;
    std::uint64_t pins;
  } cases[] = {{"0", 0}, {"10^3", 1000}};
  for (const auto& each : cases) {
    const std::string name = std::string("pin/") + each.name + "/" + AshlarAdapter::kName;
    benchmark::RegisterBenchmark(name.c_str(),
                                 [pins = each.pins](benchmark::State& state) { pin(state, pins); });
  }
}

}  // namespace ashlar::bench
