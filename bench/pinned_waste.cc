// How much more page-locked memory is allocated, and locked, than was asked for.
//
//   ashlar_pinned_waste
//
// A mix of sizes log-uniform over 4 KiB .. 64 MiB: of 256 live blocks one picked at random is freed, its use by a stream
// still under way, and replaced by one of another size. Once as Ashlar rounds, and once with the power-of-two rule, the
// same requests. Prints a line for each: its name, and the peaks of bytes allocated and of bytes locked, over the peak of
// bytes asked for. ci/figures/pinned makes rows of them. Exit 2: usage.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include <ashlar/pinned/pinned_allocator.h>

#include "bench/adapters/adapter.h"
#include "bench/cases/steady_mix.h"
#include "spec/gpu/sim_gpu.h"
#include "spec/ops/random.h"

namespace ashlar::bench {
namespace {

constexpr std::size_t kLive = 256;
constexpr unsigned kTurns = 100'000;
constexpr std::uint64_t kLag = 64;  // turns that a use stays under way

struct Waste {
  double allocated = 0;
  double locked = 0;
};

Waste run(bool rounds_to_power_of_two) {
  spec::SimGpu gpu;
  gpu.set_lag(kLag);
  const Stream stream = gpu.create_stream(DeviceId{0}).value();
  device::Device* devices[] = {&gpu.device(0)};
  pinned::PinnedConfig config;
  config.rounds_to_power_of_two = rounds_to_power_of_two;
  auto made = pinned::PinnedAllocator::create(devices, config);
  if (!made.is_ok()) give_up("pinned", made.status().why());
  pinned::PinnedAllocator& allocator = *made.value();

  struct Block {
    Address address;
    std::uint64_t size = 0;
  };
  std::vector<Block> live(kLive);
  const SizeTable sizes(kMixLargeSizeMax, 4096);
  spec::Random random(1);
  std::uint64_t asked = 0, asked_peak = 0;
  for (unsigned turn = 0; turn < kTurns; ++turn) {
    Block& block = live[random.below(kLive)];
    if (block.size != 0) {
      if (!gpu.launch(stream, {block.address, Bytes{block.size}}).is_ok() ||
          !allocator.record_use(block.address, nullptr, stream).is_ok() ||
          !allocator.free(block.address).is_ok())
        give_up("pinned", "a use or a free failed");
      gpu.tick();
    }
    asked -= block.size;
    block.size = sizes.at(random.next());
    asked += block.size;
    const auto got = allocator.allocate(Bytes{block.size});
    if (!got.is_ok()) give_up("pinned", got.status().why());
    block.address = got.value();
    asked_peak = std::max(asked_peak, asked);
  }
  cache::DeviceStats stats;
  if (!allocator.caching().stats(allocator.device(), &stats).is_ok()) give_up("pinned", "no stats");
  const auto over = [&](const cache::StatByPool& of) {
    return static_cast<double>(of[0].peak) / static_cast<double>(asked_peak);
  };
  const Waste waste{over(stats.allocated_bytes), over(stats.reserved_bytes)};
  for (const Block& block : live) static_cast<void>(allocator.free(block.address));
  static_cast<void>(gpu.drain_all());
  return waste;
}

}  // namespace
}  // namespace ashlar::bench

int main(int argc, char**) {
  if (argc > 1) {
    std::fputs("usage: ashlar_pinned_waste\n", stderr);
    return 2;
  }
  for (const bool rounds_to_power_of_two : {false, true}) {
    const ashlar::bench::Waste waste = ashlar::bench::run(rounds_to_power_of_two);
    std::printf("%s %.3f %.3f\n", rounds_to_power_of_two ? "power-of-two" : "ashlar",
                waste.allocated, waste.locked);
  }
}
