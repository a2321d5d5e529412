#include <ashlar/cache/stream_heap.h>

#include <optional>
#include <utility>

#include <ashlar/base/step_count.h>
#include <ashlar/cache/device_cache.h>
#include <ashlar/cache/place_events.h>
#include <ashlar/cache/stream_heap_inl.h>

namespace ashlar::inline v0::cache {

namespace {

/// The maximum number of free blocks that are looked at for the one around a place (C31). A step of the
/// training traces that is nearly full has 7 of a request's size in the mean.
constexpr unsigned kPlaceLooksMax = 48;

}  // namespace

Address StreamHeap::take_block(const Request& request, block::BlockIndex block,
                               UseNode* owner) noexcept {
  if (!reserve_nodes(1)) return Address{};
  block::BlockPool& in = pool(request.pool);
  PlaceLog* const places = misses.places[index_of(request.pool)].get();
  const block::Position place = in.view(block).position;
  const Address address = take_now(in, request, cache.config(), block, owner);
  if (places != nullptr && owner == nullptr && !address.is_null())
    places->note(request.size, place);
  return address;
}

Address take_at_place(StreamHeap& heap, const Request& request, block::BlockIndex from,
                      Address begin, block::Position place) noexcept {
  block::BlockPool& in = heap.pool(request.pool);
  const block::BlockIndex taken =
      block::take_part(in, from, begin, request.size, request.requested);
  if (taken == block::kNoBlock) {
    HostRefusals::note();
    return Address{};
  }
  note_if_on(heap, request.pool, taken, HistoryAction::kAllocate);
  heap.misses.places[index_of(request.pool)]->note(request.size, place);
  heap.stats.on_allocate(request.pool, request.size, request.requested, in.counts(),
                         heap.pool(other_pool(request.pool)).counts());
  return begin;
}

namespace {

/// Serves the request at that place; the null address if it is not free, or the host has no memory for a
/// record. REQUIRES: a spare node.
Address take_at(StreamHeap& heap, const Request& request, block::Position place) noexcept
    ASHLAR_REQUIRES(heap.lock) {
  block::BlockPool& in = heap.pool(request.pool);
  const Bytes begin{block::raw(place)};
  block::BlockIndex at = in.best_fit(request.size, request.fit_end);
  for (unsigned looks = 0; at != block::kNoBlock && looks < kPlaceLooksMax; ++looks) {
    count_steps(1);
    const block::BlockView view = in.view(at);
    const Bytes from{block::raw(view.position)};
    if (from <= begin && begin + request.size <= from + view.size) {
      const HeapStats::Values before = HeapStats::current(in.counts());
      const Address address =
          take_at_place(heap, request, at, view.address + (begin - from), place);
      count_cuts(heap, request.pool, before);
      count_place_event(address.is_null() ? PlaceEvent::kNoRecord : PlaceEvent::kPlaceTaken);
      return address;
    }
    at = in.next_fit(at);
  }
  count_place_event(PlaceEvent::kPlaceNotFree);
  return Address{};
}

}  // namespace

Address take_remembered(StreamHeap& heap, const Request& request) noexcept {
  const PlaceLog* const places = heap.misses.places[index_of(request.pool)].get();
  if (places == nullptr) return heap.take_fit(request, heap.cache.config());
  if (!heap.reserve_nodes(1)) return Address{};
  if (request.tries_place) {
    const std::optional<block::Position> expected = places->expected(request.size);
    if (expected) return take_at(heap, request, *expected);
  }
  const block::BlockIndex block = heap.pool(request.pool).best_fit(request.size, request.fit_end);
  return block == block::kNoBlock ? Address{} : heap.take_block(request, block, nullptr);
}

Result<Address> StreamHeap::search(const Request& request) noexcept {
  const HostRefusals refusals;
  const Address address =
      misses.remembers ? take_remembered(*this, request) : take_fit(request, cache.config());
  if (address.is_null() && refusals.any()) return kShortOfHostMemory;
  return address;
}

void StreamHeap::count_oversize(int change) noexcept { cache.ledger().count_oversize(change); }

void StreamHeap::finish_use(UseNode* node) noexcept {
  const PoolId which = node->pool;
  block::BlockPool& in = pool(which);
  const block::BlockIndex at = node->block;
  ASHLAR_ASSERT(in.state(at) == BlockState::kPending,
                "C7: finishing a use of a block that is not pending");
  unlink_use(in, at, node);
  uses.nodes().give(node);
  if (first_use(in.user(at)) != nullptr) return;
  note_if_on(*this, which, at, HistoryAction::kFreeCompleted);
  release(which, at);
}

void StreamHeap::unlink_use(block::BlockPool& in, block::BlockIndex block, UseNode* use) noexcept {
  if (use->is_borrower) use->user->loans.remove(use->pool, in.view(block).size);
  if (use->sibling != nullptr) use->sibling->sibling_before = use->sibling_before;
  if (use->sibling_before != nullptr) {
    use->sibling_before->sibling = use->sibling;
    return;
  }
  ASHLAR_ASSERT(first_use(in.user(block)) == use,
                "heap(4): the node is not among its block's uses");
  in.set_user(block, as_word(use->sibling));
}

bool StreamHeap::has_use(PoolId which, block::BlockIndex block,
                         const StreamHeap& user) const noexcept {
  // In a memory pool in use the stream has a heap beside its own: that one stands for it too.
  const bool is_own_stream = user.stream.id == stream.id && &user.cache == &cache;
  if (this == &user || (is_reserved() && (is_own_stream || is_in_order_of(*this, user))))
    return true;
  for (const UseNode* use = first_use(pool(which).user(block)); use != nullptr;
       use = use->sibling) {
    count_steps(1);
    if (use->user == &user && !is_only_in_graph(*this, *use)) return true;
  }
  return false;
}

void StreamHeap::drop_finished_uses(PoolId which, block::BlockIndex block,
                                    const StreamHeap* also) noexcept {
  block::BlockPool& in = pool(which);
  for (UseNode* use = first_use(in.user(block)); use != nullptr;) {
    count_steps(1);
    UseNode* const next = use->sibling;
    const bool is_over = use->user->life.is_finished() || is_only_in_graph(*this, *use);
    if (!use->is_borrower && (is_over || use->user == also)) {
      unlink_use(in, block, use);
      uses.nodes().give(use);
    }
    use = next;
  }
}

void StreamHeap::add_use(PoolId which, block::BlockIndex block, StreamHeap& user) noexcept {
  block::BlockPool& in = pool(which);
  UseNode* node = uses.nodes().take();
  if (!user.refer(node)) return uses.nodes().give(node);
  node->block = block;
  node->pool = which;
  node->in_graph = user.life.is_capturing() ? InGraph::kWork : InGraph::kNo;
  node->sibling = first_use(in.user(block));
  if (node->sibling != nullptr) node->sibling->sibling_before = node;
  in.set_user(block, as_word(node));
}

bool StreamHeap::is_forgotten() const noexcept {
  const bool is_over = life.is_finished() && clock.completed() == kEverything && marks.is_empty() &&
                       !life.is_capturing() && !is_reserved();
  bool is_empty = uses.is_empty();
  for (const PoolId which : kPoolIds) is_empty = is_empty && is_free_of_stream(which);
  return is_over && is_empty && misses.under_way == 0 && !uses.is_in_hand() &&
         !life.is_recording() && life.reference_count() == 0;
}

bool StreamHeap::is_free_of_stream(PoolId which) const noexcept {
  const block::PoolCounts& counts = pool(which).counts();
  // Streams that keep their memory to themselves pass it on with the heap; elsewhere any stream
  // takes a dead one's segments.
  const Bytes mapped = mapped_bytes(counts);
  return cache.config().reuse == Reuse::kOwn ? counts.bytes[kFree] == mapped : mapped == Bytes{};
}

bool StreamHeap::begin_passing() noexcept { return is_forgotten() && life.begin_passing(); }

void StreamHeap::serve(const HeapOwner& another) noexcept {
  stats.keep_former_peaks(pool_counts());
  clock.pass_on();
  misses = {};
  stream = another.stream;
  membership.id = another.pool;
  membership.options = another.options;
  membership.is_reserved.store(!another.pool.is_default());
  life.end_passing();
  id.store(another.key.value(), std::memory_order_release);
}

const char* StreamHeap::validate_uses(PoolId which, std::uint64_t* live,
                                      std::uint64_t* pending) const noexcept {
  const block::BlockPool& in = pool(which);
  for (auto segment = in.first_segment(); segment != block::kNoSegment;
       segment = in.next(segment)) {
    for (auto at = in.view(segment).first; at != block::kNoBlock; at = in.next(at)) {
      const block::BlockView view = in.view(at);
      std::uint64_t found = 0;
      const UseNode* before = nullptr;
      for (const UseNode* use = first_use(view.user); use != nullptr; use = use->sibling) {
        if (use->sibling_before != std::exchange(before, use))
          return "heap(4): neighbours among a block's uses do not agree";
        if (use->block != at || use->pool != which) return "heap(4): a block's use is another's";
        if (use->user == nullptr) return "uses(2): a block's use names no user";
        ++found;
      }
      if (view.state == BlockState::kPending && found == 0)
        return "heap(4): a pending block waits for no use";
      *(view.state == BlockState::kLive ? live : pending) += found;
    }
  }
  return nullptr;
}

const char* StreamHeap::validate() const noexcept {
  std::uint64_t live = 0;
  std::uint64_t pending = 0;
  for (const PoolId each : kPoolIds) {
    if (const char* broken = pool(each).validate()) return broken;
    if (const char* broken = validate_uses(each, &live, &pending)) return broken;
  }
  if (misses.under_way != 0) return "heap(6): a miss has not ended its hold";
  if (misses.remembers != misses.has_places()) return "heap(7): logs of places that no hit asks";
  if (uses.nodes().spare_count() < live_blocks())
    return "heap(3): fewer spare nodes than live blocks";
  // Not analysed: it runs inside validate(), which holds the lock.
  const auto is_pending = [this](const UseNode& node) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    return pool(node.pool).state(node.block) == BlockState::kPending;
  };
  if (const char* broken = uses.validate(live, pending, is_pending)) return broken;
  if (clock.newest_release() > clock.now()) return "heap(1): a stamp from the future";
  return nullptr;
}

}  // namespace ashlar::inline v0::cache
