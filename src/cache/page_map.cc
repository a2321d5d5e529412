#include <ashlar/cache/page_map.h>

#include <new>

namespace ashlar {
inline namespace v0 {

namespace {
template <class Node>
void destroy_all(Node* node) noexcept {
  while (node != nullptr) {
    Node* before = node->made_before;
    delete node;
    node = before;
  }
}
}  // namespace

PageMap::~PageMap() {
  destroy_all(leaves_);
  destroy_all(inners_of_leaves_);
  destroy_all(inners_);
}

/// The child in that slot, made where there is none; nullptr when the host has no memory. Under the mutex.
template <class Child>
Child* PageMap::child_of(std::atomic<Child*>& slot, Child*& last_made) noexcept {
  Child* child = slot.load(std::memory_order_relaxed);
  if (child != nullptr) return child;
  child = new (std::nothrow) Child;
  if (child == nullptr) return nullptr;
  child->made_before = last_made;
  last_made = child;
  slot.store(child, std::memory_order_release);
  return child;
}

bool PageMap::reserve(Address base, Bytes size) noexcept {
  const std::uint64_t last = base.value() + (size.count() - 1);
  if (last < base.value() || (last >> kAddressBits) != 0) return false;
  const std::lock_guard lock(mutex_);
  const std::uint64_t end = last >> kPageBits;
  for (std::uint64_t page = base.value() >> kPageBits; page <= end; page = (page | (kFanOut - 1)) + 1) {
    Inner* inner = child_of(root_[index(page, 3)], inners_);
    if (inner == nullptr) return false;
    InnerOfLeaves* last_inner = child_of(inner->children[index(page, 2)], inners_of_leaves_);
    if (last_inner == nullptr) return false;
    if (child_of(last_inner->children[index(page, 1)], leaves_) == nullptr) return false;
  }
  return true;
}

PageMap::Entry& PageMap::entry(std::uint64_t page) noexcept {
  Inner* inner = root_[index(page, 3)].load(std::memory_order_relaxed);
  ASHLAR_ASSERT(inner != nullptr, "page map: range was not reserved");
  InnerOfLeaves* last = inner->children[index(page, 2)].load(std::memory_order_relaxed);
  ASHLAR_ASSERT(last != nullptr, "page map: range was not reserved");
  Leaf* leaf = last->children[index(page, 1)].load(std::memory_order_relaxed);
  ASHLAR_ASSERT(leaf != nullptr, "page map: range was not reserved");
  return leaf->entries[index(page, 0)];
}

void PageMap::set(const SegmentRecord& segment, Owner owner) noexcept {
  const std::uint64_t base = segment.base.value();
  const std::uint64_t last = base + (segment.size.count() - 1);
  const std::lock_guard lock(mutex_);
  for (std::uint64_t page = base >> kPageBits; page <= last >> kPageBits; ++page) {
    const bool begins_inside = (page << kPageBits) < base;
    Entry& at = entry(page);
    (begins_inside ? at.second : at.first).store(owner.word(), std::memory_order_release);
  }
}

void PageMap::insert(const SegmentRecord& segment) noexcept { set(segment, segment.owner()); }

void PageMap::erase(const SegmentRecord& segment) noexcept { set(segment, Owner{}); }

}  // namespace v0
}  // namespace ashlar
