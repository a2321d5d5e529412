// PyTorch's expandable segments: a reservation of addresses for each stream and pool, into which pages
// are mapped as they are needed.
//
// Thread safety: none.
//
// Rules beyond those of policy.h:
//   (1) New pages go to the lowest place that has room: unmapped addresses, with the free block before
//       them and the free blocks behind them. Only if there is none is another reservation made.
//   (2) Best fit counts the unmapped addresses behind a block as part of it, so that a block that
//       cannot grow is preferred while the next larger ones can. The search goes on through larger
//       blocks for as long as each has less room than the one before.
//   (3) Giving back unmaps the pages that lie wholly in a free block, one by one. A reservation without
//       pages is released.
//
// Invariant (validate()): a page has a handle where, and only where, none of its bytes is unmapped.
#include <memory>
#include <utility>
#include <vector>

#include <ashlar/block/unmapped_ranges.h>

#include "src/tool/policy_pools.h"

namespace ashlar::tool {
namespace {

using block::BlockIndex;
using block::kNoBlock;
using block::kNoSegment;
using block::SegmentIndex;
using block::UnmappedRanges;

class ExpandablePolicy final : public PoolPolicy {
 public:
  ExpandablePolicy(device::Device& device, Bytes memory) : PoolPolicy(device), memory_(memory) {}

 private:
  /// Of one reservation, by page; the null handle where none is mapped. A segment's user word is the
  /// index into reservations_.
  using Pages = std::vector<PageHandle>;

  static Bytes page_bytes(const Pool& pool) { return pool.is_small ? kSmallPiece : kLargePiece; }
  static bool is_unmapped(const Pool& pool, BlockIndex block) {
    return block != kNoBlock && pool.blocks.state(block) == BlockState::kUnmapped;
  }
  static bool is_free(const Pool& pool, BlockIndex block) {
    return block != kNoBlock && pool.blocks.state(block) == BlockState::kFree;
  }

  // Rule 2.
  static Bytes room(const Pool& pool, BlockIndex block) {
    const BlockIndex behind = pool.blocks.next(block);
    const Bytes size = pool.blocks.size(block);
    return is_unmapped(pool, behind) ? size + pool.blocks.size(behind) : size;
  }

  BlockIndex fit(Pool& pool, Bytes size) override {
    BlockIndex best = pool.blocks.best_fit(size, Bytes::max());
    while (best != kNoBlock) {
      const BlockIndex next = pool.blocks.next_fit(best);
      if (next == kNoBlock || room(pool, next) >= room(pool, best)) break;
      best = next;
    }
    return best;
  }

  BlockIndex grow(Pool& pool, Bytes size) override {
    BlockIndex place = lowest_place(pool, size);
    if (place == kNoBlock) place = reserve(pool, size);
    if (is_unmapped(pool, place)) place = map(pool, place, std::min(size, pool.blocks.size(place)));
    while (place != kNoBlock && pool.blocks.size(place) < size) {
      const BlockIndex behind = pool.blocks.next(place);
      const Bytes missing = size - pool.blocks.size(place);
      place = map(pool, behind, std::min(missing, pool.blocks.size(behind)));
    }
    return place;
  }

  bool splits(const Pool&, Bytes rest) const override { return rest >= kPolicyGranule; }

  /// The first block of the lowest place with `size` bytes of free and unmapped addresses (rule 1).
  static BlockIndex lowest_place(Pool& pool, Bytes size) {
    const UnmappedRanges ranges(pool.blocks);
    BlockIndex lowest = kNoBlock;
    for (BlockIndex unmapped = ranges.smallest(kPolicyGranule); unmapped != kNoBlock;
         unmapped = ranges.next(pool.blocks.size(unmapped), pool.blocks.view(unmapped).position)) {
      const BlockIndex before = ranges.before(unmapped);
      const BlockIndex first = is_free(pool, before) ? before : unmapped;
      if (lowest != kNoBlock && pool.blocks.address(lowest) < pool.blocks.address(first)) continue;
      Bytes bytes;
      for (BlockIndex block = first;
           bytes < size && (is_free(pool, block) || is_unmapped(pool, block));
           block = pool.blocks.next(block))
        bytes += pool.blocks.size(block);
      if (bytes >= size) lowest = first;
    }
    return lowest;
  }

  /// A new reservation as one unmapped block; kNoBlock if it is refused, or smaller than `size`.
  BlockIndex reserve(Pool& pool, Bytes size) {
    const Bytes bytes = policy_round_up(memory_ + Bytes{memory_.count() / 8}, page_bytes(pool));
    if (bytes < size) return kNoBlock;
    const Result<Address> base = device().address_reserve(bytes, kSmallPiece);
    if (!base.is_ok()) return kNoBlock;
    const block::Position position{base.value().value()};
    const SegmentIndex segment =
        UnmappedRanges(pool.blocks).add_segment(base.value(), bytes, position, pages_.size());
    if (segment == kNoSegment) {
      (void)device().address_release(base.value(), bytes);
      return kNoBlock;
    }
    pages_.emplace_back();
    return pool.blocks.view(segment).first;
  }

