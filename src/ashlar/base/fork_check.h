// Whether this process is a fork of the one that made an object.
//
// Purpose: neither a driver, nor a thread, nor a lock that another thread held survives in the child process, so
// an object that has one is not usable there (C25).
// Thread safety: any thread.
#pragma once

#include <atomic>

namespace ashlar::inline v0 {

/// The forks that this process has gone through as a child. Hidden: read in the hit.
[[gnu::visibility("hidden")]] extern std::atomic<unsigned> forks_survived;

class ForkCheck {
 public:
  /// Notes the calling process as the one that the object is usable in.
  [[gnu::visibility("hidden")]] ForkCheck() noexcept;
  /// Cost: one load.
  bool is_forked() const noexcept {
    return forks_survived.load(std::memory_order_relaxed) != at_birth_;
  }

 private:
  const unsigned at_birth_;
};

}  // namespace ashlar::inline v0
