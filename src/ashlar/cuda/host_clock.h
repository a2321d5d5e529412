// HostClock: the host's time, by which the bounded waits for a GPU end.
//
// Purpose: a bounded wait asks and sleeps in turns; a simulated machine decides how the time passes meanwhile.
// Thread safety: every member from any thread.
#pragma once

#include <cstdint>

#include <ashlar/base/export.h>

namespace ashlar::inline v0::cuda {

/// The machine's own steady clock.
class ASHLAR_API HostClock {
 public:
  virtual ~HostClock() = default;
  /// Nanoseconds from an arbitrary start; never falls.
  virtual std::uint64_t now_ns() noexcept;
  /// Blocks the calling thread for about that time.
  virtual void sleep_ns(std::uint64_t duration_ns) noexcept;
};

}  // namespace ashlar::inline v0::cuda
