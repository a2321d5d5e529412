#include <ashlar/pinned/reaper.h>

#include <ashlar/base/service_thread.h>

namespace ashlar::inline v0::pinned {

bool Reaper::start(std::uint32_t period_ms) noexcept {
  const MutexGuard guard(lock_);
  period_ = std::chrono::milliseconds(period_ms);
  is_running_ = start_service_thread(&thread_, thread_main, this);
  return is_running_;
}

void Reaper::stop() noexcept {
  pthread_t thread{};
  {
    const MutexGuard guard(lock_);
    if (!is_running_) return;
    is_running_ = false;
    is_stopping_ = true;
    thread = thread_;
    changed_.notify_all();
  }
  static_cast<void>(pthread_join(thread, nullptr));
}

std::uint64_t Reaper::rounds() const noexcept {
  const MutexGuard guard(lock_);
  return rounds_;
}

void* Reaper::thread_main(void* self) noexcept {
  static_cast<Reaper*>(self)->serve();
  return nullptr;
}

void Reaper::serve() noexcept {
  for (;;) {
    {
      const MutexGuard guard(lock_);
      const auto end = std::chrono::steady_clock::now() + period_;
      while (!is_stopping_ && changed_.wait_until(lock_, end)) {
      }
      if (is_stopping_) return;
      ++rounds_;
    }
    // A lost device and an announced capture leave the work to later calls.
    static_cast<void>(cache::process_events(allocator_, device_));
  }
}

}  // namespace ashlar::inline v0::pinned
