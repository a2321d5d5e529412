#include <ashlar/cache/heap_list.h>

#include <memory>
#include <new>

namespace ashlar::inline v0::cache {

HeapList::~HeapList() {
  for (StreamHeap* heap = first_.load(); heap != nullptr;) {
    StreamHeap* next = heap->next_heap.load();
    delete heap;
    heap = next;
  }
}

StreamHeap* HeapList::find_settled(StreamId id) const noexcept {
  const MutexGuard lock(lock_);
  return table_.find(id);
}

StreamHeap* HeapList::get_or_make(const Stream& stream, StreamHeap* forgotten) noexcept {
  const MutexGuard lock(lock_);
  if (StreamHeap* made = table_.find(stream.id)) return made;
  const bool is_passed_on = forgotten != nullptr && pass_on(*forgotten, stream);
  return lose_others(is_passed_on ? forgotten : add(stream));
}

StreamHeap* HeapList::get_or_make(const Stream& stream) noexcept {
  const MutexGuard lock(lock_);
  if (StreamHeap* made = table_.find(stream.id)) return made;
  return lose_others(add(stream));
}

const char* HeapList::validate() const noexcept {
  const MutexGuard lock(lock_);
  for (StreamHeap& heap : *this) {
    const StreamHeap* found = table_.find(heap.stream.id);
    if (found == nullptr) return "heaps(1): a heap is not in the table";
    if (found != &heap) return "heaps(2): two heaps serve one stream";
    if (heap.id.load() != heap.stream.id.value())
      return "heaps(1): a heap's identity is not its stream's";
  }
  return nullptr;
}

StreamHeap* HeapList::add(const Stream& stream) noexcept {
  std::unique_ptr<StreamHeap> heap(new (std::nothrow) StreamHeap(owner_, stream, granule_));
  if (!heap || !table_.insert(heap.get())) return nullptr;
  (last_ == nullptr ? first_ : last_->next_heap).store(heap.get(), std::memory_order_release);
  last_ = heap.release();
  return last_;
}

bool HeapList::pass_on(StreamHeap& heap, const Stream& stream) noexcept {
  const Guard guard(heap.lock);
  // A caller's mistake may have left something of the dead stream since it was found forgotten.
  if (!heap.begin_passing()) return false;
  table_.erase(&heap);
  heap.serve(stream);
  return table_.insert(&heap);
}

StreamHeap* HeapList::lose_others(StreamHeap* heap) noexcept {
  if (heap == nullptr || heap->stream.thread_bound) return heap;
  // A handle seen under another identity: that stream was destroyed without an announcement (H2).
  // Its handle is never used again.
  for (StreamHeap& other : *this) {
    const bool is_same_handle =
        other.stream.handle == heap->stream.handle && !other.stream.thread_bound;
    if (&other != heap && is_same_handle) other.life.lose();
  }
  return heap;
}

}  // namespace ashlar::inline v0::cache
