// The bounded wait of one reclaim or trim: for the oldest pending event, again and again, until the
// budget is spent or nothing is left to wait for.
//
// C12: an allocation fails only when nothing is left that a permitted wait would free. H8: the wait
// is cut into slices and everything is polled in between, so one stuck stream does not hide what
// others have finished.
// Thread safety: none; lives within one call that is `reclaiming`.
#pragma once

#include <cstdint>

#include <ashlar/cache/epochs.h>

namespace ashlar::inline v0::cache {

class BoundedWait {
 public:
  /// At most `budget_ms` (0: none, device::kWaitForever: unbounded). `waits` counts the waits made.
  BoundedWait(DeviceCache& cache, Driver& driver, Epochs& epochs, std::uint32_t budget_ms,
              std::atomic<std::uint64_t>& waits) noexcept ASHLAR_REQUIRES(reclaiming);

  /// Before a search: notes what is unfinished now. What other threads finish after that, the
  /// search misses.
  void note_unfinished() noexcept ASHLAR_REQUIRES(reclaiming);
  /// Blocks on the oldest event that anything waits for; false if there is no point in searching
  /// again.
  bool wait_for_oldest() noexcept ASHLAR_REQUIRES(reclaiming);
  /// Did the budget run out while work was unfinished?
  bool ran_out() const noexcept { return ran_out_; }

 private:
  enum class Outcome : std::uint8_t {
    kProgress,
    kNotDone,  ///< the slice is over
    kRefused,  ///< by the device: waiting on is of no use
  };
  struct Oldest {
    StreamHeap* heap = nullptr;  ///< nullptr: no event is pending
    bool is_mark = false;        ///< the heap's oldest mark; else its oldest use
    bool is_in_hand = false;     ///< other threads hold uses that no queue shows
  };

  Oldest find_oldest() const noexcept ASHLAR_REQUIRES(reclaiming);
  void wait_a_slice(const Oldest& oldest) noexcept ASHLAR_REQUIRES(reclaiming);
  Outcome wait_for_use(StreamHeap& heap, std::uint32_t timeout_ms) noexcept
      ASHLAR_EXCLUDES(heap.lock);
  Outcome wait_for_mark(StreamHeap& heap, std::uint32_t timeout_ms) noexcept
      ASHLAR_REQUIRES(reclaiming) ASHLAR_EXCLUDES(heap.lock);
  /// Of a heap of another device; nobody else may be reclaiming there.
  Outcome wait_for_foreign_mark(StreamHeap& heap, std::uint32_t timeout_ms) noexcept
      ASHLAR_EXCLUDES(heap.lock);
  /// A retired stream of another device that a use waits for, or nullptr.
  StreamHeap* retired_elsewhere() const noexcept;
  /// Is there work whose completion no event tells (lost streams, uses that could not be recorded)?
  bool has_unrecorded_work() const noexcept ASHLAR_REQUIRES(reclaiming);
  /// A device synchronisation answers for it. False if not all of it is known complete now.
  bool synchronize() noexcept ASHLAR_REQUIRES(reclaiming);
  void begin_synchronize() noexcept ASHLAR_REQUIRES(reclaiming);
  bool end_synchronize(StreamHeap& heap, bool is_done) noexcept ASHLAR_REQUIRES(reclaiming)
      ASHLAR_EXCLUDES(heap.lock);
  /// Most waits one call may make.
  std::uint64_t waits_max() const noexcept ASHLAR_REQUIRES(reclaiming);
  void count_wait() noexcept { waits_.fetch_add(1, std::memory_order_relaxed); }

  DeviceCache& cache_;
  Driver& driver_;
  Epochs& epochs_;
  std::atomic<std::uint64_t>& waits_;
  const std::uint32_t permitted_ms_;
  std::uint32_t budget_ms_;  ///< what is left of it
  std::uint64_t waits_left_;
  // As of note_unfinished():
  bool was_pending_ = false;  ///< was any use not complete,
  bool was_in_hand_ = false;  ///< or in the hands of another thread?
  bool has_looked_again_ = false;
  bool ran_out_ = false;
};

}  // namespace ashlar::inline v0::cache
