// The lock of a device's slow rungs, and the role that its holder plays.
//
// Purpose: slow rungs of one device run one at a time. What they alone may touch (a heap's epoch
// marks) is guarded by the role `reclaiming`, not by one device's lock, because the compiler cannot
// follow which device a heap belongs to; the code asserts nothing more than that here.
// Thread safety: any thread. Lock order: this lock -> the heap list's -> one heap's -> the ledger's
// or the event pool's.
#pragma once

#include <mutex>

#include <ashlar/base/thread_annotations.h>

namespace ashlar::inline v0::cache {

class ASHLAR_CAPABILITY("role") ReclaimRole {};
/// Held, as far as the compiler's analysis goes, by whoever holds a ReclaimLock.
inline ReclaimRole reclaiming;

class ReclaimLock {
 public:
  // Not analysed inside: the role is not a lock that these could be seen to take.
  void lock() ASHLAR_ACQUIRE(reclaiming) ASHLAR_NO_THREAD_SAFETY_ANALYSIS { mutex_.lock(); }
  bool try_lock() ASHLAR_TRY_ACQUIRE(true, reclaiming) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    return mutex_.try_lock();
  }
  void unlock() ASHLAR_RELEASE(reclaiming) ASHLAR_NO_THREAD_SAFETY_ANALYSIS { mutex_.unlock(); }
  /// Waits until a holder that began earlier has let go.
  void wait_for_holder() ASHLAR_EXCLUDES(reclaiming) {
    lock();
    unlock();
  }

 private:
  std::mutex mutex_;
};

/// Holds a ReclaimLock for a scope.
class ASHLAR_SCOPED_CAPABILITY ReclaimGuard {
 public:
  explicit ReclaimGuard(ReclaimLock& lock) ASHLAR_ACQUIRE(reclaiming) : lock_(lock) {
    lock_.lock();
  }
  ~ReclaimGuard() ASHLAR_RELEASE() { lock_.unlock(); }
  ReclaimGuard(const ReclaimGuard&) = delete;
  ReclaimGuard& operator=(const ReclaimGuard&) = delete;

 private:
  ReclaimLock& lock_;
};

}  // namespace ashlar::inline v0::cache
