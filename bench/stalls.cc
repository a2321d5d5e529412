// How long a hit can take: at every growth of a table, and beside another thread's long operations.
//
//   ashlar_stalls
//
// The machine itself holds a thread up, by 50 to 100 us in most windows of 20 ms, for milliseconds at times.
// What the allocator adds is told from that in two ways. A growth of a table happens at the same
// allocation in every run, so the least time of each allocation over kRuns runs is the allocator's.
// A long operation is repeated, and the worst hit during each repetition noted: what the allocator
// does in each of them lies in the least and the median, beside those of as long a pause.
//
// The device costs nothing; the streams whose memory is walked never finish.
// Prints two tables, and with --rows=FILE the rows for ci/report. Exit 0 when it could measure.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <ashlar/ashlar.h>

#include "bench/adapters/adapter.h"
#include "src/tool/null_device.h"

namespace ashlar::bench {
namespace {

using Clock = std::chrono::steady_clock;

double us_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

/// No event of it is ever complete.
class BusyDevice : public tool::NullDevice {
 public:
  Status event_query(EventHandle) noexcept override { return {Code::kNotReady, "busy"}; }
};

/// An allocator of its own with a device of its own.
template <class DeviceType>
struct World {
  World() {
    device::Device* devices[] = {&device};
    auto made = cache::CachingAllocator::create(devices, cache::Config{});
    if (!made.is_ok()) give_up("stalls", made.status().why());
    allocator = std::move(made).value();
  }
  Address allocate(Bytes size, std::uint64_t stream) {
    const Result<Address> got = allocator->allocate(size, device.stream(stream));
    if (!got.is_ok()) give_up("stalls", got.status().why());
    return got.value();
  }
  void free(Address address) {
    if (!allocator->free(address).is_ok()) give_up("stalls", "a free failed");
  }

  DeviceType device;
  std::unique_ptr<cache::CachingAllocator> allocator;
};

// Growth: blocks up to 2^20 and a few, one after another, never freed.

constexpr std::size_t kBlocks = 1'100'000;
constexpr unsigned kRuns = 7;
/// A segment of the small pool has so many: the first of each is a miss, and asks the driver.
constexpr std::size_t kBlocksPerSegment = 4096;

/// The longest of the hits' least times, in us.
double worst_growth() {
  std::vector<double> least(kBlocks, 1e9);
  for (unsigned run = 0; run < kRuns; ++run) {
    World<tool::NullDevice> world;
    for (double& time : least) {
      const auto begin = Clock::now();
      world.allocate(512_B, 0);
      time = std::min(time, us_since(begin));
    }
  }
  std::printf("the ten longest allocations of %zu, each the least of %u runs:\n", kBlocks, kRuns);
  std::vector<std::size_t> order(kBlocks);
  for (std::size_t i = 0; i < kBlocks; ++i) order[i] = i;
  std::partial_sort(order.begin(), order.begin() + 10, order.end(),
                    [&](std::size_t a, std::size_t b) { return least[a] > least[b]; });
  for (unsigned i = 0; i < 10; ++i) {
    std::printf("  number %8zu %8.1f us%s\n", order[i], least[order[i]],
                order[i] % kBlocksPerSegment == 0 ? "  (a miss)" : "");
  }
  double worst = 0;
  for (std::size_t i = 0; i < kBlocks; ++i) {
    if (i % kBlocksPerSegment != 0) worst = std::max(worst, least[i]);
  }
  return worst;
}

// Beside long operations.

/// Hits on one stream by a thread of its own, and the longest of them.
class Hits {
 public:
  explicit Hits(World<BusyDevice>& world) : thread_([this, &world] { run(world); }) {}
  ~Hits() {
    stop_ = true;
    thread_.join();
  }
  Hits(const Hits&) = delete;
  Hits& operator=(const Hits&) = delete;
  /// The longest hit since the last call, in us.
  double take_worst() { return worst_.exchange(0); }

 private:
  void run(World<BusyDevice>& world) {
    while (!stop_) {
      const auto begin = Clock::now();
      world.free(world.allocate(512_B, 0));
      const double time = us_since(begin);
      if (time > worst_) worst_ = time;
    }
  }

