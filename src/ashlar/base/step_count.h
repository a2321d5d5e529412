// Steps under a lock: how much work a thread did while it held a spin lock (C31).
//
// Purpose: in builds with assertions, every loop whose length depends on what a heap holds (blocks,
// segments, free blocks) and every table that moves reports its steps here. SpinLock::unlock()
// checks that no critical section took more than kLockStepsMax. In release builds all of it
// compiles to nothing.
// Thread safety: the counter is the thread's own.
//
// Invariants:
//   (1) C31: from the first spin lock that a thread takes until it lets go of a lock, it takes at
//       most kLockStepsMax steps, less what a LongSectionScope excuses.
//
// A step is one table cell, record, tree node, queue entry or cache line that a loop visits, or one
// huge page of addresses that moves.
#pragma once

#include <cstdint>

#include <ashlar/base/assert.h>

namespace ashlar::inline v0 {

/// The most steps between taking a lock and letting it go. The longest legal section is a slice of a
/// search through another stream's free blocks (stream_heap.h: kLooksPerHold of at most
/// kFitStepsMax + 1 steps), which finds one at last, and whose allocation then makes every table of
/// the pool grow at once, while its address map and its free index are being rearranged. Tables that move by copying are at most kPlainTableBytesMax long
/// (growing_table.h): 1024 cache lines. At one number of records these are at most, of the block
/// records' columns and the tree's branches and leaves, 5 x 1024 lines in all; the address map's
/// cells are 1024 more, and as many lines of it are cleared. What else it does is less than 1000
/// steps: the map's cells that are split with their chains, one leaf of the free index that moves
/// with two paths for each of its records, a search, an insertion and a removal of at most
/// kFitStepsMax nodes each.
inline constexpr std::uint64_t kLockStepsMax = 12288;

#if ASHLAR_ASSERTIONS
/// The steps of this thread since it took its first spin lock.
inline thread_local std::uint64_t lock_steps = 0;
#endif

/// Counts `steps`. Nothing in builds without assertions.
inline void count_steps([[maybe_unused]] std::uint64_t steps) noexcept {
#if ASHLAR_ASSERTIONS
  lock_steps += steps;
#endif
}

/// Excuses the steps of its scope from C31: for validate(), which tests alone call.
class LongSectionScope {
 public:
  LongSectionScope() noexcept = default;
  LongSectionScope(const LongSectionScope&) = delete;
  LongSectionScope& operator=(const LongSectionScope&) = delete;
#if ASHLAR_ASSERTIONS
  ~LongSectionScope() { lock_steps = steps_before_; }

 private:
  std::uint64_t steps_before_ = lock_steps;
#else
  // Not trivial, so that the compiler does not warn of an unused variable.
  ~LongSectionScope() {}  // NOLINT(modernize-use-equals-default)
#endif
};

}  // namespace ashlar::inline v0
