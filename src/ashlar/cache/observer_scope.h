// Marks the calling thread as inside a callback or an observer of one allocator: it may free and
// query, and allocate from other allocators, but not allocate from this one (C24).
//
// Purpose: the scopes that a thread is inside are a list on its stack. An allocator's counter of
// running observers names it, and tells a hit by one load whether the list is worth reading.
// Thread safety: the list is the thread's own. It may have several scopes for one counter: a callback may
// trim, and observers of mappings run meanwhile.
#pragma once

#include <atomic>

namespace ashlar::inline v0::cache {

class ObserverScope {
 public:
  /// `running` is the allocator's counter of observers that run now.
  explicit ObserverScope(std::atomic<unsigned>& running) noexcept
      : running_(running), outer_(innermost()) {
    running_.fetch_add(1, std::memory_order_relaxed);
    innermost() = this;
  }
  ~ObserverScope() {
    innermost() = outer_;
    running_.fetch_sub(1, std::memory_order_relaxed);
  }
  ObserverScope(const ObserverScope&) = delete;
  ObserverScope& operator=(const ObserverScope&) = delete;

  /// Is the calling thread inside an observer of the allocator with that counter?
  static bool is_inside(const std::atomic<unsigned>& running) noexcept {
    const ObserverScope* scope = innermost();
    while (scope != nullptr && &scope->running_ != &running) scope = scope->outer_;
    return scope != nullptr;
  }

 private:
  static const ObserverScope*& innermost() noexcept {
    thread_local const ObserverScope* scope = nullptr;
    return scope;
  }

  std::atomic<unsigned>& running_;
  const ObserverScope* const outer_;
};

/// The same for the filter of a memory pool, or an observer of mappings, which run under a lock: they are also
/// counted by themselves, and what would take such a lock again is refused to them.
class FilterScope {
 public:
  FilterScope(std::atomic<unsigned>& observers, std::atomic<unsigned>& filters) noexcept
      : observer_(observers), filter_(filters) {}

 private:
  const ObserverScope observer_;
  const ObserverScope filter_;
};

}  // namespace ashlar::inline v0::cache
