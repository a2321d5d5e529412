// Threads that make every call of the caching allocator at once, over real memory at its limit.
//
// Imitates: a program whose threads train, capture graphs, keep pools, return to checkpoints, register memory and
// watch, all on one device. Each owner writes its name into its memory and reads it back, so that bytes with two
// owners show; at the end everything is freed and nothing may be left.
// Does not prove: that every interleaving was seen, nor what a real capture refuses (memory_pools_test.cc): the
// device of this computer captures nothing, so captures are only announced.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "props/cache/thread_stress.h"

namespace ashlar::cache {
namespace {

using props::Held;
using props::is_signed;
using props::LingeringDevice;
using props::sign;

constexpr DeviceId kDevice{0};
constexpr Bytes kCapacity = 64_MiB;
constexpr unsigned kThreads = 4;

/// What the threads share.
struct World {
  explicit World(Backing backing) : host(kDevice, kCapacity), device(host) {
    device::Device* devices[] = {&device};
    Config config;
    config.backing = backing;
    config.wait_ms = 20;
    allocator = CachingAllocator::create(devices, config).value();
    if (backing == Backing::kPages) {
      allocator->add_mapping_observer([this](const MappingEvent&) {
        DeviceStats stats;
        if (!allocator_is_ending && !allocator->stats(kDevice, &stats).is_ok())
          note("C24: a query in an observer failed");
      });
    }
    for (unsigned i = 0; i < kThreads; ++i) streams.push_back(host.create_stream().value());
  }
  void note(const std::string& what) {
    const std::lock_guard lock(mutex);
    if (wrong.empty()) wrong = what;
  }
  /// Notes any answer but ok and those named.
  void expect(const Status& status, const char* call, std::initializer_list<Code> others = {}) {
    if (status.is_ok() || std::find(others.begin(), others.end(), status.code()) != others.end())
      return;
    note(std::string(call) + ": " + code_name(status.code()));
  }

  device::HostDevice host;
  LingeringDevice device;
  std::atomic<bool> allocator_is_ending{false};
  std::unique_ptr<CachingAllocator> allocator;
  std::vector<Stream> streams;
  std::atomic<std::uint64_t> pools_served{0}, restores{0}, pins{0}, captures{0};
  std::mutex mutex;
  std::string wrong;
};

/// One thread. What it allocates from its pool, nobody else frees.
class Worker {
 public:
  Worker(World& world, unsigned thread)
      : world_(world),
        a_(*world.allocator),
        own_(world.streams[thread]),
        pool_{7, thread + 1u},
        thread_(thread),
        random_(thread * 77 + 1) {}

  void run(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      const auto dice = static_cast<std::uint32_t>(random_() % 100);
      if (dice < 42) allocate(&mine_, own_);
      else if (dice < 78) free_any(&mine_);
      else if (dice < 84) serve_pool();
      else if (dice < 87) return_to_checkpoint();
      else if (dice < 90) capture();
      else if (dice < 93) pin();
      else if (dice < 95) pass_by();
      else adjust(dice);
    }
    drop_pool();
    while (!mine_.empty()) free_any(&mine_);
  }

