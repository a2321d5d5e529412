// The machine itself: one load that waits for the last, from anywhere in so much memory.
//
// Why it is here: with 10^5 blocks live an allocator's tables are some 14 MiB, and each of its
// operations is a few such loads. Whether they come from a cache that is shared with the machine's
// other tenants or from memory, these say.
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <ashlar/base/host_table.h>

#include <benchmark/benchmark.h>

#include "bench/cases/cases.h"
#include "spec/ops/random.h"

namespace ashlar::bench {
namespace {

struct alignas(64) Line {
  std::uint32_t next;
};

/// One circle through all lines, in random order.
HostTable<Line> make_circle(std::uint32_t lines) {
  std::vector<std::uint32_t> order(lines);
  std::iota(order.begin(), order.end(), 0u);
  spec::Random random(1);
  for (std::uint32_t i = lines; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  HostTable<Line> circle = make_host_table<Line>(lines);
  for (std::uint32_t i = 0; i < lines; ++i) circle[order[i]].next = order[(i + 1) % lines];
  return circle;
}

void load(benchmark::State& state, std::uint32_t lines) {
  const HostTable<Line> circle = make_circle(lines);
  std::uint32_t at = 0;
  for (std::uint32_t i = 0; i < lines; ++i) at = circle[at].next;  // warm
  for (auto _ : state) benchmark::DoNotOptimize(at = circle[at].next);
}

}  // namespace

void register_loads() {
  for (const std::uint32_t mib : {1u, 4u, 16u}) {
    const std::string name = "load/" + std::to_string(mib) + "MiB/empty";
    benchmark::RegisterBenchmark(
        name.c_str(), [lines = mib << 14](benchmark::State& state) { load(state, lines); });
  }
}

}  // namespace ashlar::bench
