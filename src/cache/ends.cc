// The ends of things: of a stream, of what must not run in a capture, of the allocator.
//
// C9: after quiesce() nothing that asked before the announcement is still on its way to the device. C14, C25: at its end the
// allocator holds no event, and no segment but those that work not known complete may still touch.
#include <thread>

#include <ashlar/cache/device_cache.h>

namespace ashlar {
inline namespace v0 {

Status DeviceCache::retire(Stream stream) noexcept {
  const std::lock_guard reclaiming(reclaim_);
  StreamHeap* heap = nullptr;
  {
    const std::lock_guard lock(streams_lock_);
    heap = streams_.find(stream.id);
  }
  ASHLAR_REQUIRE(heap != nullptr, Code::kNotFound, "the allocator has never seen that stream, or forgotten it");
  ASHLAR_REQUIRE(heap->life.load() == StreamHeap::Life::kAlive, Code::kInvalidHandle, "the stream is dead already");
  const Result<EventHandle> last = record_on(*heap);
  heap->life.store(last.is_ok() ? StreamHeap::Life::kRetired : StreamHeap::Life::kLost);
  // The caller destroys the handle next: nobody may still be recording on it.
  while (heap->recording.load() != 0) std::this_thread::yield();
  if (!last.is_ok()) return Status::ok();
  for (unsigned i = 0; i < heap->mark_count; ++i) events_.give(heap->marks[i].event);
  heap->marks[0] = {last.value(), kEverything, sequence_.fetch_add(1, std::memory_order_relaxed)};
  heap->mark_count = 1;
  return Status::ok();
}

void DeviceCache::quiesce() noexcept {
  { const std::lock_guard reclaiming(reclaim_); }
  while (growing_.load() != 0) std::this_thread::yield();
  for (StreamHeap* heap = first_heap_.load(); heap != nullptr; heap = heap->next_heap.load()) {
    for (bool busy = true; busy;) {
      {
        const Guard guard(heap->lock);
        busy = heap->in_hand > 0;
      }
      if (busy) std::this_thread::yield();
    }
  }
}

void DeviceCache::record_deferred() noexcept {
  for (StreamHeap* heap = first_heap_.load(); heap != nullptr; heap = heap->next_heap.load()) retry_unrecorded(*heap);
}

bool DeviceCache::has_unfinished() const noexcept {
  bool incomplete = false;
  for (StreamHeap* heap = first_heap_.load(); heap != nullptr; heap = heap->next_heap.load()) {
    const Guard guard(heap->lock);
    incomplete |= heap->has_pending() || heap->has_unrecorded() || heap->newest_release > heap->completed;
  }
  return incomplete;
}

void DeviceCache::settle(bool synchronize) noexcept {
  settled_ = !synchronize || driver_.synchronize().is_ok() || is_lost();
}

void DeviceCache::give_everything_back() noexcept {
  // Where this device is gone its heaps may still hold events of another, which is not.
  for (StreamHeap* heap = first_heap_.load(); heap != nullptr; heap = heap->next_heap.load()) {
    if (settled_) {
      complete_marks(*heap, heap->mark_count);
    } else {
      query_marks(*heap);  // what could not be waited for is only asked; the rest stays with the device
      for (unsigned i = 0; i < heap->mark_count; ++i) events_.give(heap->marks[i].event);
      heap->mark_count = 0;
    }
    UseNode* done[1];
    for (;;) {
      EventHandle event;
      DeviceCache* owner = nullptr;
      {
        const Guard guard(heap->lock);
        if (heap->take_queues(done, 1) == 0) break;
        event = done[0]->event;
        owner = &done[0]->stream->cache;
        UseNode* rest = StreamHeap::advance_queue(done[0]);
        if (rest != nullptr) heap->put_queue(rest);
        // A device that could not be synchronised keeps what its streams may still touch.
        if (owner->settled_) heap->finish_use(done[0]);
      }
      owner->events_.give(event);
    }
    const Guard guard(heap->lock);
    for (UseNode* list = heap->take_unrecorded(); list != nullptr;) {
      UseNode* node = list;
      list = list->next;
      if (node->stream->cache.settled_) heap->finish_use(node);
    }
    if (settled_) heap->completed = kEverything;
  }
  if (driver_.health().is_ok()) release_idle(Bytes::max(), Bytes{});
}

}  // namespace v0
}  // namespace ashlar
