// How much more page-locked memory is allocated, and locked, than was asked for.
//
//   ashlar_pinned_waste [ROWS]
//
// A mix of sizes log-uniform over 4 KiB .. 64 MiB: of 256 live blocks one picked at random is freed, its use by a stream
// still under way, and replaced by one of another size. Once as Ashlar rounds, and once with the power-of-two rule, the
// same requests. Prints for each the peak of bytes allocated and of bytes locked, over the peak of bytes asked for; ROWS:
// writes them as rows of a report too (ci/figures/pinned).
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iomanip>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <ashlar/pinned/pinned_allocator.h>

#include "bench/adapters/adapter.h"
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

/// Log-uniform over 4 KiB .. 64 MiB.
std::uint64_t draw_size(spec::Random& random) {
  const double share = static_cast<double>(random.below(1u << 30)) / static_cast<double>(1u << 30);
  return static_cast<std::uint64_t>(4096.0 * std::pow(16384.0, share));
}

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
    block.size = draw_size(random);
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

std::string row(const std::string& figure, double value, const char* target, const char* met) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(3) << "{\"figure\":\"" << figure << "\",\"value\":\""
      << value << "\",\"target\":\"" << target << "\",\"met\":" << met
      << ",\"command\":\"ashlar_pinned_waste\"}\n";
  return out.str();
}

int main_of(int argc, char** argv) {
  if (argc > 2) {
    std::fputs("usage: ashlar_pinned_waste [ROWS]\n", stderr);
    return 2;
  }
  const Waste ours = run(false);
  const Waste rule = run(true);
  constexpr double kMost = 1.15;
  std::printf("over the peak of bytes asked for    allocated    locked\n");
  std::printf("ashlar                              %9.3f %9.3f\n", ours.allocated, ours.locked);
  std::printf("power-of-two rule                   %9.3f %9.3f\n", rule.allocated, rule.locked);
  if (argc == 2) {
    std::ofstream rows(argv[1]);
    const std::string mix = "page-locked memory, sizes of 4 KiB..64 MiB: peak of bytes ";
    rows << row(mix + "allocated / asked for", ours.allocated, "<= 1.15",
                ours.allocated <= kMost ? "true" : "false")
         << row("the same with the power-of-two rule", rule.allocated, "", "null")
         << row(mix + "locked / asked for, uses 64 frees behind", ours.locked, "", "null")
         << row("the same with the power-of-two rule", rule.locked, "", "null");
    if (!rows) {
      std::fprintf(stderr, "ashlar_pinned_waste: cannot write %s\n", argv[1]);
      return 3;
    }
  }
  return ours.allocated <= kMost ? 0 : 1;
}

}  // namespace
}  // namespace ashlar::bench

int main(int argc, char** argv) { return ashlar::bench::main_of(argc, argv); }
