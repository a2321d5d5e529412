// Reaper: a thread that frees page-locked blocks whose uses are complete, while nobody allocates.
//
// Purpose: without it an allocation asks about the events itself. With it most allocations find nothing to
// ask, and memory that is done with shows as free soon after, also to who only reads statistics.
// Thread safety: made and destroyed by one thread, in one process: in a forked child it is left alone, as the thread is
// the parent's.
// What must happen: within `period_ms` after a use is complete and known to its driver, the block is free.
#pragma once

#include <chrono>
#include <cstdint>

#include <ashlar/base/fork_check.h>
#include <ashlar/base/mutex.h>
#include <ashlar/base/service_thread.h>
#include <ashlar/cache/caching_allocator.h>

namespace ashlar::inline v0::pinned {

class Reaper {
 public:
  /// Both must outlive this.
  Reaper(cache::CachingAllocator& allocator, DeviceId device) noexcept
      : allocator_(allocator), device_(device) {}
  ~Reaper() { stop(); }
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;

  /// Is this a forked child of the process that made it?
  bool is_forked() const noexcept { return birth_.is_forked(); }
  /// Starts the thread, which asks every `period_ms`. False if the host has no room for one. At most once.
  bool start(std::uint32_t period_ms) noexcept ASHLAR_EXCLUDES(lock_);
  /// Ends it: waits for a round that is under way, which never blocks. No effect where it does not run.
  void stop() noexcept ASHLAR_EXCLUDES(lock_);

 private:
  void serve() noexcept ASHLAR_EXCLUDES(lock_);

  cache::CachingAllocator& allocator_ ASHLAR_UNGUARDED;
  const DeviceId device_;
  const ForkCheck birth_;
  Mutex lock_;
  Condition changed_ ASHLAR_UNGUARDED;
  std::chrono::milliseconds period_ ASHLAR_GUARDED_BY(lock_){};
  bool is_stopping_ ASHLAR_GUARDED_BY(lock_) = false;
  ServiceThread thread_ ASHLAR_GUARDED_BY(lock_);
};

}  // namespace ashlar::inline v0::pinned
