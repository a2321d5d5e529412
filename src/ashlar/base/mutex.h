// A std::mutex that the compiler's thread-safety analysis knows.
//
// Purpose: for locks held over waits or device calls, where a SpinLock must not be used (C18).
// Thread safety: any thread. Not recursive.
#pragma once

#include <mutex>

#include <ashlar/base/thread_annotations.h>

namespace ashlar::inline v0 {

class ASHLAR_CAPABILITY("mutex") Mutex {
 public:
  void lock() ASHLAR_ACQUIRE() { mutex_.lock(); }
  bool try_lock() ASHLAR_TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  void unlock() ASHLAR_RELEASE() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
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
