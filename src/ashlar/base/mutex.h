// A std::mutex that the compiler's thread-safety analysis knows.
//
// Purpose: for locks held over waits or device calls, where a SpinLock must not be used (C18).
// Thread safety: any thread. Not recursive.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include <ashlar/base/thread_annotations.h>

namespace ashlar::inline v0 {

class ASHLAR_CAPABILITY("mutex") Mutex {
 public:
  void lock() ASHLAR_ACQUIRE() { mutex_.lock(); }
  bool try_lock() ASHLAR_TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  void unlock() ASHLAR_RELEASE() { mutex_.unlock(); }

 private:
  friend class Condition;
  std::mutex mutex_;
};

/// A condition that a thread waits for with a Mutex held. Not std::condition_variable_any, whose
/// constructor allocates.
class Condition {
 public:
  /// Wakes every thread that waits.
  void notify_all() noexcept { changed_.notify_all(); }
  /// Lets the mutex go until it is woken, or for no reason, and takes it again.
  void wait(Mutex& mutex) ASHLAR_REQUIRES(mutex) {
    std::unique_lock<std::mutex> held(mutex.mutex_, std::adopt_lock);
    changed_.wait(held);
    held.release();
  }
  /// The same, at the latest until `end`. False if that is over.
  bool wait_until(Mutex& mutex, std::chrono::steady_clock::time_point end) ASHLAR_REQUIRES(mutex) {
    std::unique_lock<std::mutex> held(mutex.mutex_, std::adopt_lock);
    const bool is_in_time = changed_.wait_until(held, end) == std::cv_status::no_timeout;
    held.release();
    return is_in_time;
  }

 private:
  std::condition_variable changed_;
};

/// Holds a Mutex for a scope.
class ASHLAR_SCOPED_CAPABILITY MutexGuard {
 public:
  explicit MutexGuard(Mutex& mutex) ASHLAR_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexGuard() ASHLAR_RELEASE() { mutex_.unlock(); }
  MutexGuard(const MutexGuard&) = delete;
  MutexGuard& operator=(const MutexGuard&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace ashlar::inline v0
