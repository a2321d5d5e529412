#include <ashlar/cache/page_map.h>

#include <new>

namespace ashlar {
inline namespace v0 {

PageMap::PageMap() noexcept : root_(new (std::nothrow) Root) {}
PageMap::~PageMap() = default;

bool PageMap::reserve(Address base, Bytes size) noexcept {
  const std::uint64_t last = base.value() + (size.count() - 1);
  if (!root_ || last < base.value() || (last >> kAddressBits) != 0) return false;
  const std::lock_guard lock(mutex_);
  for (std::uint64_t leaf_index = base.value() >> (kPageBits + kLevelBits);
       leaf_index <= last >> (kPageBits + kLevelBits); ++leaf_index) {
    auto& middle_slot = root_->children[leaf_index >> kLevelBits];
    Middle* middle = middle_slot.load(std::memory_order_relaxed);
    if (middle == nullptr) {
      middle = new (std::nothrow) Middle;
      if (middle == nullptr) return false;
      middle_slot.store(middle, std::memory_order_release);
    }
    auto& leaf_slot = middle->children[leaf_index & kLevelMask];
    if (leaf_slot.load(std::memory_order_relaxed) == nullptr) {
      Leaf* leaf = new (std::nothrow) Leaf;
      if (leaf == nullptr) return false;
      leaf_slot.store(leaf, std::memory_order_release);
    }
  }
  return true;
}

PageMap::Entry& PageMap::entry(std::uint64_t page) noexcept {
  Middle* middle = root_->children[page >> (2 * kLevelBits)].load(std::memory_order_relaxed);
  ASHLAR_ASSERT(middle != nullptr, "page map: range was not reserved");
  Leaf* leaf = middle->children[(page >> kLevelBits) & kLevelMask].load(std::memory_order_relaxed);
  ASHLAR_ASSERT(leaf != nullptr, "page map: range was not reserved");
  return leaf->entries[page & kLevelMask];
}

template <class F>
void PageMap::for_pages(const SegmentRecord& segment, F&& f) noexcept {
  const std::uint64_t base = segment.base.load(std::memory_order_relaxed);
  const std::uint64_t last = segment.end.load(std::memory_order_relaxed) - 1;
  const std::lock_guard lock(mutex_);
  for (std::uint64_t page = base >> kPageBits; page <= last >> kPageBits; ++page) {
    const bool begins_inside = (page << kPageBits) < base;
    Entry& at = entry(page);
    f(begins_inside ? at.second : at.first);
  }
}

void PageMap::insert(SegmentRecord* segment) noexcept {
  for_pages(*segment, [segment](std::atomic<SegmentRecord*>& slot) {
    ASHLAR_ASSERT(slot.load(std::memory_order_relaxed) == nullptr, "D3: the device handed out overlapping segments");
    slot.store(segment, std::memory_order_release);
  });
}

void PageMap::erase(SegmentRecord* segment) noexcept {
  for_pages(*segment, [segment](std::atomic<SegmentRecord*>& slot) {
    ASHLAR_ASSERT(slot.load(std::memory_order_relaxed) == segment, "page map: erasing another segment's page");
    static_cast<void>(segment);
    slot.store(nullptr, std::memory_order_release);
  });
}

}  // namespace v0
}  // namespace ashlar
