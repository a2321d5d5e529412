// Driver events kept for reuse, one pool per device (row DEV-6; an event is only ever used on its own device, H3 and H7).
//
// Thread safety: any thread. Never allocates: beyond its fixed size, events go back to the driver.
#pragma once

#include <array>

#include <ashlar/cache/driver.h>
#include <ashlar/cache/spin_lock.h>

namespace ashlar {
inline namespace v0 {

class EventPool {
 public:
  explicit EventPool(Driver& driver) noexcept : driver_(driver) {}

  /// A pooled event, else a new one.
  Result<EventHandle> acquire() noexcept {
    {
      const Guard guard(lock_);
      if (count_ > 0) return pooled_[--count_];
    }
    return driver_.event_create();
  }
  /// Takes back an event nobody waits for any more.
  void give(EventHandle event) noexcept {
    {
      const Guard guard(lock_);
      if (count_ < pooled_.size()) {
        pooled_[count_++] = event;
        return;
      }
    }
    static_cast<void>(driver_.event_destroy(event));
  }
  /// Destroys what is pooled.
  void clear() noexcept {
    while (count_ > 0) static_cast<void>(driver_.event_destroy(pooled_[--count_]));
  }

 private:
  static constexpr unsigned kPooledMax = 512;
  Driver& driver_;
  SpinLock lock_;
  std::array<EventHandle, kPooledMax> pooled_;
  unsigned count_ = 0;
};

}  // namespace v0
}  // namespace ashlar
