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

Result<Request> DeviceCache::make_request(Bytes size) const noexcept {
  ASHLAR_REQUIRE(size <= kRequestBytesMax, Code::kSizeOverflow, "a request over 1 EiB");
  const std::optional<Bytes> rounded = rounded_size(config_, size);
  ASHLAR_REQUIRE(rounded && segment_size(config_, *rounded), Code::kSizeOverflow, "a size whose rounding wraps");
  return Request{size, *rounded, fit_end(config_, *rounded), is_small_size(config_, *rounded)};
}

Result<Address> DeviceCache::allocate(Bytes size, Stream stream, OutOfMemory* account) noexcept {
  if (const Status health = driver_.health(); !health.is_ok()) return health;
  const Result<Request> request = make_request(size);
  if (!request.is_ok()) return request.status();
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
    const Address address = take_fit(*heap, request.value());
    if (!address.is_null()) return address;
  }
  return allocate_slow(*heap, request.value(), account);
}

Address DeviceCache::take_fit(StreamHeap& heap, const Request& request) noexcept {
  const BlockIndex block = heap.pool(request.is_small).best_fit(request.size, request.fit_end);
  return block == block::kNoBlock ? Address{} : take_block(heap, request, block, nullptr);
}

Address DeviceCache::take_block(StreamHeap& heap, const Request& request, BlockIndex block, UseNode* owner) noexcept {
  if (!heap.reserve_nodes(1)) return Address{};
  block::BlockPool& pool = heap.pool(request.is_small);
  const bool split = should_split(config_, request.size, pool.size(block));
  const BlockIndex taken = pool.take(block, request.size, split, request.requested, StreamHeap::as_word(owner));
  if (taken == block::kNoBlock) return Address{};
  const block::BlockView view = pool.view(taken);
  heap.stats.on_allocate(HeapStats::pool_of(request.is_small), view.size, request.requested);
  heap.sample(request.is_small);
  if (owner != nullptr) {
    owner->block = taken;
    owner->is_small = request.is_small;
  }
  if (request.size >= config_.max_split_size) {
    const Guard guard(reserve_lock_);
    oversize_allocations_.current += 1;
    oversize_allocations_.increased += 1;
    oversize_allocations_.peak = std::max(oversize_allocations_.peak, oversize_allocations_.current);
  }
  ASHLAR_VALIDATE(pool);
  return view.address;
}

/// A live block found by address.
struct DeviceCache::Found {
  BlockIndex block = block::kNoBlock;
  bool is_small = false;
};

namespace {
Status not_live(block::State state) noexcept {
  if (state == block::State::kPending) return {Code::kDoubleFree, "already freed; its uses are not complete yet"};
  return {Code::kUnknownPointer, "the allocator is not handing out that address: never issued, freed, or inside a block"};
}
}  // namespace

Status DeviceCache::find_block(SegmentRecord* segment, Address address, Guard& guard, StreamHeap*& heap, Found& found) noexcept {
  // The caller locked segment->heap's lock as it was; the segment may have changed hands in between (it had no live block
  // then, so `address` is stale).
  const bool ours = segment->heap.load(std::memory_order_relaxed) == heap && segment->contains(address);
  found.is_small = segment->is_small;
  found.block = ours ? heap->pool(found.is_small).find(address) : block::kNoBlock;
  if (found.block != block::kNoBlock && heap->pool(found.is_small).state(found.block) == block::State::kLive) {
    return Status::ok();
  }
  const auto state = found.block == block::kNoBlock ? block::State::kFree : heap->pool(found.is_small).state(found.block);
  guard.unlock();
  return not_live(state);
}

