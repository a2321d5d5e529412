// Device synchronisations with a time limit: what answers for work that no event tells of.
//
// Purpose: a use whose event could not be recorded, and the work of a stream destroyed without
// notice, are known complete only after a synchronisation of the whole device. A driver's own call
// has no time limit; where the Device offers none either, it runs on a thread of ours, made when it
// is first needed, and callers wait for that thread no longer than they may (C30).
// Thread safety: any thread.
//
// Invariant:
//   (1) everything that was enqueued before next_sequence() returned a number up to synced() is
//       complete.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include <ashlar/base/mutex.h>
#include <ashlar/base/service_thread.h>
#include <ashlar/cache/driver.h>

namespace ashlar::inline v0::cache {

class Synchronizer {
 public:
  /// `captures`: the number of captures announced.
  Synchronizer(Driver& driver, const std::atomic<unsigned>& captures) noexcept
      : driver_(driver), captures_(captures) {}
  ~Synchronizer() { stop(); }
  Synchronizer(const Synchronizer&) = delete;
  Synchronizer& operator=(const Synchronizer&) = delete;

  /// The device's order of recordings and synchronisations: rises with every call.
  std::uint64_t next_sequence() noexcept {
    return sequence_.fetch_add(1, std::memory_order_acq_rel);
  }
  /// Is the work complete that was enqueued before next_sequence() returned `sequence`?
  bool is_covered(std::uint64_t sequence) const noexcept {
    return sequence <= synced_.load(std::memory_order_acquire);
  }
  /// Synchronises for at most `timeout_ms`. Ok: all work enqueued before this call is covered.
  /// kNotReady: not known by then; a synchronisation goes on in the background where it can, so
  /// that asking again finds out. Blocks; no lock may be held. Not during a capture.
  /// Where a thread of ours has to ask, 1 ms is waited at least: for an idle device's answer that
  /// thread needs a core, and on a busy machine that takes time.
  Status run(std::uint32_t timeout_ms) noexcept ASHLAR_EXCLUDES(lock_);
  /// The same without any wait: where a thread has to ask, a later call learns the answer.
  Status ask() noexcept ASHLAR_EXCLUDES(lock_);
  /// At the allocator's end, before any of its devices is destroyed: joins the thread. Waits for a
  /// synchronisation that is under way.
  void stop() noexcept ASHLAR_EXCLUDES(lock_);
  /// After a capture was announced: returns when the thread's synchronisation, if one is under way,
  /// has surely entered the driver. One that has may go on; it was called before the capture.
  void let_enter() noexcept ASHLAR_EXCLUDES(lock_);

 private:
  void publish(std::uint64_t sequence) noexcept;
  Status run(std::uint32_t timeout_ms, std::uint32_t thread_timeout_ms) noexcept
      ASHLAR_EXCLUDES(lock_);
  Status run_on_thread(std::uint64_t sequence, std::uint32_t timeout_ms) noexcept
      ASHLAR_EXCLUDES(lock_);
  /// What the thread does until it is told to stop.
  void serve() noexcept ASHLAR_EXCLUDES(lock_);

  Driver& driver_;
  const std::atomic<unsigned>& captures_ ASHLAR_UNGUARDED;
  alignas(64) std::atomic<std::uint64_t> sequence_{1};  // written at every recorded event
  alignas(64) std::atomic<std::uint64_t> synced_{0};

  Mutex lock_;
  Condition changed_ ASHLAR_UNGUARDED;  ///< locks by itself
  /// the newest sequence that somebody waits for
  std::uint64_t wanted_ ASHLAR_GUARDED_BY(lock_) = 0;
  std::chrono::steady_clock::time_point began_ ASHLAR_GUARDED_BY(lock_);  ///< the thread's last
  /// up to where the thread has asked, whatever the answer
  std::uint64_t answered_ ASHLAR_GUARDED_BY(lock_) = 0;
  Status answer_ ASHLAR_GUARDED_BY(lock_);  ///< of the thread's last synchronisation
  bool is_stopping_ ASHLAR_GUARDED_BY(lock_) = false;
  ServiceThread thread_ ASHLAR_GUARDED_BY(lock_);  ///< made when it is first needed
};

}  // namespace ashlar::inline v0::cache
