// The ends of things: of a stream, of what must not run in a capture, of the allocator.
//
// C9: after quiesce() nothing that asked before the announcement is still on its way to the device.
// C14, C25: at its end the allocator holds no event, and no segment but those that work not known
// complete may still touch.
#include <thread>
#include <utility>

#include <ashlar/cache/device_cache.h>

namespace ashlar::inline v0::cache {

Status DeviceCache::retire(Stream stream) noexcept {
  const std::lock_guard reclaiming(reclaim_);
  StreamHeap* heap = nullptr;
  {
    const std::lock_guard lock(streams_lock_);
    heap = streams_.find(stream.id);
  }
  ASHLAR_REQUIRE(heap != nullptr, Code::kNotFound,
                 "the allocator has never seen that stream, or forgotten it");
  ASHLAR_REQUIRE(heap->life.load() == StreamHeap::Life::kAlive, Code::kInvalidHandle,
                 "the stream is dead already");
  EpochMark& last = heap->marks[kEpochMarksMax];
  const bool is_recorded = record_on(*heap, last.slot).is_ok();
  heap->life.store(is_recorded ? StreamHeap::Life::kRetired : StreamHeap::Life::kLost);
  // The caller destroys the handle next: nobody may still be recording on it.
  while (heap->recording.load() != 0) std::this_thread::yield();
  if (!is_recorded) return Status::ok();
  for (unsigned i = 0; i < heap->mark_count; ++i) events_.give(heap->marks[i].slot);
  last.covers = kEverything;
  last.sequence = sequence_.fetch_add(1, std::memory_order_relaxed);
  std::swap(heap->marks[0], last);
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
  for (StreamHeap* heap = first_heap_.load(); heap != nullptr; heap = heap->next_heap.load())
    retry_unrecorded(*heap);
}

bool DeviceCache::has_unfinished() const noexcept {
  bool incomplete = false;
  for (StreamHeap* heap = first_heap_.load(); heap != nullptr; heap = heap->next_heap.load()) {
    const Guard guard(heap->lock);
    incomplete |=
        heap->has_pending() || heap->has_unrecorded() || heap->newest_release > heap->completed;
  }
  return incomplete;
}

void DeviceCache::settle(bool synchronize) noexcept {
  settled_ = !synchronize || driver_.synchronize().is_ok() || is_lost();
}

void DeviceCache::finish_if_settled(StreamHeap& heap, UseNode* use) noexcept {
  // A device that could not be synchronised keeps what its streams may still touch.
  if (use->stream->cache.settled_) heap.finish_use(use);
}

void DeviceCache::give_everything_back() noexcept {
  // Where this device is gone its heaps may still hold events of another, which is not.
  for (StreamHeap* heap = first_heap_.load(); heap != nullptr; heap = heap->next_heap.load()) {
    // What could not be waited for is only asked; the rest stays with the device.
    if (!settled_) query_marks(*heap);
    heap->mark_count = 0;
    heap->destroy_events();
    const Guard guard(heap->lock);
    for (UseNode* queue = nullptr; heap->take_queues(&queue, 1) != 0;) {
      while (queue != nullptr) finish_if_settled(*heap, std::exchange(queue, queue->next));
    }
    for (UseNode* list = heap->take_unrecorded(); list != nullptr;) {
      finish_if_settled(*heap, std::exchange(list, list->next));
    }
    if (settled_) heap->completed = kEverything;
  }
  if (driver_.health().is_ok()) release_idle(Bytes::max(), Bytes{});
}

}  // namespace ashlar::inline v0::cache
