// Moves of pages before there is a shortage (Move::kEager): what a growth lacks is taken from under free blocks
// before the driver is asked for it.
//
// Thread safety: any thread. A thread that does not get the reclaim lock at once moves nothing.
// Budget: the modelled time of a call's moves is at most Config::move_us_max.
// C20: after kMovesPerGrowth moves a heap asks the driver for memory of its own before it moves pages again.
// Otherwise two heaps whose needs alternate would move the same pages to and fro for ever. So the memory that a step
// gets bounds the moves of all steps together, and a budget for each step is not needed.
// D4: only pages whose last use is known complete move; what that is, each heap learns from the event that it
// recorded at an earlier call.
#pragma once

#include <ashlar/cache/page_release.h>
#include <ashlar/cache/reclaimer.h>

namespace ashlar::inline v0::cache {

class EagerMoves {
 public:
  EagerMoves(HeapList& heaps, SharedState& shared, PageSupply& pages, Reclaimer& reclaimer) noexcept
      : heaps_(heaps),
        shared_(shared),
        pages_(pages),
        reclaimer_(reclaimer),
        release_(heaps, shared, pages, reclaimer.lock()) {}

  /// Takes the pages that the request lacks into the stock, where growth finds them, as far as there are any.
  /// True if it tried: then end() is called after the growth. No effect unless `move` is eager, while a capture is
  /// announced, or beyond the budget. Cost, beside the driver's calls: as a search for room, and the free
  /// blocks of a page or more.
  bool begin(StreamHeap& heap, const Request& request) noexcept
      ASHLAR_EXCLUDES(reclaiming, heap.lock);
  /// Pages of the stock that the allocation did not need go back to the driver. If another thread holds the reclaim
  /// lock they stay in the stock, where the next growth finds them.
  void end() noexcept ASHLAR_EXCLUDES(reclaiming);

 private:
  /// Counts a move if the heap may make one of so many bytes now.
  bool is_due(StreamHeap& heap, PoolId pool, Bytes lacking) noexcept ASHLAR_EXCLUDES(heap.lock);

  HeapList& heaps_;
  SharedState& shared_;
  PageSupply& pages_;
  Reclaimer& reclaimer_;
  PageRelease release_ ASHLAR_UNGUARDED;  ///< its members need the role `reclaiming`
};

}  // namespace ashlar::inline v0::cache