  /// Maps pages from the beginning of an unmapped block on, for at least `size` bytes of it. Returns the
  /// free block that they are then part of; kNoBlock, and nothing has changed, if they are refused.
  BlockIndex map(Pool& pool, BlockIndex unmapped, Bytes size) {
    UnmappedRanges ranges(pool.blocks);
    const block::SegmentView segment = pool.blocks.view(pool.blocks.segment(unmapped));
    const Address begin = pool.blocks.address(unmapped);
    const Bytes bytes = policy_round_up(size, page_bytes(pool));
    const BlockIndex part = ranges.lift_part(unmapped, begin, bytes);
    if (part == kNoBlock) return kNoBlock;
    if (!map_pages(pages_[segment.user], segment.base, begin, bytes, page_bytes(pool))) {
      ranges.unmap(part);
      return kNoBlock;
    }
    add_reserved(bytes);
    return pool.blocks.release(part, 0);
  }

  /// All pages are created before the first is mapped, so that a device without memory is not touched.
  bool map_pages(Pages& pages, Address base, Address begin, Bytes size, Bytes page) {
    const std::uint64_t first = (begin - base) / page;
    const std::uint64_t end = first + size / page;
    if (pages.size() < end) pages.resize(end);
    std::uint64_t created = first;
    for (; created < end; ++created) {
      const Result<PageHandle> handle = device().page_create(page);
      if (!handle.is_ok()) break;
      pages[created] = handle.value();
    }
    bool is_done = created == end;
    std::uint64_t mapped = first;
    for (; is_done && mapped < end; ++mapped)
      is_done = device().page_map(base + page * mapped, page, pages[mapped]).is_ok();
    if (is_done) is_done = device().page_access(begin, size).is_ok();
    if (is_done) return true;
    for (std::uint64_t i = first; i < created; ++i) {
      if (i < mapped) (void)device().page_unmap(base + page * i, page);
      drop_handle(&pages[i]);
    }
    return false;
  }

  void drop_handle(PageHandle* handle) {
    (void)device().page_release(*handle);
    *handle = {};
  }

  void release(Pool& pool) override {
    std::vector<BlockIndex> free;  // gathered first: unmapping changes the index
    for (BlockIndex block = pool.blocks.best_fit(kPolicyGranule, Bytes::max()); block != kNoBlock;
         block = pool.blocks.next_fit(block))
      free.push_back(block);
    for (const BlockIndex block : free) unmap_whole_pages(pool, block);
  }

  void unmap_whole_pages(Pool& pool, BlockIndex block) {
    const SegmentIndex in = pool.blocks.segment(block);
    const block::SegmentView segment = pool.blocks.view(in);
    const Bytes page = page_bytes(pool);
    const Bytes offset = pool.blocks.address(block) - segment.base;
    const std::uint64_t first = policy_round_up(offset, page) / page;
    const std::uint64_t end = (offset + pool.blocks.size(block)) / page;
    if (first >= end) return;
    const Address begin = segment.base + page * first;
    const Bytes size = page * (end - first);
    const BlockIndex part = block::lift_part(pool.blocks, block, begin, size);
    if (part == kNoBlock) return;  // the host has no memory for a record: the pages stay
    wait();
    for (std::uint64_t i = first; i < end; ++i) {
      (void)device().page_unmap(segment.base + page * i, page);
      drop_handle(&pages_[segment.user][i]);
    }
    remove_reserved(size);
    UnmappedRanges ranges(pool.blocks);
    const BlockIndex unmapped = ranges.unmap(part);
    if (!pool.blocks.is_whole(unmapped)) return;
    ranges.lift(unmapped);
    pool.blocks.remove_segment(in);
    (void)device().address_release(segment.base, segment.size);
  }

  const char* check(const Pool& pool) const override {
    const Bytes page = page_bytes(pool);
    for (SegmentIndex in = pool.blocks.first_segment(); in != kNoSegment;
         in = pool.blocks.next(in)) {
      const block::SegmentView segment = pool.blocks.view(in);
      const Pages& pages = pages_[segment.user];
      for (BlockIndex block = segment.first; block != kNoBlock; block = pool.blocks.next(block)) {
        const Bytes begin = pool.blocks.address(block) - segment.base;
        const Bytes end = begin + pool.blocks.size(block);
        const bool has_memory = !is_unmapped(pool, block);
        if (!has_memory && (begin % page != 0 || end % page != 0))
          return "policy: a part of a page is unmapped";
        const std::uint64_t last = policy_round_up(end, page) / page;
        for (std::uint64_t i = begin / page; i < std::min<std::uint64_t>(last, pages.size()); ++i) {
          if ((pages[i] != PageHandle{}) != has_memory)
            return "policy: a page's handle does not say whether it is mapped";
        }
        if (has_memory && last > pages.size()) return "policy: a page without a handle is mapped";
      }
    }
    return nullptr;
  }

  const Bytes memory_;
  std::vector<Pages> pages_;  // by reservation, released ones included
};

}  // namespace

std::unique_ptr<Policy> make_expandable_policy(device::Device& device, Bytes memory) {
  if (!device.traits().has_virtual_memory) return make_segment_policy(device);
  return std::make_unique<ExpandablePolicy>(device, memory);
}

}  // namespace ashlar::tool
