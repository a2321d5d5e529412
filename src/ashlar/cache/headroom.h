// Memory of a device that is left to others (Config::headroom, row DEV-23).
//
// Thread safety: any thread. Where a headroom is set, one thread at a time asks how much is free and takes
// memory: two that ask at once would each count on what the other takes.
#pragma once

#include <ashlar/base/mutex.h>
#include <ashlar/cache/config.h>
#include <ashlar/cache/driver.h>

namespace ashlar::inline v0::cache {

class Headroom {
 public:
  Headroom(Driver& driver, const Config& config) noexcept
      : driver_(driver), bytes_(config.headroom) {}

  /// Calls take(), which takes `size` bytes of the device, if the headroom is left then. kOutOfMemory if
  /// not; an error of the driver is passed on. Cost: a device call, if a headroom is set.
  template <class R, class Take>
  R within(Bytes size, Take&& take) noexcept ASHLAR_EXCLUDES(lock_) {
    if (bytes_ == Bytes{}) return take();
    const MutexGuard lock(lock_);
    const Result<device::MemoryInfo> memory = driver_.memory_info();
    if (!memory.is_ok()) return memory.status();
    const Bytes free = memory.value().free;
    ASHLAR_REQUIRE(free >= size && free - size >= bytes_, Code::kOutOfMemory,
                   "the device would be left with less free memory than headroom_mb");
    return take();
  }

 private:
  Driver& driver_;
  const Bytes bytes_;
  Mutex lock_;
};

}  // namespace ashlar::inline v0::cache
