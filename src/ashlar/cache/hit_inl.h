// The hit and the plain free, inline into the front door: with a call less at each step they cost
// three quarters.
//
// Part of DeviceCache (device_cache.h); included by the front door and by device_cache.cc, which
// gives the slow paths their out-of-line copies.
// Thread safety and invariants: device_cache.h.
#pragma once

#include <utility>

#include <ashlar/cache/device_cache.h>

namespace ashlar::inline v0::cache {

/// Most events one hit polls (C17).
inline constexpr unsigned kHitPollsMax = 16;

[[gnu::always_inline]] inline Address DeviceCache::take_now(StreamHeap& heap,
                                                            block::BlockPool& pool,
                                                            const Request& request,
                                                            BlockIndex block,
                                                            UseNode* owner) noexcept {
  const Bytes had = pool.size(block);
  const Address address = pool.address(block);
  const bool split = should_split(config_, request.size, had);
  const bool was_whole = pool.is_whole(block);
  const BlockIndex taken =
      pool.take(block, request.size, split, request.requested, StreamHeap::as_word(owner));
  if (taken == block::kNoBlock) return Address{};
  const Bytes got = pool.size(taken);
  heap.stats.on_allocate(request.is_small, got, request.requested, pool.counts(),
                         heap.pool(!request.is_small).counts());
  const Bytes rest = had - got;
  if (was_whole && rest != Bytes{}) {  // what is left of it is a split from now on
    heap.stats.on_split(request.is_small, rest, true, pool.counts(),
                        heap.pool(!request.is_small).counts());
  }
  if (owner != nullptr) {
    owner->block = taken;
    owner->is_small = request.is_small;
  }
  if (got >= config_.max_split_size) count_oversize(+1);
  ASHLAR_VALIDATE(pool);
  return address;
}

[[gnu::always_inline]] inline Address DeviceCache::take_fit(StreamHeap& heap,
                                                            const Request& request) noexcept {
  // before the search: what that has read need not be read again
  if (!heap.reserve_nodes(1)) return Address{};
  block::BlockPool& pool = heap.pool(request.is_small);
  const BlockIndex block = pool.best_fit(request.size, request.fit_end);
  return block == block::kNoBlock ? Address{} : take_now(heap, pool, request, block, nullptr);
}

[[gnu::always_inline]] inline Status DeviceCache::make_request(Bytes size,
                                                               Request& request) const noexcept {
  ASHLAR_REQUIRE(size <= kRequestBytesMax, Code::kSizeOverflow, "a request over 1 EiB");
  // Nothing below can wrap: 1 EiB and a rounding of at most as much again are far from 2^64
  // (check_config).
  const Bytes rounded =
      has_divisions_ ? rounded_size(config_, size).value_or(size) : round_up(size, config_.granule);
  request = Request{size, rounded, fit_end(config_, rounded), is_small_size(config_, rounded)};
  return Status::ok();
}

[[gnu::always_inline]] inline Result<Address> DeviceCache::allocate(Bytes size,
                                                                    const Stream& stream,
                                                                    OutOfMemory* account) noexcept {
  if (const Status health = driver_.health(); !health.is_ok()) return health;
  Request request;
  if (const Status status = make_request(size, request); !status.is_ok()) return status;
  StreamHeap* heap = heap_of(stream, true);
  ASHLAR_REQUIRE(heap != nullptr, Code::kOutOfMemory, "the host has no memory for a stream's heap");
  {
    Guard guard(heap->lock);
    ASHLAR_REQUIRE(heap->serves(stream), Code::kInvalidHandle,
                   "the stream was retired or its handle reused");
    if (heap->has_pending() && !is_capturing()) {
      Guard lent = std::move(guard);
      const PollTally polled = poll(*heap, lent, kHitPollsMax);
      if (!polled.status.is_ok()) return polled.status;
      guard = std::move(lent);
    }
    const Address address = take_fit(*heap, request);
    if (!address.is_null()) [[likely]]
      return address;
    ++heap->pins;
  }
  // a copy: so this one need not be in memory
  return allocate_slow(*heap, Request(request), account);
}

/// Calls f(heap, is_small, block, guard) for the live block that starts at `address`, under its
/// heap's lock.
template <class F>
[[gnu::always_inline]] inline Status DeviceCache::with_live_block(const PageMap::Found& found,
                                                                  Address address, F&& f) noexcept {
  // In two variables: an array of owners would be written to memory and read back on the way to the
  // lock.
  Owner other = found.second;
  for (Owner owner = found.first; !owner.is_nobody() || !other.is_nobody();
       owner = std::exchange(other, Owner{})) {
    if (owner.is_nobody()) continue;
    StreamHeap& heap = *owner.heap();
    Guard guard(heap.lock);
    const block::BlockPool& pool = heap.pool(owner.is_small());
    const BlockIndex block = pool.find(address);
    if (block == block::kNoBlock) continue;
    // Only now: the page's other segment may be another device's, and that one may be gone (C26).
    if (const Status health = heap.cache.driver_.health(); !health.is_ok()) return health;
    ASHLAR_REQUIRE(pool.state(block) == BlockState::kLive, Code::kDoubleFree,
                   "already freed; its uses are not complete yet");
    return f(heap, owner.is_small(), block, guard);
  }
  return {Code::kUnknownPointer,
          "the allocator is not handing out that address: never issued, freed, or inside a block"};
}

/// Locked, may return unlocked: ends a live block.
[[gnu::always_inline]] inline Status DeviceCache::free_block(StreamHeap& heap, bool is_small,
                                                             BlockIndex block,
                                                             Guard& guard) noexcept {
  block::BlockPool& pool = heap.pool(is_small);
  const bool is_oversize = pool.size(block) >= heap.cache.config_.max_split_size;
  if (pool.user(block) == 0) {
    heap.release_now(is_small, block);
    if (is_oversize) heap.cache.count_oversize(-1);
    ASHLAR_VALIDATE(pool);
  } else {
    if (is_oversize) heap.cache.count_oversize(-1);
    free_pending(heap, std::move(guard), is_small, block);
  }
  return Status::ok();
}

[[gnu::always_inline]] inline Status DeviceCache::free(const PageMap::Found& found,
                                                       Address address) noexcept {
  return with_live_block(found, address,
                         [](StreamHeap& heap, bool is_small, BlockIndex block, Guard& guard) {
                           return free_block(heap, is_small, block, guard);
                         });
}

}  // namespace ashlar::inline v0::cache
