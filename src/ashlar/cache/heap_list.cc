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

StreamHeap* HeapList::find_stable(StreamId id) const noexcept {
  const MutexGuard lock(lock_);
  return table_.find(id);
}

StreamHeap* HeapList::get_or_make(const Stream& stream, StreamHeap* forgotten) noexcept {
  const MutexGuard lock(lock_);
  if (StreamHeap* made = table_.find(stream.id)) return made;
  return forgotten != nullptr && pass_on(*forgotten, stream) ? forgotten : add(stream);
}

StreamHeap* HeapList::get_or_make(const Stream& stream) noexcept {
  const MutexGuard lock(lock_);
  if (StreamHeap* made = table_.find(stream.id)) return made;
  return add(stream);
}

StreamId HeapList::find_other_of_handle(const Stream& stream) const noexcept {
  const MutexGuard lock(lock_);
  const StreamHeap* other = handles_.find_alive(stream);
  return other == nullptr ? StreamId{} : other->stream.id;
}

void HeapList::lose(StreamId id, std::uint64_t sequence) noexcept {
  const MutexGuard lock(lock_);  // so that the heap does not pass on meanwhile
  if (StreamHeap* heap = table_.find(id)) heap->life.lose(sequence);
}

const char* HeapList::validate() const noexcept {
  const MutexGuard lock(lock_);
  for (StreamHeap& heap : *this) {
    const StreamHeap* found = table_.find(heap.stream.id);
    if (found == nullptr) return "heaps(1): a heap is not in the table by its stream's identity";
    if (found != &heap) return "heaps(2): two heaps serve one stream";
  }
  return nullptr;
}

StreamHeap* HeapList::add(const Stream& stream) noexcept {
  std::unique_ptr<StreamHeap> heap(new (std::nothrow) StreamHeap(owner_, stream, granule_));
  if (!heap || !handles_.reserve_one() || !table_.insert(heap.get())) return nullptr;
  handles_.insert(heap.get());
  count_.fetch_add(1, std::memory_order_relaxed);
  (last_ == nullptr ? first_ : last_->next_heap).store(heap.get(), std::memory_order_release);
  last_ = heap.release();
  return last_;
}

bool HeapList::pass_on(StreamHeap& heap, const Stream& stream) noexcept {
  const Guard guard(heap.lock);
  // A caller's mistake may have left something of the dead stream since it was found forgotten.
  if (!heap.begin_passing()) return false;
  handles_.erase(&heap);
  table_.erase(&heap);
  heap.serve(stream);
  handles_.insert(&heap);
  return table_.insert(&heap);
}

}  // namespace ashlar::inline v0::cache
