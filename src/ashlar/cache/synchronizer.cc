#include <ashlar/cache/synchronizer.h>

#include <algorithm>
#include <thread>
#include <utility>

namespace ashlar::inline v0::cache {
namespace {
/// Below what C30 allows a call beyond its deadline.
constexpr std::uint32_t kThreadWaitMinMs = 1;
}  // namespace

void Synchronizer::stop() noexcept {
  ServiceThread thread;
  {
    const MutexGuard guard(lock_);
    if (!thread_.is_running()) return;
    is_stopping_ = true;
    thread = std::exchange(thread_, {});
  }
  changed_.notify_all();
  thread.join();
}

Status Synchronizer::run(std::uint32_t timeout_ms) noexcept {
  return run(timeout_ms, std::max(timeout_ms, kThreadWaitMinMs));
}

Status Synchronizer::ask() noexcept { return run(0, 0); }

Status Synchronizer::run(std::uint32_t timeout_ms, std::uint32_t thread_timeout_ms) noexcept {
  const std::uint64_t sequence = next_sequence();
  Status done = timeout_ms == device::kWaitForever ? driver_.synchronize()
                                                   : driver_.synchronize_for(timeout_ms);
  if (done.code() == Code::kUnsupported) done = run_on_thread(sequence, thread_timeout_ms);
  if (done.is_ok()) publish(sequence);
  return done;
}

void Synchronizer::publish(std::uint64_t sequence) noexcept {
  std::uint64_t known = synced_.load(std::memory_order_relaxed);
  while (known < sequence &&
         !synced_.compare_exchange_weak(known, sequence, std::memory_order_acq_rel)) {
  }
}

Status Synchronizer::run_on_thread(std::uint64_t sequence, std::uint32_t timeout_ms) noexcept {
  const MutexGuard guard(lock_);
  if (!thread_.is_running() && !thread_.start<&Synchronizer::serve>(*this))
    return {Code::kUnsupported, "no thread could be made to synchronise on"};
  wanted_ = std::max(wanted_, sequence);
  changed_.notify_all();
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  bool is_in_time = true;
  while (answered_ < sequence && is_in_time) is_in_time = changed_.wait_until(lock_, end);
  if (answered_ < sequence) return {Code::kNotReady, "the device is still at work"};
  return answer_;
}

void Synchronizer::let_enter() noexcept {
  constexpr auto kEntered = std::chrono::milliseconds(10);
  std::chrono::steady_clock::time_point until;
  {
    const MutexGuard guard(lock_);
    if (!thread_.is_running() || wanted_ <= answered_) return;
    until = began_ + kEntered;
  }
  std::this_thread::sleep_until(until);
}

void Synchronizer::serve() noexcept {
  for (;;) {
    std::uint64_t asked = 0;
    {
      const MutexGuard guard(lock_);
      while (!is_stopping_ && wanted_ <= answered_) changed_.wait(lock_);
      if (is_stopping_) return;
      asked = wanted_;
      began_ = std::chrono::steady_clock::now();
    }
    // A capture forbids it (C9): whoever wants it asks again after the capture.
    const Status done = captures_.load() == 0 ? driver_.synchronize()
                                              : Status{Code::kNotReady, "a capture is underway"};
    if (done.is_ok()) publish(asked);
    const MutexGuard guard(lock_);
    answer_ = done;
    answered_ = asked;
    changed_.notify_all();
  }
}

}  // namespace ashlar::inline v0::cache
