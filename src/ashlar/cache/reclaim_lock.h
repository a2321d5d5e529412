// The reclaim lock of a device, and the role that its holder has in the lock analysis.
//
// Purpose: steal, reclaim, trim and retire_stream of one device run one at a time. What they alone
// may touch (a heap's epoch marks) is guarded by the role `reclaiming`, not by one device's lock,
// because the compiler cannot follow which device a heap belongs to. So the analysis shows that
// some device's reclaim lock is held, not which.
// Thread safety: any thread. Lock order: this lock -> the heap list's -> one heap's -> the ledger's
// or the event pool's.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>

#include <ashlar/base/thread_annotations.h>

namespace ashlar::inline v0::cache {

class ASHLAR_CAPABILITY("role") ReclaimRole {};
/// In the compiler's analysis, the holder of any ReclaimLock holds this role.
inline ReclaimRole reclaiming;

class ReclaimLock {
 public:
  // Not analysed inside: the analysis cannot connect mutex_ with the role.
  void lock() ASHLAR_ACQUIRE(reclaiming) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    waiting_.fetch_add(1);
    mutex_.lock();
    waiting_.fetch_sub(1);
    turns_.fetch_add(1);
    begin_hold();
  }
  /// False also if this thread has it: an observer of mappings may run under the lock.
  bool try_lock() ASHLAR_TRY_ACQUIRE(true, reclaiming) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    if (holder_.load(std::memory_order_relaxed) == std::this_thread::get_id()) return false;
    const bool is_locked = mutex_.try_lock();
    if (is_locked) begin_hold();
    return is_locked;
  }
  void unlock() ASHLAR_RELEASE(reclaiming) ASHLAR_NO_THREAD_SAFETY_ANALYSIS { end_hold(); }
  /// Do threads wait in lock()?
  bool is_awaited() const { return waiting_.load() != 0; }
  /// Between two steps of long work: if threads wait in lock(), and this one has held the lock for
  /// kHoldMin, lets go of it, and takes it again after one of them has had it (C30). Returns whether
  /// it let go. What the lock guards may have changed then, and a capture may be announced.
  bool let_others_in() ASHLAR_REQUIRES(reclaiming) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    if (waiting_.load() == 0 || Clock::now() - held_since_ < kHoldMin) return false;
    const std::uint64_t turn = turns_.load();
    end_hold();
    while (waiting_.load() != 0 && turns_.load() == turn) std::this_thread::yield();
    lock();
    return true;
  }
  /// Waits until a holder that has the lock now has released it.
  void wait_for_holder() ASHLAR_EXCLUDES(reclaiming) {
    lock();
    unlock();
  }

 private:
  friend struct CachePeer;
  using Clock = std::chrono::steady_clock;
  /// A hand-over costs two changes of threads, on a busy machine much more than most steps.
  static constexpr auto kHoldMin = std::chrono::milliseconds(2);

  void begin_hold() ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    held_since_ = Clock::now();
    holder_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  }
  void end_hold() ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    holder_.store({}, std::memory_order_relaxed);
    mutex_.unlock();
  }

  std::mutex mutex_;
  std::atomic<std::thread::id> holder_;
  Clock::time_point held_since_ ASHLAR_GUARDED_BY(reclaiming);
  std::atomic<unsigned> waiting_{0};     ///< threads in lock() that do not have it yet
  std::atomic<std::uint64_t> turns_{0};  ///< how often lock() returned
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
