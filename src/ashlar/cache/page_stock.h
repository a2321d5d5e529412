// Physical pages that are mapped nowhere: taken from one address, to be mapped at another.
//
// Purpose: a page moves in two steps, so that the one that takes it away and the one that maps it need
// not know each other. Pages that the driver refuses to take back wait here as well.
// Thread safety: any thread; one lock, under which no device call is made.
//
// Invariant:
//   (1) every page of the stock is charged to the device's limit (segment_ledger.h).
#pragma once

#include <optional>
#include <vector>

#include <ashlar/base/exceptions.h>
#include <ashlar/base/mutex.h>
#include <ashlar/base/types.h>

namespace ashlar::inline v0::cache {

class PageStock {
 public:
  /// Makes room for `more` pages besides those that there are and were promised room; false if the host
  /// has no memory.
  bool reserve(std::uint64_t more) noexcept ASHLAR_EXCLUDES(lock_) {
    const MutexGuard guard(lock_);
    const std::uint64_t needed = pages_.size() + promised_ + more;
    if (needed > pages_.capacity() && !with_host_memory([&]() ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
          pages_.reserve(needed + needed / 2);
        }))
      return false;
    promised_ += more;
    return true;
  }
  /// Ends the promise of room for `pages`, which were not put in.
  void give_up(std::uint64_t pages) noexcept ASHLAR_EXCLUDES(lock_) {
    const MutexGuard guard(lock_);
    promised_ -= pages;
  }
  /// REQUIRES: room was promised for it.
  void put(PageHandle page) noexcept ASHLAR_EXCLUDES(lock_) {
    const MutexGuard guard(lock_);
    promised_ -= 1;
    pages_.push_back(page);
  }
  /// Puts back what take() returned a moment ago, unless the host has no room left for it: then the page
  /// is the driver's to keep. No room is promised.
  void put_back(PageHandle page) noexcept ASHLAR_EXCLUDES(lock_) {
    if (reserve(1)) put(page);
  }
  std::optional<PageHandle> take() noexcept ASHLAR_EXCLUDES(lock_) {
    const MutexGuard guard(lock_);
    if (pages_.empty()) return std::nullopt;
    const PageHandle page = pages_.back();
    pages_.pop_back();
    return page;
  }
  /// Pages that room was promised for and that were not put in yet.
  std::uint64_t promised() const noexcept ASHLAR_EXCLUDES(lock_) {
    const MutexGuard guard(lock_);
    return promised_;
  }
  std::uint64_t count() const noexcept ASHLAR_EXCLUDES(lock_) {
    const MutexGuard guard(lock_);
    return pages_.size();
  }

 private:
  mutable Mutex lock_;
  std::vector<PageHandle> pages_ ASHLAR_GUARDED_BY(lock_);
  std::uint64_t promised_ ASHLAR_GUARDED_BY(lock_) = 0;
};

}  // namespace ashlar::inline v0::cache
