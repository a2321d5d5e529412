// The pair: one block is freed and allocated again, over and over: a hit with everything in the
// nearest cache.
#include <string>

#include <benchmark/benchmark.h>

#include "bench/cases/adapters.h"
#include "bench/cases/cases.h"

namespace ashlar::bench {
namespace {

template <class Adapter>
void pair(benchmark::State& state, std::uint64_t bytes) {
  Adapter adapter;
  auto block = adapter.allocate(bytes, 0);
  for (auto _ : state) {
    adapter.free(block);
    block = adapter.allocate(bytes, 0);
  }
  adapter.free(block);
}

}  // namespace

void register_pair() {
  const struct {
    const char* name;
    std::uint64_t bytes;
  } sizes[] = {{"4KiB", 4 << 10}, {"1MiB", 1 << 20}, {"32MiB", 32 << 20}};
  for (const auto& size : sizes) {
    for_each_adapter([&](auto tag) {
      using Adapter = typename decltype(tag)::type;
      const std::string name = std::string("pair/") + size.name + "/" + Adapter::kName;
      benchmark::RegisterBenchmark(name.c_str(), [bytes = size.bytes](benchmark::State& state) {
        pair<Adapter>(state, bytes);
      });
    });
  }
}

}  // namespace ashlar::bench
