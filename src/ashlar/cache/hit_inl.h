// The hit and the plain free, inline into the front door: without a function call at each step a
// pair takes a quarter less time.
//
// Part of DeviceCache (device_cache.h); included by the front door and by device_cache.cc, which
// gives the slow paths their out-of-line copies.
// Thread safety and invariants: device_cache.h.
#pragma once

#include <utility>

#include <ashlar/cache/device_cache.h>
#include <ashlar/cache/stream_heap_inl.h>

namespace ashlar::inline v0::cache {

/// The maximum number of events that one hit polls (C17).
inline constexpr unsigned kHitPollsMax = 16;

[[gnu::always_inline]] inline Status DeviceCache::make_request(Bytes size,
                                                               Request& request) const noexcept {
  ASHLAR_REQUIRE(size <= kRequestBytesMax, Code::kSizeOverflow, "a request over 1 EiB");
  // Nothing below can wrap: 1 EiB and a rounding of at most as much again are far from 2^64
  // (check_config).
  const Bytes rounded =
      has_rules_ ? rounded_size(config_, size).value_or(size) : round_up(size, config_.granule);
  const Bytes end = has_rules_ ? fit_end(config_, rounded) : cached_fit_end(config_, rounded);
  request = Request{size, rounded, end, pool_of(config_, rounded)};
  return Status::ok();
}

[[gnu::always_inline]] inline Result<Address> DeviceCache::allocate(Bytes size,
                                                                    const Stream& stream,
                                                                    OutOfMemory* account) noexcept {
  if (const Status health = driver_.health(); !health.is_ok()) return health;
  Request request;
  if (const Status status = make_request(size, request); !status.is_ok()) return status;
  StreamHeap* heap = heaps_.find(stream.id);
  if (heap == nullptr) [[unlikely]] {
    const Result<StreamHeap*> made = reclaimer_.make_heap(stream);
    if (!made.is_ok()) return made.status();
    heap = made.value();
  }
  heap->lock.lock();
  if (!heap->serves(stream)) [[unlikely]] {
    heap->lock.unlock();
    return Status{Code::kInvalidHandle, "the stream was retired or its handle reused"};
  }
  return serve(*heap, request, account);
}

[[gnu::always_inline]] inline Result<Address> DeviceCache::serve(StreamHeap& heap,
                                                                 const Request& request,
                                                                 OutOfMemory* account) noexcept {
  if (heap.uses.is_poll_due() && !shared_.is_capturing()) {
    if (const Status polled = uses_.poll(heap, kHitPollsMax); !polled.is_ok()) {
      heap.lock.unlock();
      return polled;
    }
  }
  // The slow paths get copies of the request, so that it need not be in memory itself.
  if (heap.misses.remembers) [[unlikely]]
    return serve_remembered(heap, Request(request), account);
  const Address address = heap.take_fit(request, config_);
  if (address.is_null()) [[unlikely]]
    return ladder_.climb(heap, Request(request), account);
  heap.lock.unlock();
  return address;
}

/// Why the block may not be used or freed; ok if it is live and its device well.
[[gnu::always_inline]] inline Status check_live(StreamHeap& heap, PoolId pool,
                                                block::BlockIndex block) noexcept
    ASHLAR_REQUIRES(heap.lock) {
  // Asked only now: the page's other segment may be another device's, and that one may be gone
  // (C26).
  if (const Status health = heap.cache.driver().health(); !health.is_ok()) return health;
  ASHLAR_REQUIRE(heap.pool(pool).state(block) == BlockState::kLive, Code::kDoubleFree,
                 "already freed; its uses are not complete yet");
  return Status::ok();
}

template <class F>
[[gnu::always_inline]] inline Status DeviceCache::with_live_block(const PageMap::Found& found,
                                                                  Address address,
                                                                  F&& end) noexcept {
  // In two variables: an array of owners would be written to memory and read back on the way to the
  // lock.
  Owner other = found.second;
  for (Owner owner = found.first; !owner.is_nobody() || !other.is_nobody();
       owner = std::exchange(other, Owner{})) {
    if (owner.is_nobody()) continue;
    StreamHeap& heap = *owner.heap();
    heap.lock.lock();
    const block::BlockIndex block = heap.pool(owner.pool()).find(address);
    if (block == block::kNoBlock) {
      heap.lock.unlock();
      continue;
    }
    if (const Status status = check_live(heap, owner.pool(), block); !status.is_ok()) {
      heap.lock.unlock();
      return status;
    }
    // Spelt out, because the analysis follows the lock through a named call only.
    return end.operator()(heap, owner.pool(), block);
  }
  return {Code::kUnknownPointer,
          "the allocator is not handing out that address: never issued, freed, or inside a block"};
}

[[gnu::always_inline]] inline Status DeviceCache::free_block(StreamHeap& heap, PoolId pool,
                                                             block::BlockIndex block) noexcept {
  block::BlockPool& in = heap.pool(pool);
  const bool is_oversize = in.size(block) >= heap.cache.config_.max_split_size;
  // An oversize free is counted in each branch: after the last decode of the block, and before the
  // lock is let go.
  note_if_on(heap, pool, block, HistoryAction::kFreeRequested);
  if (in.user(block) == 0) {
    note_if_on(heap, pool, block, HistoryAction::kFreeCompleted);
    heap.release(pool, block);
    if (is_oversize) heap.cache.ledger_.count_oversize(-1);
    ASHLAR_VALIDATE(in);
    heap.lock.unlock();
  } else {
    if (is_oversize) heap.cache.ledger_.count_oversize(-1);
    UseTracker::free_pending(heap, pool, block);
  }
  return Status::ok();
}

[[gnu::always_inline]] inline Status DeviceCache::free(const PageMap::Found& found,
                                                       Address address) noexcept {
  return with_live_block(found, address,
                         [](StreamHeap& heap, PoolId pool, block::BlockIndex block)
                             ASHLAR_RELEASE(heap.lock) { return free_block(heap, pool, block); });
}

}  // namespace ashlar::inline v0::cache
