// What waits for other streams: events recorded at a free, polled at an allocation (rows DEV-6,
// DEV-7's deferral).
//
// C7: a block is findable only when every use is known complete. H4: its event is recorded before
// anybody can poll it. H8: queues are per stream, and those polled go behind the others, so one
// stuck event holds back its own stream alone.
#include <algorithm>

#include <ashlar/cache/device_cache.h>

namespace ashlar::inline v0::cache {

namespace {
constexpr unsigned kQueuesPerPoll = 16;
}

bool DeviceCache::may_record(StreamHeap& stream) noexcept {
  if (is_capturing()) return false;
  // Ask who the handle means now: it may be the per-thread default stream's, on another thread
  // (H5), or that of a stream destroyed without a word, come back as somebody else's (the head of
  // caching_allocator.h, (c)).
  const Result<Stream> here = driver_.identify(stream.stream.handle);
  if (here.is_ok() && here.value().id == stream.stream.id) return true;
  const bool is_gone =
      here.is_ok() || here.code() == Code::kInvalidHandle || here.code() == Code::kWrongDevice;
  if (is_gone && !stream.stream.thread_bound) stream.cache.lose_stream(stream);
  return false;
}

void DeviceCache::lose_stream(StreamHeap& heap) noexcept {
  auto alive = StreamHeap::Life::kAlive;
  heap.life.compare_exchange_strong(alive, StreamHeap::Life::kLost, std::memory_order_relaxed);
}

namespace {
/// Says that this thread may be recording on the stream's handle (see DeviceCache::retire).
class RecordingScope {
 public:
  explicit RecordingScope(StreamHeap& stream) noexcept : stream_(stream) {
    stream_.recording.fetch_add(1);
  }
  ~RecordingScope() { stream_.recording.fetch_sub(1); }
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;

 private:
  StreamHeap& stream_;
};
}  // namespace

Status DeviceCache::record_on(StreamHeap& user, EventSlot& slot) noexcept {
  const RecordingScope scope(user);
  DeviceCache& cache = user.cache;
  if (user.life.load() != StreamHeap::Life::kAlive || !cache.may_record(user)) {
    return {Code::kNotReady, "no event may be recorded on that stream now"};
  }
  if (const Status filled = cache.events_.fill(slot); !filled.is_ok()) return filled;
  const Status recorded = cache.driver_.event_record(slot.event, user.stream.handle);
  if (recorded.is_ok()) return recorded;
  cache.events_.give(slot);
  if (recorded.code() == Code::kInvalidHandle) cache.lose_stream(user);
  return recorded;
}

DeviceCache::UseState DeviceCache::record_event(const StreamHeap& heap, UseNode& node) noexcept {
  StreamHeap& user = *node.stream;
  if (heap.cache.is_over(user)) return UseState::kComplete;
  if (user.life.load() != StreamHeap::Life::kAlive) {
    if (&user.cache != &heap.cache) user.cache.ask_last_event(user);
    const Guard guard(user.lock);
    return user.completed == kEverything ? UseState::kComplete : UseState::kDeferred;
  }
  // Before the record, so that of two that cross, the one whose event was there first mostly goes
  // first in the queue.
  node.sequence = user.cache.sequence_.fetch_add(1, std::memory_order_relaxed);
  if (record_on(user, node.slot).is_ok()) return UseState::kRecorded;
  // A later event covers the same work: a slow path tries again.
  return heap.cache.is_over(user) ? UseState::kComplete : UseState::kDeferred;
}

void DeviceCache::settle_nodes(StreamHeap& heap, UseNode* list, bool by_sibling) noexcept {
  constexpr unsigned kBatch = 32;
  while (list != nullptr) {
    UseNode* nodes[kBatch];
    UseState states[kBatch];
    unsigned n = 0;
    for (; list != nullptr && n < kBatch; ++n) {
      nodes[n] = list;
      list = by_sibling ? list->sibling : list->next;
      states[n] = record_event(heap, *nodes[n]);
    }
    Guard guard(heap.lock);
    for (unsigned i = 0; i < n; ++i) {
      if (states[i] == UseState::kRecorded) heap.enqueue(nodes[i]);
      if (states[i] == UseState::kDeferred) heap.add_unrecorded(nodes[i]);
    }
    // Last, because a block's last finished use releases it, and its other uses must be filed by
    // then.
    for (unsigned i = 0; i < n; ++i) {
      if (states[i] == UseState::kComplete) heap.finish_use(nodes[i]);
    }
    if (list == nullptr) --heap.in_hand;
  }
}

void DeviceCache::free_pending(StreamHeap& heap, Guard guard, bool is_small,
                               BlockIndex block) noexcept {
  block::BlockPool& pool = heap.pool(is_small);
  pool.defer(block);
  UseNode* list = StreamHeap::first_use(pool.user(block));
  ASHLAR_ASSERT(list != nullptr, "heap(4): pending without a use");
  ++heap.in_hand;
  guard.unlock();
  settle_nodes(heap, list, true);
}

void DeviceCache::retry_unrecorded(StreamHeap& heap) noexcept {
  UseNode* list = nullptr;
  {
    const Guard guard(heap.lock);
    list = heap.take_unrecorded();
    if (list == nullptr) return;
    ++heap.in_hand;
  }
  settle_nodes(heap, list, false);
}

DeviceCache::PollTally DeviceCache::poll(StreamHeap& heap, Guard& guard, unsigned budget) noexcept {
  PollTally tally;
  unsigned fruitless = 0;
  // Asked under the lock: an announcement of a capture waits for what is in hand, and this is not
  // yet (C9).
  while (budget > 0 && !is_capturing()) {
    UseNode* queues[kQueuesPerPoll];
    bool done[kQueuesPerPoll] = {};
    const unsigned n = heap.take_queues(queues, std::min(budget, kQueuesPerPoll));
    if (n == 0) break;
    budget -= n;
    ++heap.in_hand;
    guard.unlock();
    unsigned finished = 0;
    for (unsigned i = 0; i < n; ++i) {
      DeviceCache& cache = queues[i]->stream->cache;
      const Status status = cache.driver_.event_query(queues[i]->slot.event);
      done[i] = status.is_ok() || is_over(*queues[i]->stream);
      if (done[i]) {
        cache.events_.give(queues[i]->slot);
        ++finished;
      }
    }
    guard.relock();
    --heap.in_hand;
    for (unsigned i = 0; i < n; ++i) {
      UseNode* head = queues[i];
      UseNode* rest = done[i] ? StreamHeap::advance_queue(head) : head;
      if (rest != nullptr) heap.put_queue(rest);
      if (done[i]) heap.finish_use(head);
    }
    tally.completed += finished;
    // This device's loss ends the call (C26); another's, whose stream used a block of ours, only
    // ends that use.
    tally.status = driver_.health();
    fruitless = finished == 0 ? fruitless + n : 0;
    if (!tally.status.is_ok() || fruitless >= heap.queue_count()) break;
  }
  return tally;
}

}  // namespace ashlar::inline v0::cache
