// Marks the calling thread as inside a callback or an observer: it may free and query, not allocate
// (C24).
//
// Thread safety: the flag is the thread's own; the counter tells a hit whether anybody's flag is
// worth reading.
#pragma once

#include <atomic>

namespace ashlar::inline v0::cache {

class ObserverScope {
 public:
  explicit ObserverScope(std::atomic<unsigned>& running) noexcept : running_(running) {
    running_.fetch_add(1, std::memory_order_relaxed);
    ++depth();
  }
  ~ObserverScope() {
    --depth();
    running_.fetch_sub(1, std::memory_order_relaxed);
  }
  ObserverScope(const ObserverScope&) = delete;
  ObserverScope& operator=(const ObserverScope&) = delete;

  static bool is_inside() noexcept { return depth() > 0; }

 private:
  static int& depth() noexcept {
    thread_local int scopes = 0;
    return scopes;
  }
  std::atomic<unsigned>& running_;
};

}  // namespace ashlar::inline v0::cache
