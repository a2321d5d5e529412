// Stress: threads that allocate, hand memory over, free, trim and read statistics at once, over real
// memory whose device is slow at the worst moments.
//
// Each owner writes its name into its memory and reads it back, so that bytes with two owners show.
// Thread safety: run() makes threads of its own.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ashlar/cache/caching_allocator.h>
#include <ashlar/device/forwarding_device.h>
#include <ashlar/device/host_device.h>

namespace ashlar::props {

/// A stress's only device.
inline constexpr DeviceId kStressDevice{0};

/// A device that waits a while in the calls during which H4 and H41 happened.
class LingeringDevice final : public device::ForwardingDevice {
 public:
  explicit LingeringDevice(device::HostDevice& host) : ForwardingDevice(host) {}

  Result<Address> segment_alloc(Bytes size) noexcept override {
    return linger(), ForwardingDevice::segment_alloc(size);
  }
  Status segment_free(Address base) noexcept override {
    const Status status = ForwardingDevice::segment_free(base);
    linger();  // the range may be somebody else's segment before the caller hears of it
    return status;
  }
  Status page_map(Address at, Bytes size, PageHandle page) noexcept override {
    return linger(), ForwardingDevice::page_map(at, size, page);
  }
  Status page_unmap(Address at, Bytes size) noexcept override {
    const Status status = ForwardingDevice::page_unmap(at, size);
    linger();
    return status;
  }
  Status event_record(EventHandle e, StreamHandle s) noexcept override {
    return linger(), ForwardingDevice::event_record(e, s);
  }

 private:
  static void linger() noexcept {
    for (int i = 0; i < 3; ++i) std::this_thread::yield();
  }
};

struct Held {
  Address address;
  Bytes size;
  std::uint64_t name;
};

/// Memory passed from thread to thread.
class Exchange {
 public:
  void put(const Held& held) {
    const std::lock_guard lock(mutex_);
    items_.push_back(held);
  }
  bool take(Held& held) {
    const std::lock_guard lock(mutex_);
    if (items_.empty()) return false;
    held = items_.back();
    items_.pop_back();
    return true;
  }

 private:
  std::mutex mutex_;
  std::vector<Held> items_;
};

/// Writes the owner's name at both ends; a second owner of either would overwrite it.
inline void sign(const Held& held) {
  std::memcpy(held.address.pointer(), &held.name, sizeof held.name);
  auto* end = static_cast<char*>(held.address.pointer()) + held.size.count() - sizeof held.name;
  std::memcpy(end, &held.name, sizeof held.name);
}
inline bool is_signed(const Held& held) {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::memcpy(&first, held.address.pointer(), sizeof first);
  std::memcpy(&last, static_cast<char*>(held.address.pointer()) + held.size.count() - sizeof last,
              sizeof last);
  return first == held.name && last == held.name;
}

class Stress {
 public:
  struct World {
    Bytes capacity;
    std::vector<unsigned> stream_of_thread;
    std::uint64_t seed = 1;
    int rounds = 1000;  ///< of each thread
    cache::Backing backing = cache::Backing::kSegments;
    std::uint32_t place_context = cache::Config{}.place_context;
  };

  explicit Stress(World world)
      : world_(std::move(world)), host_(kStressDevice, world_.capacity), device_(host_) {
    device::Device* devices[] = {&device_};
    cache::Config config;
    config.backing = world_.backing;
    config.place_context = world_.place_context;
    allocator_ = cache::CachingAllocator::create(devices, config).value();
    for (int i = 0; i < 4; ++i) streams_.push_back(host_.create_stream().value());
  }

  void run() {
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < world_.stream_of_thread.size(); ++t)
      threads.emplace_back([this, t] { work(t); });
    for (std::thread& thread : threads) thread.join();
  }

