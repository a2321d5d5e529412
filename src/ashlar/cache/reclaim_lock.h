// The reclaim lock of a device, and the role that its holder has in the lock analysis.
//
// Purpose: steal, reclaim, trim and retire_stream of one device run one at a time. What they alone
// may touch (a heap's epoch marks) is guarded by the role `reclaiming`, not by one device's lock,
// because the compiler cannot follow which device a heap belongs to. So the analysis shows that
// some device's reclaim lock is held, not which.
// Thread safety: any thread. Lock order: this lock -> the heap list's -> one heap's -> the ledger's
// or the event pool's.
#pragma once

#include <mutex>

#include <ashlar/base/thread_annotations.h>

namespace ashlar::inline v0::cache {

class ASHLAR_CAPABILITY("role") ReclaimRole {};
/// In the compiler's analysis, the holder of any ReclaimLock holds this role.
inline ReclaimRole reclaiming;

class ReclaimLock {
 public:
  // Not analysed inside: the analysis cannot connect mutex_ with the role.
  void lock() ASHLAR_ACQUIRE(reclaiming) ASHLAR_NO_THREAD_SAFETY_ANALYSIS { mutex_.lock(); }
  bool try_lock() ASHLAR_TRY_ACQUIRE(true, reclaiming) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    return mutex_.try_lock();
  }
  void unlock() ASHLAR_RELEASE(reclaiming) ASHLAR_NO_THREAD_SAFETY_ANALYSIS { mutex_.unlock(); }
  /// Waits until a holder that has the lock now has released it.
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