Status DeviceCache::free(SegmentRecord* segment, Address address) noexcept {
  StreamHeap* heap = segment->heap.load(std::memory_order_acquire);
  if (heap == nullptr) return not_live(block::State::kFree);
  if (const Status health = heap->cache.driver_.health(); !health.is_ok()) return health;
  Guard guard(heap->lock);
  Found found;
  if (const Status status = find_block(segment, address, guard, heap, found); !status.is_ok()) return status;
  block::BlockPool& pool = heap->pool(found.is_small);
  const block::BlockView view = pool.view(found.block);
  if (view.size >= heap->cache.config_.max_split_size) {
    const Guard reserve(heap->cache.reserve_lock_);
    --heap->cache.oversize_allocations_.current;
    ++heap->cache.oversize_allocations_.decreased;
  }
  if (view.user == 0) {
    heap->release_now(found.is_small, found.block, view.size, view.requested);
    ASHLAR_VALIDATE(pool);
    return Status::ok();
  }
  free_pending(*heap, guard, found.is_small, found.block);
  return Status::ok();
}

namespace {
/// Does the block's list already say that `user` uses it? Locked.
bool is_noted(const StreamHeap& heap, std::uint64_t uses, const StreamHeap& user) noexcept {
  const UseNode* first = StreamHeap::first_use(uses);
  for (const UseNode* use = first; use != nullptr; use = use->sibling) {
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

Status DeviceCache::record_use(SegmentRecord* segment, Address address, StreamHeap& user) noexcept {
  StreamHeap* heap = segment->heap.load(std::memory_order_acquire);
  if (heap == nullptr) return not_live(block::State::kFree);
  if (const Status health = heap->cache.driver_.health(); !health.is_ok()) return health;
  Guard guard(heap->lock);
  Found found;
  if (const Status status = find_block(segment, address, guard, heap, found); !status.is_ok()) return status;
  if (is_noted(*heap, heap->pool(found.is_small).user(found.block), user)) return Status::ok();
  ASHLAR_REQUIRE(heap->reserve_nodes(1), Code::kOutOfMemory, "the host has no memory for the note of a use");
  note_use(*heap, found.is_small, found.block, user);
  return Status::ok();
}

Status DeviceCache::free_used_on(SegmentRecord* segment, Address address, StreamHeap& user) noexcept {
  StreamHeap* heap = segment->heap.load(std::memory_order_acquire);
  if (heap == nullptr) return not_live(block::State::kFree);
  if (const Status health = heap->cache.driver_.health(); !health.is_ok()) return health;
  {
    Guard guard(heap->lock);
    Found found;
    if (const Status status = find_block(segment, address, guard, heap, found); !status.is_ok()) return status;
    if (!is_noted(*heap, heap->pool(found.is_small).user(found.block), user)) {
      // heap(3) has a node in hand for every live block, this one too: it goes pending before the lock is let go.
      note_use(*heap, found.is_small, found.block, user);
      const Bytes size = heap->pool(found.is_small).size(found.block);
      if (size >= heap->cache.config_.max_split_size) {
        const Guard reserve(heap->cache.reserve_lock_);
        --heap->cache.oversize_allocations_.current;
        ++heap->cache.oversize_allocations_.decreased;
      }
      free_pending(*heap, guard, found.is_small, found.block);
      return Status::ok();
    }
  }
  return free(segment, address);
}

Result<AllocationInfo> DeviceCache::info(const SegmentRecord* segment, Address address) noexcept {
  StreamHeap* heap = segment->heap.load(std::memory_order_acquire);
  if (heap == nullptr) return not_live(block::State::kFree);
  Guard guard(heap->lock);
  Found found;
  // find_block only reads the record; the page map hands out mutable ones.
  const Status status = find_block(const_cast<SegmentRecord*>(segment), address, guard, heap, found);
  if (!status.is_ok()) return status;
  const block::BlockView view = heap->pool(found.is_small).view(found.block);
  Stream stream = heap->stream;
  for (const UseNode* use = StreamHeap::first_use(view.user); use != nullptr; use = use->sibling) {
    if (use->is_owner) stream = use->stream->stream;
  }
  return AllocationInfo{view.address, view.size, view.requested, stream, segment->address(), segment->size()};
}

}  // namespace v0
}  // namespace ashlar
