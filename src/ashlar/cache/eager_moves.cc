#include <ashlar/cache/eager_moves.h>

namespace ashlar::inline v0::cache {
namespace {

constexpr unsigned kMovesPerGrowth = 2;
/// The modelled time that a page's move takes: unmap 26, set access 36, map 1.5. Source: the micro-benchmark on an
/// A100 that docs/moving-pages.md names.
constexpr std::uint64_t kMoveUsPerPage = 64;

}  // namespace

bool EagerMoves::is_due(StreamHeap& heap, PoolId pool, Bytes lacking) noexcept {
  const Guard guard(heap.lock);
  unsigned& moves = heap.misses.moves[index_of(pool)];
  const bool may_move = moves < kMovesPerGrowth && lacking != Bytes{} &&
                        lacking / pages_.page() * kMoveUsPerPage <= shared_.config.move_us_max;
  moves = may_move ? moves + 1 : 0;
  return may_move;
}

bool EagerMoves::begin(StreamHeap& heap, const Request& request) noexcept {
  if (shared_.config.move != Move::kEager || !pages_.serves(heap)) return false;
  if (shared_.is_capturing()) return false;
  const Bytes lacking = pages_.lacking(heap, request);
  if (!is_due(heap, request.pool, lacking)) return false;
  ReclaimLock& lock = reclaimer_.lock();
  if (!lock.try_lock()) return false;
  if (!shared_.is_capturing() && reclaimer_.epochs().refresh_all(heaps_, lock)) {
    Status refused;
    static_cast<void>(release_.release(&heap, lacking, PagesTo::kStock, &refused));
  }
  lock.unlock();
  return true;
}

void EagerMoves::end() noexcept {
  ReclaimLock& lock = reclaimer_.lock();
  if (pages_.stock_bytes() == Bytes{} || !lock.try_lock()) return;
  Status refused;
  static_cast<void>(release_.drop_stock(Bytes::max(), &refused));
  lock.unlock();
}

}  // namespace ashlar::inline v0::cache
