// Memory of a device that is left to others (Config::headroom, row DEV-23).
//
// Thread safety: any thread.
#pragma once

#include <ashlar/cache/config.h>
#include <ashlar/cache/driver.h>

namespace ashlar::inline v0::cache {

/// Ok if the device has the headroom left after a growth by `size`. kOutOfMemory if not; an error of the
/// driver is passed on. Cost: a device call, if a headroom is set.
inline Status check_headroom(Driver& driver, const Config& config, Bytes size) noexcept {
  if (config.headroom == Bytes{}) return Status::ok();
  const Result<device::MemoryInfo> memory = driver.memory_info();
  if (!memory.is_ok()) return memory.status();
  const Bytes free = memory.value().free;
  ASHLAR_REQUIRE(free >= size && free - size >= config.headroom, Code::kOutOfMemory,
                 "the device would be left with less free memory than headroom_mb");
  return Status::ok();
}

}  // namespace ashlar::inline v0::cache
