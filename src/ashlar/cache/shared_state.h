// What the devices of one allocator share.
//
// Thread safety: fields say; observers are added before other threads use the allocator.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include <ashlar/cache/caching_allocator.h>
#include <ashlar/cache/driver.h>
#include <ashlar/cache/page_map.h>
#include <ashlar/cache/under_way.h>
#include <ashlar/cache/unrecorded_uses.h>

namespace ashlar::inline v0::cache {

class DeviceCache;
class StreamHeap;

/// The bodies of conditionals that are captured now.
struct CapturedBodies {
  std::atomic<unsigned> count{0};  ///< counted in SharedState::captures too
  /// of one that is over, the stream that captured it: its uses become its parent's now; else nullptr
  std::atomic<StreamHeap*> ended{nullptr};
};

/// Call-outs to the user's code that run now.
struct RunningCallOuts {
  std::atomic<unsigned> observers{0};  ///< so that only then a thread-local is read (C24)
  /// filters of memory pools and observers of mappings, which may run under a lock; counted as observers too
  std::atomic<unsigned> filters{0};
};

/// What comes under addresses, and who is told (mapping_observers.h).
struct Mappings {
  /// A number for memory that comes under addresses: no other memory has had it, on whatever device, and
  /// all that came before has a lower one.
  std::uint64_t next_generation() noexcept {
    return generations.fetch_add(1, std::memory_order_relaxed) + 1;
  }

  std::vector<CachingAllocator::MappingObserver> observers;
  std::atomic<std::uint64_t> generations{0};  ///< given so far
};

/// What leads allocations and frees away from their shortest way, of all devices.
struct Detours {
  std::atomic<unsigned> count{0};   ///< routes and recorders: a hit reads this alone
  std::atomic<unsigned> routes{0};  ///< that send allocations to memory pools
  /// histories that ask a recorder at each free; 1 more where freed memory goes back at once (Config::caches)
  std::atomic<unsigned> frees{0};
};

struct SharedState {
  explicit SharedState(const Config& with) : config(with), pages(!with.caches) {
    if (!with.caches) detours.frees.store(1, std::memory_order_relaxed);
  }
  /// Is a capture announced, on whatever device? What it forbids it forbids to threads (D6).
  bool is_capturing() const noexcept { return captures.load(std::memory_order_acquire) != 0; }

  const Config config;
  PageMap pages;
  Driver* drivers = nullptr;  ///< of all devices: the driver's unloading is told to all at once
  /// by device id; set before other threads use the allocator
  const std::unique_ptr<DeviceCache>* caches = nullptr;
  UnrecordedUses unrecorded;
  std::atomic<unsigned> captures{0};             ///< streams that capture now, over all devices
  std::atomic<std::uint64_t> captures_begun{0};  ///< ever; raised after `captures`
  CapturedBodies bodies;
  /// waits and synchronisations that may be under way: an announcement of a capture lets them end
  UnderWay<std::atomic<unsigned>> blocking_calls;
  /// threads that may be waiting for an event that is not theirs: none is destroyed meanwhile
  std::atomic<unsigned> event_waiters{0};
  Detours detours;
  RunningCallOuts running;
  std::vector<CachingAllocator::FreeMemoryCallback> callbacks;
  std::vector<CachingAllocator::OutOfMemoryObserver> observers;
  Mappings mappings;
};

/// Counts a wait or a synchronisation. It is raised before is_permitted() reads whether a capture is
/// announced, and an announcement reads it after it is made: one of the two sees the other (C9).
class BlockingCallScope {
 public:
  explicit BlockingCallScope(SharedState& shared) noexcept
      : shared_(shared), phase_(shared.blocking_calls.begin()) {}
  ~BlockingCallScope() { shared_.blocking_calls.end(phase_); }
  BlockingCallScope(const BlockingCallScope&) = delete;
  BlockingCallScope& operator=(const BlockingCallScope&) = delete;

  bool is_permitted() const noexcept { return shared_.captures.load() == 0; }

 private:
  SharedState& shared_;
  const unsigned phase_;
};

}  // namespace ashlar::inline v0::cache
