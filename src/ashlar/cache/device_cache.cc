// Heaps, uses noted on blocks, and the out-of-line copies of the hit (hit_inl.h) for the slow
// paths.
#include <ashlar/cache/hit_inl.h>

#include <algorithm>
#include <new>

namespace ashlar::inline v0::cache {

namespace {
/// Most dead streams whose last event is asked when a new one's heap is made.
constexpr unsigned kDeadAskedMax = 16;
}  // namespace

DeviceCache::DeviceCache(device::Device& device, SharedState& shared) noexcept
    : shared_(shared),
      config_(shared.config),
      has_divisions_(std::any_of(config_.roundup_divisions.begin(), config_.roundup_divisions.end(),
                                 [](std::uint32_t steps) { return steps > 1; })),
      id_(device.traits().id),
      driver_(device, shared.drivers),
      events_(driver_) {
  fraction_pending_ = config_.memory_fraction < 1.0;
}

DeviceCache::~DeviceCache() {
  for (StreamHeap* heap = first_heap_.load(); heap != nullptr;) {
    StreamHeap* next = heap->next_heap.load();
    delete heap;
    heap = next;
  }
  for (DeviceSegment* record = segment_records_; record != nullptr;) {
    DeviceSegment* before = record->made_before;
    delete record;
    record = before;
  }
}

StreamHeap* DeviceCache::find_forgotten(bool may_ask) noexcept {
  unsigned asks_left = may_ask && !is_capturing() ? kDeadAskedMax : 0;
  for (StreamHeap* heap = first_heap_.load(); heap != nullptr; heap = heap->next_heap.load()) {
    if (heap->life.load() == StreamHeap::Life::kAlive) continue;
    if (asks_left > 0 && heap->mark_count > 0) {
      --asks_left;
      query_marks(*heap);
    }
    const Guard guard(heap->lock);
    if (heap->is_forgotten()) return heap;
  }
  return nullptr;
}

bool DeviceCache::reuse_heap(StreamHeap& heap, const Stream& stream) noexcept {
  const Guard guard(heap.lock);
  // a caller's mistake since: something of the dead stream again
  if (!heap.begin_passing()) return false;
  streams_.erase(&heap);
  heap.serve(stream);
  return streams_.insert(&heap);
}

StreamHeap* DeviceCache::add_heap(const Stream& stream) noexcept {
  std::unique_ptr<StreamHeap> heap(new (std::nothrow) StreamHeap(*this, stream, config_.granule));
  if (!heap || !streams_.insert(heap.get())) return nullptr;
  (last_heap_ == nullptr ? first_heap_ : last_heap_->next_heap)
      .store(heap.get(), std::memory_order_release);
  last_heap_ = heap.release();
  return last_heap_;
}

StreamHeap* DeviceCache::make_heap(const Stream& stream, bool may_ask) noexcept {
  // A dead stream's heap, where no slow path is under way that may hold one; else as many would
  // pile up as streams ever were.
  const std::unique_lock reclaiming(reclaim_, std::try_to_lock);
  StreamHeap* heap = reclaiming ? find_forgotten(may_ask) : nullptr;
  const std::lock_guard lock(streams_lock_);
  if (StreamHeap* made = streams_.find(stream.id)) return made;
  if (heap == nullptr || !reuse_heap(*heap, stream)) heap = add_heap(stream);
  if (heap == nullptr || stream.thread_bound) return heap;
  // A handle seen under another identity: that stream was destroyed without a word (H2). Never use
  // its handle again.
  for (StreamHeap* other = first_heap_.load(); other != nullptr; other = other->next_heap.load()) {
    const bool is_same_handle =
        other->stream.handle == stream.handle && !other->stream.thread_bound;
    if (other != heap && is_same_handle) lose_stream(*other);
  }
  return heap;
}

Address DeviceCache::take_block(StreamHeap& heap, const Request& request, BlockIndex block,
                                UseNode* owner) noexcept {
  if (!heap.reserve_nodes(1)) return Address{};
  return take_now(heap, heap.pool(request.is_small), request, block, owner);
}

Address DeviceCache::search_locked(StreamHeap& heap, const Request& request) noexcept {
  return take_fit(heap, request);
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

namespace {
/// Does the block's list already say that `user` uses it? Locked.
bool is_noted(const StreamHeap& heap, std::uint64_t uses, const StreamHeap& user) noexcept {
  for (const UseNode* use = StreamHeap::first_use(uses); use != nullptr; use = use->sibling) {
    if (use->stream == &user) return true;
  }
  // The heap's own stream needs no note: what the heap hands out again is ordered behind it
  // (epochs; C6).
  return &heap == &user;
}

/// Locked. REQUIRES: a spare node. A stream that is dead and forgotten uses nothing any more.
void note_use(StreamHeap& heap, bool is_small, block::BlockIndex block, StreamHeap& user) noexcept {
  block::BlockPool& pool = heap.pool(is_small);
  UseNode* node = heap.take_node();
  if (!user.refer(node)) return heap.give_node(node);
  node->block = block;
  node->is_small = is_small;
  node->sibling = StreamHeap::first_use(pool.user(block));
  pool.set_user(block, StreamHeap::as_word(node));
}
}  // namespace

Status DeviceCache::record_use(const PageMap::Found& found, Address address,
                               StreamHeap& user) noexcept {
  return with_live_block(found, address,
                         [&user](StreamHeap& heap, bool is_small, BlockIndex block, Guard&) {
                           if (is_noted(heap, heap.pool(is_small).user(block), user))
                             return Status::ok();
                           ASHLAR_REQUIRE(heap.reserve_nodes(1), Code::kOutOfMemory,
                                          "the host has no memory for the note of a use");
                           note_use(heap, is_small, block, user);
                           return Status::ok();
                         });
}

Status DeviceCache::free_used_on(const PageMap::Found& found, Address address,
                                 StreamHeap& user) noexcept {
  return with_live_block(found, address,
                         [&user](StreamHeap& heap, bool is_small, BlockIndex block, Guard& guard) {
                           // heap(3) has a node in hand for every live block, this one too: where a
                           // use is noted, it goes pending before the lock is let go.
                           if (!is_noted(heap, heap.pool(is_small).user(block), user))
                             note_use(heap, is_small, block, user);
                           return free_block(heap, is_small, block, guard);
                         });
}

Result<AllocationInfo> DeviceCache::info(const PageMap::Found& found, Address address) noexcept {
  AllocationInfo info;
  const Status status = with_live_block(
      found, address, [&](StreamHeap& heap, bool is_small, BlockIndex block, Guard&) {
        const block::BlockPool& pool = heap.pool(is_small);
        const block::BlockView view = pool.view(block);
        const block::SegmentView segment = pool.view(pool.segment(block));
        info = {view.address, view.size, view.requested, heap.stream, segment.base, segment.size};
        for (const UseNode* use = StreamHeap::first_use(view.user); use != nullptr;
             use = use->sibling) {
          if (use->is_owner) info.stream = use->stream->stream;
        }
        return Status::ok();
      });
  return status.is_ok() ? Result<AllocationInfo>(info) : Result<AllocationInfo>(status);
}

}  // namespace ashlar::inline v0::cache
