#include <ashlar/cache/page_room.h>

#include <algorithm>

#include <ashlar/base/checked.h>
#include <ashlar/base/step_count.h>

namespace ashlar::inline v0::cache {
namespace {

/// How many slots of page tables a search looks at under one hold of the lock (C31): those of 16 GiB.
constexpr std::uint64_t kSlotLooksMax = 8192;

using block::BlockIndex;
using block::BlockPool;
using block::kNoBlock;

bool is_free(const BlockPool& pool, BlockIndex block) noexcept {
  return block != kNoBlock && pool.state(block) == BlockState::kFree;
}

/// The room around one unmapped block, if it has enough.
PageRoom room_around(BlockPool& pool, BlockIndex unmapped, Bytes size, Bytes page) noexcept {
  const BlockIndex below = block::UnmappedRanges(pool).before(unmapped);
  const BlockIndex above = pool.next(unmapped);
  PageRoom room;
  room.begin = pool.address(unmapped);
  if (is_free(pool, below)) room.below = below;
  const Bytes has_below = room.below == kNoBlock ? Bytes{} : pool.size(below);
  // Invariant 1.
  const Bytes usable = pool.size(unmapped) - (above == kNoBlock ? page : Bytes{});
  const Bytes lacks = size - std::min(size, has_below);
  room.missing = std::max(page, checked_round_up(lacks, page).value_or(Bytes::max()));
  if (room.missing > usable) {
    if (!is_free(pool, above) || usable + pool.size(above) < lacks) return {};
    room.above = above;
    room.missing = usable;
  }
  room.unmapped = unmapped;
  return room;
}

/// Where a search may map pages.
struct Rule {
  bool keeps_mappings;
  std::uint64_t slots_left = kSlotLooksMax;  ///< that are looked at
};

/// May no page be mapped at the room's addresses now? So it is too where the search has no looks left.
bool is_barred(const StreamHeap& heap, const BlockPool& pool, const PageRoom& room, Bytes page,
               Rule& rule) noexcept ASHLAR_REQUIRES(heap.lock) {
  const DeviceSegment& segment = *record_of(pool.view(pool.segment(room.unmapped)));
  if (!segment.page_table.was_left()) return false;
  const std::uint64_t count = room.missing / page;
  if (count > rule.slots_left) return true;
  rule.slots_left -= count;
  count_steps(count);
  const std::uint64_t first = (room.begin - segment.base) / page;
  for (std::uint64_t i = first; i < first + count; ++i) {
    const PageSlot& slot = segment.page_table[i];
    if (slot.was_left && (rule.keeps_mappings || !heap.clock.is_complete(slot.left_stamp)))
      return true;
  }
  return false;
}

}  // namespace

PageRoom find_room(StreamHeap& heap, const Request& request, Bytes page,
                   bool keeps_mappings) noexcept {
  const Bytes size = request.size;
  BlockPool& pool = heap.pool(request.pool);
  const block::UnmappedRanges ranges(pool);
  PageRoom best;
  block::Position best_at{};
  Rule rule{keeps_mappings};
  const auto consider = [&](BlockIndex unmapped) ASHLAR_REQUIRES(heap.lock) {
    count_steps(1);
    const PageRoom room = room_around(pool, unmapped, size, page);
    if (!room.is_found()) return;
    const block::Position at = pool.view(unmapped).position;
    const bool is_better = !best.is_found() || room.missing < best.missing ||
                           (room.missing == best.missing && at < best_at);
    if (!is_better || is_barred(heap, pool, room, page, rule)) return;
    best = room;
    best_at = at;
  };
  BlockIndex at = ranges.smallest(page);
  for (unsigned looks = 0; at != kNoBlock && looks < kUnmappedLooksMax; ++looks) {
    consider(at);
    const block::BlockView view = pool.view(at);
    at = ranges.next(view.size, view.position);
  }
  if (at == kNoBlock) return best;
  const std::optional<Bytes> enough = checked_round_up(size, page);
  const std::optional<Bytes> with_last = enough ? checked_add(*enough, page) : std::nullopt;
  at = with_last ? ranges.smallest(*with_last) : kNoBlock;
  if (at != kNoBlock) consider(at);
  return best;
}

bool lift_room(BlockPool& pool, const PageRoom& room) noexcept {
  block::UnmappedRanges ranges(pool);
  ranges.lift(room.unmapped);
  if (room.missing < pool.size(room.unmapped)) {
    const BlockIndex rest = pool.divide(room.unmapped, room.missing);
    if (rest == kNoBlock) {
      ranges.unmap(room.unmapped);
      return false;
    }
    ranges.unmap(rest);
  }
  if (room.below != kNoBlock) pool.lift(room.below);
  if (room.above != kNoBlock) pool.lift(room.above);
  return true;
}

BlockIndex enter_room(BlockPool& pool, const PageRoom& room) noexcept {
  // No work has used what is newly mapped: stamp 0. Its neighbours keep theirs.
  BlockIndex entered = pool.release(room.unmapped, 0);
  for (const BlockIndex beside : {room.above, room.below}) {
    if (beside != kNoBlock) entered = pool.release(beside, pool.view(beside).stamp);
  }
  return entered;
}

void give_up_room(BlockPool& pool, const PageRoom& room) noexcept {
  for (const BlockIndex beside : {room.above, room.below}) {
    if (beside != kNoBlock) pool.release(beside, pool.view(beside).stamp);
  }
  block::UnmappedRanges(pool).unmap(room.unmapped);
}

}  // namespace ashlar::inline v0::cache