 private:
  void allocate(std::vector<Held>* to, const Stream& stream) {
    const Bytes size{random_() % 4 == 0 ? 16 + random_() % (6u << 20)
                                        : 16 + random_() % (64u << 10)};
    const auto got = a_.allocate(size, stream);
    world_.expect(got.status(), "allocate", {Code::kOutOfMemory, Code::kBusy});
    if (!got.is_ok()) return;
    to->push_back({got.value(), size, (std::uint64_t{thread_} << 40) | ++names_});
    sign(to->back());
  }
  void free_any(std::vector<Held>* from) {
    if (from->empty()) return;
    std::swap((*from)[random_() % from->size()], from->back());
    const Held held = from->back();
    from->pop_back();
    if (!is_signed(held)) world_.note("C2: two owners shared bytes");
    const Stream& other = world_.streams[random_() % kThreads];
    const auto dice = static_cast<std::uint32_t>(random_() % 6);
    if (dice == 0) world_.expect(a_.record_use(held.address, other), "record_use");
    world_.expect(dice == 1 ? a_.free(held.address, other) : a_.free(held.address), "free");
  }
  void serve_pool() {
    const Stream own = own_;
    const Status begun =
        a_.begin_pool(kDevice, pool_, [own](const Stream& each) { return each == own; });
    world_.expect(begun, "begin_pool");
    if (!begun.is_ok()) return;
    uses_ += 1;
    ++world_.pools_served;
    for (int i = 0; i < 4; ++i) allocate(&pooled_, own_);
    if (random_() % 2 == 0) free_any(&pooled_);
    world_.expect(a_.end_pool(kDevice, pool_), "end_pool");
    if (uses_ > 3) drop_pool();
  }
  /// What is live then stays so.
  void drop_pool() {
    mine_.insert(mine_.end(), pooled_.begin(), pooled_.end());
    pooled_.clear();
    for (; uses_ > 0; --uses_) world_.expect(a_.release_pool(kDevice, pool_), "release_pool");
  }
  void return_to_checkpoint() {
    if (uses_ == 0) return;
    const Result<PoolCheckpoint> made = a_.checkpoint_pool(kDevice, pool_);
    world_.expect(made.status(), "checkpoint_pool", {Code::kBusy});
    if (!made.is_ok()) return;
    const std::vector<Held> before = pooled_;
    for (int i = 0; i < 3; ++i) free_any(&pooled_);
    RestoredPool changed;
    const Status restored = a_.restore_pool(made.value(), &changed);
    world_.expect(restored, "restore_pool", {Code::kBusy, Code::kNotReady});
    if (!restored.is_ok()) return;
    ++world_.restores;
    pooled_ = before;
    if (changed.created.size() != before.size())
      world_.note("C11: other allocations than at the checkpoint");
    for (const Held& held : pooled_) {
      if (!is_signed(held)) world_.note("C11: the bytes are not kept");
    }
  }
  void capture() {
    const Status begun = a_.begin_capture(own_);
    world_.expect(begun, "begin_capture");
    if (!begun.is_ok()) return;
    ++world_.captures;
    for (int i = 0; i < 3; ++i) allocate(&mine_, own_);
    for (int i = 0; i < 2; ++i) free_any(&mine_);
    world_.expect(a_.end_capture(own_), "end_capture");
  }
  void pin() {
    if (mine_.empty()) return;
    const Held held = mine_[random_() % mine_.size()];
    const auto pinned = a_.pin(held.address);
    world_.expect(pinned.status(), "pin");
    if (!pinned.is_ok()) return;
    ++world_.pins;
    const auto generation = a_.backing_generation(held.address);
    for (int i = 0; i < 3; ++i) allocate(&mine_, own_);
    if (a_.backing_generation(held.address).value_or(0) != generation.value_or(1))
      world_.note("C21: a pinned range has other memory");
    if (!is_signed(held)) world_.note("C2: two owners shared bytes");
    world_.expect(a_.unpin(pinned.value()), "unpin");
  }
  /// A stream comes, works and goes.
  void pass_by() {
    const Stream passing = world_.host.create_stream().value();
    std::vector<Held> short_lived;
    for (int i = 0; i < 3; ++i) allocate(&short_lived, passing);
    while (!short_lived.empty()) free_any(&short_lived);
    world_.expect(a_.retire_stream(passing), "retire_stream", {Code::kNotFound});
    if (!world_.host.destroy_stream(passing.handle).is_ok()) world_.note("destroy_stream failed");
  }
  void adjust(std::uint32_t dice) {
    Snapshot snapshot;
    switch (dice) {
      case 95: return world_.expect(a_.trim(kDevice), "trim", {Code::kNotReady, Code::kBusy});
      case 96:
        return world_.expect(a_.make_room(kDevice, 8_MiB), "make_room",
                             {Code::kNotReady, Code::kBusy, Code::kOutOfMemory});
      case 97:
        return world_.expect(a_.set_memory_limit(kDevice, random_() % 2 == 0 ? 48_MiB : kCapacity),
                             "set_memory_limit");
      case 98: return world_.expect(a_.snapshot(kDevice, &snapshot), "snapshot", {Code::kBusy});
      default: break;
    }
    world_.expect(a_.stats(kDevice).status(), "stats");
    world_.expect(a_.largest_free_block(own_).status(), "largest_free_block");
    world_.expect(a_.reset_peak_stats(kDevice), "reset_peak_stats");
    if (!mine_.empty()) world_.expect(a_.info(mine_.back().address).status(), "info");
  }

  World& world_;
  CachingAllocator& a_;
  const Stream own_;
  const MemoryPoolId pool_;
  const unsigned thread_;
  std::mt19937 random_;
  std::uint64_t names_ = 0;
  int uses_ = 0;  ///< of the pool
  std::vector<Held> mine_;
  std::vector<Held> pooled_;
};

std::string run(Backing backing, int rounds) {
  World world(backing);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t)
    threads.emplace_back([&world, t, rounds] { Worker(world, t).run(rounds); });
  for (std::thread& each : threads) each.join();
  if (!world.wrong.empty()) return world.wrong;
  if (const char* const broken = world.allocator->validate()) return broken;
  world.expect(world.allocator->trim(kDevice), "the last trim");
  const DeviceStats stats = world.allocator->stats(kDevice).value();
  if (stats.allocations[0].current != 0) world.note("C15: blocks are live after every free");
  if (stats.reserved_bytes[0].current != 0) world.note("C14: bytes are reserved after a trim");
  const device::HostLedger left = world.host.ledger();
  if (left.segments + left.page_handles + left.mappings != 0)
    world.note("C14: the device's memory is held after a trim");
  if (world.pools_served * world.restores * world.pins * world.captures == 0)
    world.note("the test did too little");
  world.allocator_is_ending = true;
  world.allocator.reset();
  if (world.host.ledger().events != 0) world.note("C14: events are held after the destructor");
  return world.wrong;
}

TEST(EveryCallThreads, NoCallDisturbsAnothersMemoryOfPages) {
  EXPECT_EQ(run(Backing::kPages, 1500), "");
}

TEST(EveryCallThreads, NoCallDisturbsAnothersMemoryOfSegments) {
  EXPECT_EQ(run(Backing::kSegments, 1500), "");
}

}  // namespace
}  // namespace ashlar::cache
