#include <ashlar/cache/use_tracker.h>

#include <algorithm>

#include <ashlar/cache/device_cache.h>

namespace ashlar::inline v0::cache {
namespace {

constexpr unsigned kQueuesPerPoll = 16;

/// Says that this thread may be recording on the stream's handle (Reclaimer::retire waits for it).
class RecordingScope {
 public:
  explicit RecordingScope(StreamHeap& stream) noexcept : stream_(stream) {
    stream_.life.begin_recording();
  }
  ~RecordingScope() { stream_.life.end_recording(); }
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;

 private:
  StreamHeap& stream_;
};

}  // namespace

bool UseTracker::is_over(const StreamHeap& user) const noexcept {
  const UseTracker& theirs = user.cache.uses();
  return &theirs != this && theirs.is_lost();
}

bool UseTracker::may_record(StreamHeap& stream) noexcept {
  if (shared_.is_capturing()) return false;
  // Ask who the handle means now: it may be the per-thread default stream's, on another thread
  // (H5), or that of a stream destroyed without an announcement, come back as another stream's (the
  // head of caching_allocator.h, (c)).
  const Result<Stream> here = driver_.identify(stream.stream.handle);
  if (here.is_ok() && here.value().id == stream.stream.id) return true;
  const bool is_gone =
      here.is_ok() || here.code() == Code::kInvalidHandle || here.code() == Code::kWrongDevice;
  if (is_gone && !stream.stream.thread_bound) stream.life.lose();
  return false;
}

Status UseTracker::record_on(StreamHeap& user, EventSlot& slot) noexcept {
  const RecordingScope scope(user);
  if (!user.life.is_alive() || !may_record(user)) {
    return {Code::kNotReady, "no event may be recorded on that stream now"};
  }
  if (const Status filled = events_.fill(slot); !filled.is_ok()) return filled;
  const Status recorded = driver_.event_record(slot.event, user.stream.handle);
  if (recorded.is_ok()) return recorded;
  events_.give(slot);
  if (recorded.code() == Code::kInvalidHandle) user.life.lose();
  return recorded;
}

UseTracker::Recorded UseTracker::record_use(const StreamHeap& heap, UseNode& node) noexcept {
  StreamHeap& user = *node.stream;
  const UseTracker& ours = heap.cache.uses();
  if (ours.is_over(user)) return Recorded::kComplete;
  if (!user.life.is_alive()) {
    if (&user.cache != &heap.cache) user.cache.reclaimer().ask_last_event(user);
    const Guard guard(user.lock);
    return user.clock.completed() == kEverything ? Recorded::kComplete : Recorded::kDeferred;
  }
  UseTracker& theirs = user.cache.uses();
  node.sequence = theirs.next_sequence();
  if (theirs.record_on(user, node.slot).is_ok()) return Recorded::kYes;
  // A later event covers the same work: a slow path tries again.
  return ours.is_over(user) ? Recorded::kComplete : Recorded::kDeferred;
}

void UseTracker::settle(StreamHeap& heap, UseNode* list, Link link) noexcept {
  constexpr unsigned kBatch = 32;
  while (list != nullptr) {
    UseNode* nodes[kBatch];
    Recorded recorded[kBatch];
    unsigned n = 0;
    for (; list != nullptr && n < kBatch; ++n) {
      nodes[n] = list;
      list = link == Link::kSibling ? list->sibling : list->next;
      recorded[n] = record_use(heap, *nodes[n]);
    }
    const Guard guard(heap.lock);
    for (unsigned i = 0; i < n; ++i) {
      if (recorded[i] == Recorded::kYes) heap.uses.enqueue(nodes[i]);
      if (recorded[i] == Recorded::kDeferred) heap.uses.add_unrecorded(nodes[i]);
    }
    // Last, because a block's last finished use releases it, and its other uses must be filed by
    // then.
    for (unsigned i = 0; i < n; ++i) {
      if (recorded[i] == Recorded::kComplete) heap.finish_use(nodes[i]);
    }
    if (list == nullptr) heap.uses.end_in_hand();
  }
}

void UseTracker::free_pending(StreamHeap& heap, PoolId pool, block::BlockIndex block) noexcept {
  block::BlockPool& in = heap.pool(pool);
  in.defer(block);
  UseNode* list = StreamHeap::first_use(in.user(block));
  ASHLAR_ASSERT(list != nullptr, "heap(4): pending without a use");
  heap.uses.begin_in_hand();
  heap.lock.unlock();
  settle(heap, list, Link::kSibling);
}

void UseTracker::retry_unrecorded(StreamHeap& heap) noexcept {
  UseNode* list = nullptr;
  {
    const Guard guard(heap.lock);
    list = heap.uses.take_unrecorded();
    if (list == nullptr) return;
    heap.uses.begin_in_hand();
  }
  settle(heap, list, Link::kNext);
}

Status UseTracker::poll(StreamHeap& heap, unsigned budget) noexcept {
  unsigned fruitless = 0;
  // Asked under the lock: an announcement of a capture waits for what is in hand, and this is not
  // yet (C9).
  while (budget > 0 && !shared_.is_capturing()) {
    UseNode* queues[kQueuesPerPoll];
    bool done[kQueuesPerPoll] = {};
    const unsigned n = heap.uses.take_queues(queues, std::min(budget, kQueuesPerPoll));
    if (n == 0) break;
    budget -= n;
    heap.uses.begin_in_hand();
    heap.lock.unlock();
    unsigned finished = 0;
    for (unsigned i = 0; i < n; ++i) {
      UseTracker& theirs = queues[i]->stream->cache.uses();
      const Status status = theirs.driver_.event_query(queues[i]->slot.event);
      done[i] = status.is_ok() || is_over(*queues[i]->stream);
      if (done[i]) {
        theirs.events_.give(queues[i]->slot);
        ++finished;
      }
    }
    heap.lock.lock();
    heap.uses.end_in_hand();
    for (unsigned i = 0; i < n; ++i) {
      UseNode* head = queues[i];
      UseNode* rest = done[i] ? PendingUses::advance_queue(head) : head;
      if (rest != nullptr) heap.uses.put_queue(rest);
      if (done[i]) heap.finish_use(head);
    }
    fruitless = finished == 0 ? fruitless + n : 0;
    // This device's loss ends the call (C26); another's, whose stream used a block of ours, only
    // ends that use.
    const Status health = driver_.health();
    if (!health.is_ok() || fruitless >= heap.uses.queue_count()) return health;
  }
  return Status::ok();
}

}  // namespace ashlar::inline v0::cache
