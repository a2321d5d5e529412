// What the devices of one allocator share.
//
// Thread safety: fields say; observers are added before other threads use the allocator.
#pragma once

#include <atomic>
#include <vector>

#include <ashlar/cache/caching_allocator.h>
#include <ashlar/cache/driver.h>
#include <ashlar/cache/page_map.h>

namespace ashlar::inline v0::cache {

struct SharedState {
  explicit SharedState(const Config& with) : config(with) {}
  /// Is a capture announced, on whatever device? What it forbids it forbids to threads (D6).
  bool is_capturing() const noexcept { return captures.load(std::memory_order_acquire) != 0; }

  const Config config;
  PageMap pages;
  Driver* drivers = nullptr;  ///< of all devices: the driver's unloading is told to all at once
  std::atomic<unsigned> captures{0};  ///< streams that capture now, over all devices
  /// threads that may be waiting for an event that is not theirs: none is destroyed meanwhile
  std::atomic<unsigned> event_waiters{0};
  std::atomic<unsigned> observers_running{0};  ///< so that only then a thread-local is read (C24)
  std::vector<CachingAllocator::FreeMemoryCallback> callbacks;
  std::vector<CachingAllocator::OutOfMemoryObserver> observers;
};

}  // namespace ashlar::inline v0::cache
