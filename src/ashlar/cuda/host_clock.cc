#include <ashlar/cuda/host_clock.h>

#include <chrono>
#include <thread>

namespace ashlar::inline v0::cuda {

std::uint64_t HostClock::now_ns() noexcept {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

void HostClock::sleep_ns(std::uint64_t duration_ns) noexcept {
  std::this_thread::sleep_for(std::chrono::nanoseconds(duration_ns));
}

}  // namespace ashlar::inline v0::cuda
