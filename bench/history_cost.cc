// What a history costs: a free and an allocation with it off, on, and with a recorder; and snapshots of many
// blocks with and without one. Prints a line of figures for ci/figures/history.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <ashlar/ashlar.h>

namespace ashlar::bench {
namespace {

constexpr DeviceId kDevice{0};
constexpr unsigned kRuns = 9;
constexpr unsigned kPairs = 100'000;
constexpr unsigned kBlocks = 100'000;

/// Costs nothing, so that what is measured is the asking.
class ConstantRecorder final : public ContextRecorder {
 public:
  ContextId gather() noexcept override { return ContextId{1}; }
};

double ns_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
}

template <class F>
double median_ns(F&& f) {
  std::vector<double> taken;
  for (unsigned run = 0; run < kRuns; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    f();
    taken.push_back(ns_since(begin));
  }
  std::nth_element(taken.begin(), taken.begin() + kRuns / 2, taken.end());
  return taken[kRuns / 2];
}

void stop_unless(bool is_ok) {
  if (is_ok) return;
  std::fprintf(stderr, "history_cost: a call failed\n");
  std::exit(1);
}

class World {
 public:
  World() : device_(kDevice) {
    device::Device* devices[] = {&device_};
    allocator_ = CachingAllocator::create(devices, Config{}).value();
    stream_ = device_.identify(HostDevice::kDefaultStream).value();
  }
  CachingAllocator& allocator() { return *allocator_; }
  double pair_ns() {
    const double all = median_ns([&] {
      for (unsigned i = 0; i < kPairs; ++i)
        static_cast<void>(allocator_->free(allocator_->allocate(1_MiB, stream_).value()));
    });
    return all / kPairs;
  }
  void keep_blocks() {
    for (unsigned i = 0; i < kBlocks; ++i)
      stop_unless(allocator_->allocate(4_KiB, stream_).is_ok());
  }

 private:
  HostDevice device_;
  std::unique_ptr<CachingAllocator> allocator_;
  Stream stream_;
};

int run() {
  World world;
  ConstantRecorder recorder;
  const double off = world.pair_ns();
  stop_unless(start_history(world.allocator(), kDevice).is_ok());
  const double on = world.pair_ns();
  stop_unless(stop_history(world.allocator(), kDevice).is_ok());
  stop_unless(
      start_history(world.allocator(), kDevice, {.recorder = &recorder, .has_free_contexts = true})
          .is_ok());
  const double with_contexts = world.pair_ns();
  stop_unless(stop_history(world.allocator(), kDevice).is_ok());

  world.keep_blocks();
  Snapshot snapshot;
  const double plain =
      median_ns([&] { stop_unless(world.allocator().snapshot(kDevice, &snapshot).is_ok()); });
  stop_unless(snapshot.blocks.size() >= kBlocks);
  stop_unless(start_history(world.allocator(), kDevice).is_ok());
  static_cast<void>(world.pair_ns());
  HistorySnapshot taken;
  const double with_history =
      median_ns([&] { stop_unless(history_snapshot(world.allocator(), kDevice, &taken).is_ok()); });
  std::printf("%.1f %.1f %.1f %.2f %.2f\n", off, on, with_contexts, plain / 1e6,
              with_history / 1e6);
  return 0;
}

}  // namespace
}  // namespace ashlar::bench

int main() { return ashlar::bench::run(); }