  /// After run(). Empty, or what is wrong. Frees everything.
  std::string find_imbalance() {
    std::string found;
    const auto expect = [&found](bool holds, const char* what) {
      if (!holds && found.empty()) found = what;
    };
    expect(overlaps_.load() == 0, "C2: two owners shared bytes");
    expect(surprises_.load() == 0, "an unexpected answer");
    Held held;
    while (exchange_.take(held)) {
      expect(is_signed(held), "C2: two owners shared bytes");
      expect(allocator_->free(held.address).is_ok(), "a free failed");
    }
    const char* const broken = allocator_->validate();
    expect(broken == nullptr, broken);
    const cache::DeviceStats stats = allocator_->stats(kStressDevice).value();
    expect(stats.allocations[0].current == 0, "C15: blocks are live after every free");
    expect(stats.allocations[0].increased == allocated_.load(), "C15: allocations are miscounted");
    expect(stats.requested_bytes[0].increased == requested_.load(), "C15: bytes are miscounted");
    expect(allocator_->trim(kStressDevice).is_ok(), "a trim failed");
    expect(allocator_->stats(kStressDevice).value().reserved_bytes[0].current == 0,
           "C14: bytes are reserved after a trim");
    expect(host_.ledger().segments == 0, "C14: segments are held after a trim");
    allocator_.reset();
    expect(host_.ledger().events == 0, "C14: events are held after the destructor");
    return found;
  }

 private:
  void work(unsigned thread) {
    std::mt19937 random(static_cast<unsigned>(thread * 7919 + world_.seed));
    std::vector<Held> mine;
    cache::Snapshot snapshot;
    for (int round = 0; round < world_.rounds; ++round) {
      const auto dice = static_cast<unsigned>(random() % 100);
      const Stream own = streams_[world_.stream_of_thread[thread]];
      const Stream other = streams_[random() % streams_.size()];
      if (dice < 50) {
        const Bytes size{random() % 8 == 0 ? 1 + random() % (24u << 20)
                                           : 16 + random() % (1u << 20)};
        allocate(mine, size, own, (std::uint64_t{thread} << 32) | static_cast<unsigned>(round));
      } else if (dice < 60 && !mine.empty()) {
        exchange_.put(mine.back());  // another thread will free it
        mine.pop_back();
      } else if (dice < 95) {
        Held held;
        if (random() % 3 == 0 && exchange_.take(held))
          release(held, other, static_cast<unsigned>(random()));
        else if (!mine.empty()) release_any(mine, random, other);
      } else if (dice < 97) {
        // Others go on using blocks: on a busy machine the trim's second may pass meanwhile.
        const Status trimmed = allocator_->trim(kStressDevice);
        if (!trimmed.is_ok() && trimmed.code() != Code::kNotReady) ++surprises_;
      } else if (dice < 99) {
        if (!allocator_->stats(kStressDevice).is_ok()) ++surprises_;
      } else if (!allocator_->snapshot(kStressDevice, &snapshot).is_ok()) {
        ++surprises_;
      }
    }
    for (const Held& held : mine) release(held, streams_[0], 0);
  }

  void allocate(std::vector<Held>& mine, Bytes size, const Stream& stream, std::uint64_t name) {
    const auto got = allocator_->allocate(std::max(size, 16_B), stream);
    if (!got.is_ok()) {
      if (got.code() != Code::kOutOfMemory) ++surprises_;
      return;
    }
    allocated_ += 1;
    requested_ += std::max(size, 16_B).count();
    mine.push_back({got.value(), std::max(size, 16_B), name});
    sign(mine.back());
  }
  void release_any(std::vector<Held>& mine, std::mt19937& random, const Stream& other) {
    std::swap(mine[random() % mine.size()], mine.back());
    release(mine.back(), other, static_cast<unsigned>(random()));
    mine.pop_back();
  }
  void release(const Held& held, const Stream& other, unsigned dice) {
    if (!is_signed(held)) ++overlaps_;
    if (dice % 4 == 1 && !allocator_->record_use(held.address, other).is_ok()) ++surprises_;
    const Status status =
        dice % 4 == 2 ? allocator_->free(held.address, other) : allocator_->free(held.address);
    if (!status.is_ok()) ++surprises_;
  }

  const World world_;
  device::HostDevice host_;
  LingeringDevice device_;
  std::unique_ptr<cache::CachingAllocator> allocator_;
  std::vector<Stream> streams_;
  Exchange exchange_;
  std::atomic<std::uint64_t> overlaps_{0};
  std::atomic<std::uint64_t> surprises_{0};
  std::atomic<std::uint64_t> allocated_{0};
  std::atomic<std::uint64_t> requested_{0};
};

}  // namespace ashlar::props