  std::atomic<bool> stop_{false};
  std::atomic<double> worst_{0};
  std::thread thread_;
};

double quantile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
}

/// Returns the median of the worst hits.
double print_operation(Hits& hits, const char* what, unsigned times,
                       const std::function<void()>& operation) {
  std::vector<double> worst, took;
  for (unsigned tries = 0; worst.size() < times && tries < 20 * times; ++tries) {
    hits.take_worst();
    const auto begin = Clock::now();
    operation();
    const double time = us_since(begin);
    const double worst_hit = hits.take_worst();
    if (worst_hit == 0) continue;  // on a busy machine: the other thread did not run
    took.push_back(time);
    worst.push_back(worst_hit);
  }
  if (worst.empty()) give_up("stalls", "the two threads never ran together");
  std::printf("  %-44s %10.0f us   worst hit: least %6.0f, median %6.0f us\n", what,
              quantile(took, 0.5), quantile(worst, 0), quantile(worst, 0.5));
  return quantile(worst, 0.5);
}

/// Returns the largest of the medians.
double print_operations(unsigned free_blocks) {
  World<BusyDevice> world;
  std::vector<Address> blocks(std::size_t{2} * free_blocks);
  for (Address& block : blocks) block = world.allocate(4096_B, 0);
  for (std::size_t i = 0; i < blocks.size(); i += 2) world.free(blocks[i]);
  Hits hits(world);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  std::printf("a busy stream with %u free blocks between live ones, while another thread does:\n",
              free_blocks);
  const auto spin = [](double us) {
    return [us] {
      const auto begin = Clock::now();
      while (us_since(begin) < us) {
      }
    };
  };
  std::uint64_t next_stream = 2;
  cache::Snapshot snapshot;
  double worst = 0;
  const auto measure = [&](const char* what, unsigned times,
                           const std::function<void()>& operation) {
    worst = std::max(worst, print_operation(hits, what, times, operation));
  };
  measure("the first allocation of a stream", 200, [&] { world.allocate(4096_B, next_stream++); });
  measure("a miss", 200, [&] { world.allocate(1_MiB, 1); });
  measure("statistics", 200, [&] { static_cast<void>(world.allocator->stats(DeviceId{0})); });
  print_operation(hits, "nothing, as long", 200, spin(20));
  print_operation(hits, "a snapshot", 20,
                  [&] { static_cast<void>(world.allocator->snapshot(DeviceId{0}, &snapshot)); });
  print_operation(hits, "the largest free block of another stream", 20, [&] {
    static_cast<void>(world.allocator->largest_free_block(world.device.stream(1)));
  });
  print_operation(hits, "nothing for 10 ms", 20, spin(10'000));
  return worst;
}

void write_row(std::FILE* rows, const char* figure, double value, double target) {
  std::fprintf(rows,
               "{\"figure\":\"%s\",\"value\":\"%.1f us\",\"target\":\"<= %.0f us\",\"met\":%s,"
               "\"command\":\"bench/stalls\"}\n",
               figure, value, target, value <= target ? "true" : "false");
}

int run(int argc, char** argv) {
  std::FILE* rows = nullptr;
  if (argc == 2 && std::strncmp(argv[1], "--rows=", 7) == 0) rows = std::fopen(argv[1] + 7, "w");
  if (argc > 2 || (argc == 2 && rows == nullptr)) {
    std::fprintf(stderr, "usage: ashlar_stalls [--rows=FILE]\n");
    return 2;
  }
  const double growth = worst_growth();
  double beside = 0;
  for (const unsigned free_blocks : {1000u, 10'000u, 100'000u})
    beside = std::max(beside, print_operations(free_blocks));
  constexpr double kTargetUs = 50;
  if (rows != nullptr) {
    write_row(rows, "longest hit at a table's growth, up to 1.1 million blocks, least of 7 runs",
              growth, kTargetUs);
    write_row(rows, "worst hit beside a miss, a new stream or statistics, median of 200", beside,
              kTargetUs);
    std::fclose(rows);
  }
  return 0;
}

}  // namespace
}  // namespace ashlar::bench

int main(int argc, char** argv) { return ashlar::bench::run(argc, argv); }
