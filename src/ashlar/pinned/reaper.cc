#include <ashlar/pinned/reaper.h>

#include <utility>

namespace ashlar::inline v0::pinned {

bool Reaper::start(std::uint32_t period_ms) noexcept {
  const MutexGuard guard(lock_);
  period_ = std::chrono::milliseconds(period_ms);
  return thread_.start<&Reaper::serve>(*this);
}

void Reaper::stop() noexcept {
  ServiceThread thread;
  {
    const MutexGuard guard(lock_);
    if (!thread_.is_running()) return;
    is_stopping_ = true;
    thread = std::exchange(thread_, {});
    changed_.notify_all();
  }
  thread.join();
}

void Reaper::serve() noexcept {
  for (;;) {
    {
      const MutexGuard guard(lock_);
      const auto end = std::chrono::steady_clock::now() + period_;
      while (!is_stopping_ && changed_.wait_until(lock_, end)) {
      }
      if (is_stopping_) return;
    }
    // A lost device and an announced capture leave the work to later calls.
    static_cast<void>(cache::process_events(allocator_, device_));
  }
}

}  // namespace ashlar::inline v0::pinned
