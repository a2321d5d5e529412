// The hit and the free: what every request does, with one short lock and no device call.
#include <ashlar/cache/device_cache.h>

#include <algorithm>
#include <new>

namespace ashlar {
inline namespace v0 {

namespace {
/// Most events one hit polls (C17).
constexpr unsigned kHitPollsMax = 16;
}  // namespace

DeviceCache::DeviceCache(Device& device, SharedState& shared) noexcept
    : shared_(shared), config_(shared.config), id_(device.traits().id), driver_(device), events_(driver_) {
  fraction_pending_ = config_.memory_fraction < 1.0;
}

DeviceCache::~DeviceCache() {
  for (StreamHeap* heap = first_heap_.load(); heap != nullptr;) {
    StreamHeap* next = heap->next_heap.load();
    delete heap;
    heap = next;
  }
  for (SegmentRecord* record = segment_records_; record != nullptr;) {
    SegmentRecord* before = record->made_before;
    delete record;
    record = before;
  }
}

StreamHeap* DeviceCache::make_heap(Stream stream) noexcept {
  const std::lock_guard lock(streams_lock_);
  if (StreamHeap* heap = streams_.find(stream.id)) return heap;
  std::unique_ptr<StreamHeap> heap(new (std::nothrow) StreamHeap(*this, stream, config_.granule));
  if (!heap || !streams_.insert(stream.id, heap.get())) return nullptr;
  heap->ordinal = last_heap_ == nullptr ? 0 : last_heap_->ordinal + 1;
  if (!stream.thread_bound) {
    // A handle seen under another identity: that stream was destroyed without a word (H2). Never use its handle again.
    for (StreamHeap* other = first_heap_.load(); other != nullptr; other = other->next_heap.load()) {
      if (other->stream.handle == stream.handle && !other->stream.thread_bound) lose_stream(*other);
    }
  }
  (last_heap_ == nullptr ? first_heap_ : last_heap_->next_heap).store(heap.get(), std::memory_order_release);
  last_heap_ = heap.release();
  return last_heap_;
}

inline Status DeviceCache::make_request(Bytes size, Request& request) const noexcept {
  ASHLAR_REQUIRE(size <= kRequestBytesMax, Code::kSizeOverflow, "a request over 1 EiB");
  // Nothing below can wrap: 1 EiB and a rounding of at most as much again are far from 2^64 (check_config).
  const Bytes rounded = rounded_size(config_, size).value_or(size);
  request = {size, rounded, fit_end(config_, rounded), is_small_size(config_, rounded)};
  return Status::ok();
}

Result<Address> DeviceCache::allocate(Bytes size, Stream stream, OutOfMemory* account) noexcept {
  if (const Status health = driver_.health(); !health.is_ok()) return health;
  Request request;
  if (const Status status = make_request(size, request); !status.is_ok()) return status;
  StreamHeap* heap = heap_of(stream);
  ASHLAR_REQUIRE(heap != nullptr, Code::kOutOfMemory, "the host has no memory for a stream's heap");
  ASHLAR_REQUIRE(heap->life.load(std::memory_order_relaxed) == StreamHeap::Life::kAlive, Code::kInvalidHandle,
                 "the stream was retired or its handle reused");
  {
    Guard guard(heap->lock);
    if (heap->has_pending() && !is_capturing()) {
      const PollTally polled = poll(*heap, guard, kHitPollsMax);
      if (!polled.status.is_ok()) return polled.status;
    }
    const Address address = take_fit(*heap, request);
    if (!address.is_null()) return address;
  }
  return allocate_slow(*heap, request, account);
}

inline Address DeviceCache::take_fit(StreamHeap& heap, const Request& request) noexcept {
  const BlockIndex block = heap.pool(request.is_small).best_fit(request.size, request.fit_end);
  return block == block::kNoBlock ? Address{} : take_block(heap, request, block, nullptr);
}

Address DeviceCache::search_locked(StreamHeap& heap, const Request& request) noexcept { return take_fit(heap, request); }

Address DeviceCache::take_block(StreamHeap& heap, const Request& request, BlockIndex block, UseNode* owner) noexcept {
  if (!heap.reserve_nodes(1)) return Address{};
  block::BlockPool& pool = heap.pool(request.is_small);
  const bool split = should_split(config_, request.size, pool.size(block));
  const BlockIndex taken = pool.take(block, request.size, split, request.requested, StreamHeap::as_word(owner));
  if (taken == block::kNoBlock) return Address{};
  heap.stats.on_allocate(request.is_small, pool.size(taken), request.requested, pool.counts(),
                         heap.pool(!request.is_small).counts());
  heap.sample(request.is_small);
  if (owner != nullptr) {
    owner->block = taken;
    owner->is_small = request.is_small;
  }
  if (request.size >= config_.max_split_size) count_oversize(+1);
  ASHLAR_VALIDATE(pool);
  return pool.address(taken);
}

void DeviceCache::count_oversize(int change) noexcept {
  const Guard guard(reserve_lock_);
  Stat& stat = oversize_allocations_;
  if (change > 0) {
    ++stat.current;
    ++stat.increased;
    stat.peak = std::max(stat.peak, stat.current);
  } else {
    --stat.current;
    ++stat.decreased;
  }
}

/// Calls f(heap, is_small, block, guard) for the live block that starts at `address`, under its heap's lock.
template <class F>
inline Status DeviceCache::with_live_block(const PageMap::Found& found, Address address, F&& f) noexcept {
  for (const Owner owner : {found.first, found.second}) {
    if (owner.is_nobody()) continue;
    StreamHeap& heap = *owner.heap();
    if (const Status health = heap.cache.driver_.health(); !health.is_ok()) return health;
    Guard guard(heap.lock);
    const block::BlockPool& pool = heap.pool(owner.is_small());
    const BlockIndex block = pool.find(address);
    if (block == block::kNoBlock) continue;
    ASHLAR_REQUIRE(pool.state(block) == block::State::kLive, Code::kDoubleFree,
                   "already freed; its uses are not complete yet");
    return f(heap, owner.is_small(), block, guard);
  }
  return {Code::kUnknownPointer, "the allocator is not handing out that address: never issued, freed, or inside a block"};
}

/// Locked, may return unlocked: ends a live block.
inline Status DeviceCache::free_block(StreamHeap& heap, bool is_small, BlockIndex block, Guard& guard) noexcept {
  block::BlockPool& pool = heap.pool(is_small);
  if (pool.size(block) >= heap.cache.config_.max_split_size) heap.cache.count_oversize(-1);
  if (pool.user(block) == 0) {
    heap.release_now(is_small, block);
    ASHLAR_VALIDATE(pool);
  } else {
    free_pending(heap, guard, is_small, block);
  }
  return Status::ok();
}

Status DeviceCache::free(const PageMap::Found& found, Address address) noexcept {
  return with_live_block(found, address, [](StreamHeap& heap, bool is_small, BlockIndex block, Guard& guard) {
    return free_block(heap, is_small, block, guard);
  });
}

namespace {
/// Does the block's list already say that `user` uses it? Locked.
bool is_noted(const StreamHeap& heap, std::uint64_t uses, const StreamHeap& user) noexcept {
  for (const UseNode* use = StreamHeap::first_use(uses); use != nullptr; use = use->sibling) {
    if (use->stream == &user) return true;
  }
  // The heap's own stream needs no note: what the heap hands out again is ordered behind it (epochs; C6).
  return &heap == &user;
}

/// Locked. REQUIRES: a spare node.
void note_use(StreamHeap& heap, bool is_small, block::BlockIndex block, StreamHeap& user) noexcept {
  block::BlockPool& pool = heap.pool(is_small);
  UseNode* node = heap.take_node();
  node->stream = &user;
  node->block = block;
  node->is_small = is_small;
  node->sibling = StreamHeap::first_use(pool.user(block));
  pool.set_user(block, StreamHeap::as_word(node));
}
}  // namespace

Status DeviceCache::record_use(const PageMap::Found& found, Address address, StreamHeap& user) noexcept {
  return with_live_block(found, address, [&user](StreamHeap& heap, bool is_small, BlockIndex block, Guard&) {
    if (is_noted(heap, heap.pool(is_small).user(block), user)) return Status::ok();
    ASHLAR_REQUIRE(heap.reserve_nodes(1), Code::kOutOfMemory, "the host has no memory for the note of a use");
    note_use(heap, is_small, block, user);
    return Status::ok();
  });
}

Status DeviceCache::free_used_on(const PageMap::Found& found, Address address, StreamHeap& user) noexcept {
  return with_live_block(found, address, [&user](StreamHeap& heap, bool is_small, BlockIndex block, Guard& guard) {
    // heap(3) has a node in hand for every live block, this one too: it goes pending before the lock is let go.
    if (!is_noted(heap, heap.pool(is_small).user(block), user)) note_use(heap, is_small, block, user);
    return free_block(heap, is_small, block, guard);
  });
}

Result<AllocationInfo> DeviceCache::info(const PageMap::Found& found, Address address) noexcept {
  AllocationInfo info;
  const Status status = with_live_block(found, address, [&](StreamHeap& heap, bool is_small, BlockIndex block, Guard&) {
    const block::BlockPool& pool = heap.pool(is_small);
    const block::BlockView view = pool.view(block);
    const block::SegmentView segment = pool.view(view.segment);
    info = {view.address, view.size, view.requested, heap.stream, segment.base, segment.size};
    for (const UseNode* use = StreamHeap::first_use(view.user); use != nullptr; use = use->sibling) {
      if (use->is_owner) info.stream = use->stream->stream;
    }
    return Status::ok();
  });
  return status.is_ok() ? Result<AllocationInfo>(info) : Result<AllocationInfo>(status);
}

}  // namespace v0
}  // namespace ashlar
