// record_use, free_used_on, check, info; capture and destruction; validate(); and the out-of-line
// copies of the hit (hit_inl.h).
#include <ashlar/cache/device_cache.h>

#include <algorithm>
#include <thread>

#include <ashlar/base/step_count.h>
#include <ashlar/cache/hit_inl.h>

namespace ashlar::inline v0::cache {

using block::BlockIndex;

DeviceCache::DeviceCache(device::Device& device, SharedState& shared) noexcept
    : shared_(shared),
      config_(shared.config),
      has_rules_(!config_.caches ||
                 std::any_of(config_.roundup_divisions.begin(), config_.roundup_divisions.end(),
                             [](std::uint32_t steps) { return steps > 1; })),
      id_(device.traits().id),
      driver_(device, shared.drivers),
      ledger_(driver_, config_),
      heaps_(*this, config_.granule),
      uses_(driver_, shared),
      supply_(driver_, shared, ledger_),
      reclaimer_(*this, shared, driver_, uses_, supply_),
      ladder_(*this, shared),
      memory_pools_(*this, shared) {}

Result<Address> DeviceCache::allocate_routed(Bytes size, const Stream& stream,
                                             OutOfMemory* account) noexcept {
  if (const Status health = driver_.health(); !health.is_ok()) return health;
  Request request;
  if (const Status status = make_request(size, request); !status.is_ok()) return status;
  // Each further round needs a release of the pool, or the try of one, between the two locks.
  for (;;) {
    const Result<MemoryPools::Routed> routed = memory_pools_.route(stream);
    if (!routed.is_ok()) return routed.status();
    if (routed.value().heap == nullptr) return allocate(size, stream, account);
    StreamHeap& heap = *routed.value().heap;
    heap.lock.lock();
    const bool is_of_pool = heap.is_reserved_for(routed.value().stream, routed.value().pool);
    request.may_split = !heap.membership.options.no_split;
    if (is_of_pool && heap.serves(routed.value().stream)) return serve(heap, request, account);
    heap.lock.unlock();
    ASHLAR_REQUIRE(!is_of_pool, Code::kInvalidHandle,
                   "the stream was retired or its handle reused");
    // The pool was released meanwhile: where do the stream's allocations go now?
  }
}

Result<Address> DeviceCache::serve_remembered(StreamHeap& heap, const Request& request,
                                              OutOfMemory* account) noexcept {
  const Address address = take_remembered(heap, request);
  if (address.is_null()) return ladder_.climb(heap, request, account);
  heap.lock.unlock();
  return address;
}

Status DeviceCache::record_use(const PageMap::Found& found, Address address,
                               StreamHeap& user) noexcept {
  return with_live_block(found, address,
                         [&user](StreamHeap& heap, PoolId pool, BlockIndex block)
                             ASHLAR_RELEASE(heap.lock) {
                               Status noted;
                               heap.drop_finished_uses(pool, block);
                               if (!heap.has_use(pool, block, user)) {
                                 if (heap.reserve_nodes(1)) {
                                   heap.add_use(pool, block, user);
                                 } else {
                                   noted = kShortOfHostMemory;
                                 }
                               }
                               heap.lock.unlock();
                               return noted;
                             });
}

Status DeviceCache::free_used_on(const PageMap::Found& found, Address address,
                                 StreamHeap& user) noexcept {
  return with_live_block(found, address,
                         [&user](StreamHeap& heap, PoolId pool, BlockIndex block)
                             ASHLAR_RELEASE(heap.lock) {
                               // A use that is only in a graph is none any more, and must not stand beside the new one.
                               heap.drop_finished_uses(pool, block);
                               // heap(3): a node is spare for every live block, this one too: where
                               // a use is noted, the block goes pending before the lock is let go.
                               if (!heap.has_use(pool, block, user))
                                 heap.add_use(pool, block, user);
                               return free_block(heap, pool, block);
                             });
}

Status DeviceCache::check(const PageMap::Found& found, Address address) noexcept {
  return with_live_block(found, address,
                         [](StreamHeap& heap, PoolId, BlockIndex) ASHLAR_RELEASE(heap.lock) {
                           heap.lock.unlock();
                           return Status::ok();
                         });
}

Status DeviceCache::reserve_use(const PageMap::Found& found, Address address) noexcept {
  return with_live_block(found, address,
                         [](StreamHeap& heap, PoolId, BlockIndex) ASHLAR_RELEASE(heap.lock) {
                           const bool is_reserved = heap.reserve_nodes(1);
                           heap.lock.unlock();
                           return is_reserved ? Status::ok() : kShortOfHostMemory;
                         });
}

Result<AllocationInfo> DeviceCache::info(const PageMap::Found& found, Address address) noexcept {
  AllocationInfo info;
  const Status status = with_live_block(
      found, address,
      [&info](StreamHeap& heap, PoolId pool, BlockIndex block) ASHLAR_RELEASE(heap.lock) {
        const block::BlockPool& in = heap.pool(pool);
        const block::BlockView view = in.view(block);
        const block::SegmentView segment = in.view(in.segment(block));
        info = {view.address, view.size, view.requested, heap.stream, segment.base, segment.size};
        for (const UseNode* use = StreamHeap::first_use(view.user); use != nullptr;
             use = use->sibling) {
          count_steps(1);
          if (use->is_borrower) info.stream = use->user->stream;
        }
        heap.lock.unlock();
        return Status::ok();
      });
  return status.is_ok() ? Result<AllocationInfo>(info) : Result<AllocationInfo>(status);
}

Result<HeldAllocation> DeviceCache::hold(const PageMap::Found& found, Address address) noexcept {
  HeldAllocation held;
  const Status status = with_live_block(
      found, address,
      [&held](StreamHeap& heap, PoolId pool, BlockIndex block) ASHLAR_RELEASE(heap.lock) {
        const block::BlockPool& in = heap.pool(pool);
        const block::BlockView view = in.view(block);
        held = {&heap.cache.supply_.pins(), record_of(in.view(in.segment(block))), view.address,
                view.size};
        held.segment->holds.fetch_add(1, std::memory_order_relaxed);
        heap.lock.unlock();
        return Status::ok();
      });
  return status.is_ok() ? Result<HeldAllocation>(held) : Result<HeldAllocation>(status);
}

namespace {

/// Waits until nobody has uses in hand that were taken before.
void wait_for_takers(HeapList& heaps) noexcept {
  for (StreamHeap& heap : heaps) {
    bool is_busy = false;
    {
      const Guard guard(heap.lock);
      heap.uses.takers().begin_phase();
      is_busy = heap.uses.takers().has_earlier();
    }
    while (is_busy) {
      std::this_thread::yield();
      const Guard guard(heap.lock);
      is_busy = heap.uses.takers().has_earlier();
    }
  }
}

/// Waits for those who asked, before the announcement of a capture, whom a stream's handle names.
void wait_for_recorders(HeapList& heaps) noexcept {
  for (StreamHeap& heap : heaps) {
    heap.life.recorders().begin_phase();
    while (heap.life.recorders().has_earlier()) std::this_thread::yield();
  }
}

/// The maximum number of events that free_finished() asks about before it lets other threads at the heap.
constexpr unsigned kEventsPerPart = 64;

/// Looks again at all uses without an event of memory pools' blocks.
void retry_in_pools(HeapList& heaps) noexcept {
  for (StreamHeap& heap : heaps) {
    bool is_of_pool = false;
    {
      const Guard guard(heap.lock);
      is_of_pool = heap.is_reserved();
    }
    if (is_of_pool) UseTracker::retry_unrecorded(heap, kEverything);
  }
}

}  // namespace

void DeviceCache::quiesce() noexcept {
  reclaimer_.lock().wait_for_holder();
  supply_.wait_for_growths();
  shared_.blocking_calls.begin_phase();
  while (shared_.blocking_calls.has_earlier()) std::this_thread::yield();
  uses_.synchronizer().let_enter();
  wait_for_takers(heaps_);
  wait_for_recorders(heaps_);
}

void end_body(DeviceCache& cache, StreamHeap& body) noexcept {
  // Whoever takes uses from now on passes them on itself (UseTracker::is_over_in_graph).
  wait_for_takers(cache.heaps());
  change_body_uses(cache, body, LiveUses::kPassOn);
  retry_in_pools(cache.heaps());
}

Status free_finished(DeviceCache& cache) noexcept {
  // Without a cache no later request is short of what one lost use holds, and asks for it.
  const std::uint64_t asks_from = cache.config().caches ? kUnrecordedMax : 1;
  for (StreamHeap& heap : cache.heaps()) {
    if (cache.is_capturing()) break;
    UseTracker::ask_for_unrecorded(heap, asks_from);
    UseTracker::retry_unrecorded(heap, kUnrecordedMax);
    UseTracker::PollState state;
    for (bool goes_on = true; goes_on;) {
      const Guard guard(heap.lock);
      goes_on = cache.uses().poll_part(heap, kEventsPerPart, state);
    }
  }
  ASHLAR_REQUIRE(!cache.is_capturing(), Code::kBusy, "a capture is announced");
  return cache.driver().health();
}

void DeviceCache::record_deferred() noexcept {
  for (StreamHeap& heap : heaps_) UseTracker::retry_unrecorded(heap, kEverything);
}

bool DeviceCache::has_unfinished() const noexcept {
  bool incomplete = false;
  for (StreamHeap& heap : heaps_) {
    const Guard guard(heap.lock);
    // No event tells of the launches of graphs that use a memory pool.
    incomplete |= !heap.uses.is_empty() || !heap.clock.is_all_complete() || heap.is_reserved();
  }
  return incomplete;
}

void DeviceCache::settle(bool synchronize) noexcept {
  is_settled_ = !synchronize || driver_.synchronize().is_ok() || uses_.is_lost();
}

std::uint64_t DeviceCache::reference_count() const noexcept {
  std::uint64_t references = 0;
  for (const StreamHeap& heap : heaps_) references += heap.life.reference_count();
  return references;
}

std::uint64_t DeviceCache::use_count() const noexcept {
  std::uint64_t uses = 0;
  for (StreamHeap& heap : heaps_) {
    const Guard guard(heap.lock);
    uses += heap.uses.nodes().taken_count();
  }
  return uses;
}

std::uint64_t DeviceCache::page_count() const noexcept {
  std::uint64_t pages = 0;
  for (StreamHeap& heap : heaps_) {
    const Guard guard(heap.lock);
    for (const PoolId id : kPoolIds) {
      const block::BlockPool& pool = heap.pool(id);
      for (auto at = pool.first_segment(); at != block::kNoSegment; at = pool.next(at)) {
        const block::SegmentView segment = pool.view(at);
        pages += shared_.pages.owners_of(segment.base, segment.size);
      }
    }
  }
  return pages;
}

const char* DeviceCache::validate_unrecorded() const noexcept {
  std::uint64_t listed = 0;
  for (StreamHeap& heap : heaps_) {
    const Guard guard(heap.lock);
    listed += heap.uses.unrecorded_count();
  }
  for (std::uint32_t i = 0; i < shared_.unrecorded.devices(); ++i)
    listed -= shared_.unrecorded.count(id_, DeviceId{static_cast<std::int32_t>(i)});
  return listed == 0 ? nullptr : "unrecorded(1): the counts are not those of the lists";
}

namespace {

/// What other streams borrow of that pool. Cost: a walk over its blocks.
Bytes lent_of(const StreamHeap& heap, PoolId which) noexcept ASHLAR_REQUIRES(heap.lock) {
  Bytes sum;
  const block::BlockPool& in = heap.pool(which);
  for (auto segment = in.first_segment(); segment != block::kNoSegment;
       segment = in.next(segment)) {
    for (auto at = in.view(segment).first; at != block::kNoBlock; at = in.next(at)) {
      const block::BlockView view = in.view(at);
      for (const UseNode* use = StreamHeap::first_use(view.user); use != nullptr;
           use = use->sibling) {
        if (use->is_borrower) sum += view.size;
      }
    }
  }
  return sum;
}

}  // namespace

const char* DeviceCache::validate() const noexcept {
  if (const char* broken = validate_unrecorded()) return broken;
  if (const char* broken = heaps_.validate()) return broken;
  if (const char* broken = reclaimer_.validate()) return broken;
  if (const char* broken = memory_pools_.validate()) return broken;
  if (const char* broken = supply_.pins().validate()) return broken;
  Bytes in_segments;
  std::uint64_t segments = 0;
  Bytes borrowed;
  Bytes lent;
  for (StreamHeap& heap : heaps_) {
    const Guard guard(heap.lock);
    if (const char* broken = heap.validate()) return broken;
    if (const char* broken = supply_.validate(heap)) return broken;
    for (const PoolId id : kPoolIds) {
      in_segments += mapped_bytes(heap.pool(id).counts());
      borrowed += heap.loans.bytes(id);
      lent += lent_of(heap, id);
      segments += heap.pool(id).counts().segments;
    }
  }
  if (borrowed != lent) return "heap(8): what is borrowed is not what is lent";
  return ledger_.validate(in_segments, segments, supply_.pages().stock_bytes());
}

}  // namespace ashlar::inline v0::cache
