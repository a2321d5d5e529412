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
