// The miss: one ladder, each rung a call on one owner, the heap searched again after every rung
// (C12; bugs H34, H36).
//
//   place      the expected place, if pages can come back to it (place_loan.h)
//   drain      events that are done by now (row DEV-6): UseTracker
//   call back  the user's free-memory callbacks (row DEV-13), then drain again
//   steal      another stream's idle block whose use is complete (`reuse`): Reclaimer::try_steal
//   collect    with a threshold, the oldest idle memory back to the driver (row DEV-11): Reclaimer::collect.
//              Without a cache all that is idle and done (row DEV-22): Reclaimer::give_back_finished; there is
//              no steal then
//   move       with move:eager, pages of free blocks into the stock: EagerMoves
//   grow       new memory from the driver, with no lock held (row DEV-15): SegmentSupply
//   reclaim    under the device's reclaim lock: everything again, without limits; idle segments
//              given back, or ranges of addresses if those are short; without the lock a bounded wait,
//              and again: Reclaimer::reclaim
//   fail       the account, observers, kOutOfMemory (row DEV-14); of addresses kOutOfAddresses alone
//
// Where the host has no memory for the allocator's records, the rung ends the climb with kHostOutOfMemory: memory of the
// device's would not help, so none is given back and nothing is waited for.
// While a capture is announced only callbacks and grow are of use, and for a memory pool's heap drain, which
// asks about the order of the graph then, and steal, which asks nothing; the other rungs find nothing (C9).
// Thread safety: any thread.
#pragma once

#include <ashlar/cache/eager_moves.h>

namespace ashlar::inline v0::cache {

class MissLadder {
 public:
  MissLadder(DeviceCache& cache, SharedState& shared) noexcept;

  /// Lets go of the heap's lock, and climbs until a rung serves the request. Meanwhile the miss is counted
  /// (MissState::under_way), so that the heap stays its stream's. Errors: kOutOfMemory, with `*account`
  /// written if not null; kOutOfAddresses; kHostOutOfMemory; an error of the device's. Cost: up to `wait_ms`, and the
  /// device calls that docs/life-of-a-miss.md states for each rung.
  Result<Address> climb(StreamHeap& heap, const Request& asked, OutOfMemory* account) noexcept
      ASHLAR_RELEASE(heap.lock);

  std::uint64_t retries() const noexcept { return retries_.load(std::memory_order_relaxed); }
  std::uint64_t failures() const noexcept { return failures_.load(std::memory_order_relaxed); }
  void reset_counts() noexcept;

 private:
  // Each returns the null address where the next rung is to be tried.
  Result<Address> try_place(StreamHeap& heap, const Request& asked,
                            const Request& anywhere) noexcept ASHLAR_EXCLUDES(heap.lock);
  Result<Address> drain(StreamHeap& heap, const Request& request) noexcept
      ASHLAR_EXCLUDES(heap.lock);
  Result<Address> call_back(StreamHeap& heap, const Request& request) noexcept
      ASHLAR_EXCLUDES(heap.lock);
  Result<Address> steal(StreamHeap& heap, const Request& request) noexcept
      ASHLAR_EXCLUDES(heap.lock);
  Result<Address> grow(StreamHeap& heap, const Request& request) noexcept
      ASHLAR_EXCLUDES(heap.lock);
  Result<Address> reclaim(StreamHeap& heap, const Request& request, Status shortage,
                          Deadline& deadline, bool* wait_ran_out) noexcept
      ASHLAR_EXCLUDES(heap.lock);
  Result<Address> fail(StreamHeap& heap, const Request& request, bool wait_ran_out,
                       OutOfMemory* account) noexcept ASHLAR_EXCLUDES(heap.lock);

  /// The out-of-memory becomes an event of the history, if that is on.
  void note_failure(const StreamHeap& heap, const Request& request) noexcept;

  DeviceCache& cache_;
  SharedState& shared_;
  EagerMoves moves_ ASHLAR_UNGUARDED;
  std::atomic<std::uint64_t> retries_{0};
  std::atomic<std::uint64_t> failures_{0};
};

}  // namespace ashlar::inline v0::cache
