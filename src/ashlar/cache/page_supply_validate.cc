// PageSupply::validate, apart from what it validates.
#include <ashlar/cache/page_supply.h>
#include <ashlar/cache/stream_heap_inl.h>

namespace ashlar::inline v0::cache {
namespace {

/// nullptr, or what is broken of the pages of an unmapped block.
const char* fault_of_unmapped(const DeviceSegment& segment, const block::BlockView& view,
                              Bytes page) noexcept {
  const Bytes offset = view.address - segment.base;
  if (offset % page != 0 || view.size % page != 0)
    return "page supply(1): an unmapped block is not whole pages";
  const std::uint64_t first = offset / page;
  for (std::uint64_t i = first; i < first + view.size / page; ++i) {
    const PageSlot& slot = segment.page_table[i];
    if (slot.page != nullptr && slot.page->home == &slot)
      return "page table(2): a page is at home under an unmapped block";
  }
  return nullptr;
}

/// The same of any other block.
const char* fault_of_mapped(const DeviceSegment& segment, const block::BlockView& view,
                            Bytes page) noexcept {
  const Bytes offset = view.address - segment.base;
  const std::uint64_t last = (offset + (view.size - Bytes{1})) / page;
  for (std::uint64_t i = offset / page; i <= last; ++i) {
    const PageSlot& slot = segment.page_table[i];
    if (slot.page == nullptr || slot.page->home != &slot || !slot.is_mapped || !slot.has_access)
      return "page table(1): a block lacks a page";
  }
  return nullptr;
}

}  // namespace

const char* PageSupply::validate(const StreamHeap& heap) const noexcept {
  for (const PoolId id : kPoolIds) {
    const block::BlockPool& pool = heap.pool(id);
    for (auto at = pool.first_segment(); at != block::kNoSegment; at = pool.next(at)) {
      const DeviceSegment& segment = *record_of(pool.view(at));
      if (!segment.page_table.is_made()) continue;
      for (auto b = pool.view(at).first; b != block::kNoBlock; b = pool.next(b)) {
        const block::BlockView view = pool.view(b);
        const auto fault_of =
            view.state == BlockState::kUnmapped ? fault_of_unmapped : fault_of_mapped;
        if (const char* broken = fault_of(segment, view, page_)) return broken;
      }
    }
  }
  return nullptr;
}

}  // namespace ashlar::inline v0::cache
