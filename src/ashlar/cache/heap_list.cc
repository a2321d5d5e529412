#include <ashlar/cache/heap_list.h>

#include <memory>
#include <new>

namespace ashlar::inline v0::cache {

HeapList::~HeapList() {
  for (StreamHeap* heap = first_.load(); heap != nullptr;) {
    StreamHeap* next = heap->links.next.load();
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
  const HeapOwner owner = HeapOwner::of(stream);
  return forgotten != nullptr && pass_on(*forgotten, owner) ? forgotten : add(owner);
}

StreamHeap* HeapList::get_or_make(const Stream& stream) noexcept {
  const MutexGuard lock(lock_);
  if (StreamHeap* made = table_.find(stream.id)) return made;
  return add(HeapOwner::of(stream));
}

StreamHeap* HeapList::make_for_pool(const Stream& stream, MemoryPoolId pool,
                                    const MemoryPoolOptions& options,
                                    StreamHeap* forgotten) noexcept {
  const MutexGuard lock(lock_);
  // A key that no other heap of any device has had.
  constexpr unsigned kNumberBits = 40;
  ASHLAR_ASSERT(pool_heaps_made_ < (std::uint64_t{1} << kNumberBits) - 1,
                "heaps(2): the keys of memory pools' heaps are used up");
  const auto device = static_cast<std::uint64_t>(stream.device.value());
  const StreamId key{kStreamIdEnd + (device << kNumberBits) + ++pool_heaps_made_};
  const HeapOwner owner{stream, pool, key, options};
  return forgotten != nullptr && pass_on(*forgotten, owner) ? forgotten : add(owner);
}

StreamId HeapList::find_other_of_handle(const Stream& stream) const noexcept {
  const MutexGuard lock(lock_);
  const StreamHeap* other = handles_.find_alive(stream);
  return other == nullptr ? StreamId{} : other->stream.id;
}

void HeapList::lose(StreamId id, std::uint64_t sequence) noexcept {
  const MutexGuard lock(lock_);  // so that no heap passes on meanwhile
  for (StreamHeap& heap : *this) {
    if (heap.stream.id == id) heap.life.lose(sequence);
  }
}

void HeapList::wait_for_holders() const noexcept {
  const MutexGuard lock(lock_);  // heaps that are made later are made behind it
  for (StreamHeap& heap : *this) {
    const Guard guard(heap.lock);
  }
}

const char* HeapList::validate() const noexcept {
  const MutexGuard lock(lock_);
  for (StreamHeap& heap : *this) {
    const StreamHeap* found = table_.find(StreamId{heap.id.load()});
    if (found == nullptr) return "heaps(1): a heap is not in the table by its owner's key";
    if (found != &heap) return "heaps(2): two heaps have one key";
    if (heap.membership.id.is_default() && heap.stream.id.value() != heap.id.load())
      return "heaps(1): a heap's key is not its stream's identity";
  }
  return nullptr;
}

StreamHeap* HeapList::add(const HeapOwner& owner) noexcept {
  std::unique_ptr<StreamHeap> heap(new (std::nothrow) StreamHeap(owner_, owner, granule_));
  if (!heap || !handles_.reserve_one() || !table_.insert(heap.get())) return nullptr;
  handles_.insert(heap.get());
  count_.fetch_add(1, std::memory_order_relaxed);
  (last_ == nullptr ? first_ : last_->links.next).store(heap.get(), std::memory_order_release);
  last_ = heap.release();
  return last_;
}

bool HeapList::pass_on(StreamHeap& heap, const HeapOwner& owner) noexcept {
  const Guard guard(heap.lock);
  // With reuse:own a heap passes on with its segments. A memory pool would keep them from everybody.
  if (!owner.pool.is_default() && heap.has_memory()) return false;
  // A caller's mistake may have left something of the dead stream since it was found forgotten.
  if (!heap.begin_passing()) return false;
  handles_.erase(&heap);
  table_.erase(&heap);
  heap.serve(owner);
  handles_.insert(&heap);
  return table_.insert(&heap);
}

}  // namespace ashlar::inline v0::cache
