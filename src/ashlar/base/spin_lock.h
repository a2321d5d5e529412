// A short lock, never held over a call-out: a heap's, a replay's.
//
// Purpose: a hit costs two of these; a std::mutex costs twice as much (design: "What the parts
// cost"). Critical sections are bounded (C18: no device call, no callback, no wait inside), so
// waiters spin a little and then yield.
// Thread safety: any thread. Not recursive.
//
// Invariants, checked in builds with assertions:
//   C18  while a thread holds any SpinLock it makes no device call; a thread-local count of held
//        locks lets the driver wrapper check that at every call;
//   C31  between taking a lock and letting it go a thread takes at most kLockStepsMax steps
//        (step_count.h).
#pragma once

#include <atomic>
#include <thread>

#include <ashlar/base/assert.h>
#include <ashlar/base/step_count.h>
#include <ashlar/base/thread_annotations.h>

namespace ashlar::inline v0 {

#if ASHLAR_ASSERTIONS
/// How many spin locks this thread holds (C18).
inline thread_local int spin_locks_held = 0;
#endif

class ASHLAR_CAPABILITY("spin lock") SpinLock {
 public:
  void lock() noexcept ASHLAR_ACQUIRE() {
    while (locked_.exchange(true, std::memory_order_acquire)) wait();
    count_held(+1);
  }
  bool try_lock() noexcept ASHLAR_TRY_ACQUIRE(true) {
    const bool locked = !locked_.exchange(true, std::memory_order_acquire);
    if (locked) count_held(+1);
    return locked;
  }
  void unlock() noexcept ASHLAR_RELEASE() {
    count_held(-1);
    locked_.store(false, std::memory_order_release);
  }
  /// Lets go of the lock, and takes it again once a thread that waits has had the time to take it:
  /// between two slices of a long walk (C31). What the lock guards may have changed meanwhile.
  void let_others_in() noexcept ASHLAR_REQUIRES(this) {
    unlock();
    give_way();
    lock();
  }
  /// The time that a waiting thread needs to see that a lock is free.
  static void give_way() noexcept {
    for (unsigned i = 0; i < kSpinsBeforeYield; ++i) pause();
  }

 private:
  static void count_held([[maybe_unused]] int change) noexcept {
#if ASHLAR_ASSERTIONS
    if (spin_locks_held == 0) lock_steps = 0;
    spin_locks_held += change;
    ASHLAR_ASSERT(spin_locks_held >= 0, "C18: this thread unlocks a lock that it does not hold");
    ASHLAR_ASSERT(lock_steps <= kLockStepsMax, "C31: too much work under a lock");
#endif
  }
  [[gnu::cold]] void wait() noexcept {
    for (unsigned spins = 0; locked_.load(std::memory_order_relaxed); ++spins) {
      if (spins < kSpinsBeforeYield) {
        pause();
      } else {
        std::this_thread::yield();
      }
    }
  }
  static void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
  }

  static constexpr unsigned kSpinsBeforeYield = 64;
  std::atomic<bool> locked_{false};
};

/// Holds a SpinLock for a scope.
class ASHLAR_SCOPED_CAPABILITY Guard {
 public:
  explicit Guard(SpinLock& lock) noexcept ASHLAR_ACQUIRE(lock) : lock_(lock) { lock_.lock(); }
  ~Guard() ASHLAR_RELEASE() { lock_.unlock(); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  SpinLock& lock_;
};

}  // namespace ashlar::inline v0
