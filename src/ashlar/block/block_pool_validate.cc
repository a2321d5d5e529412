// The whole-structure walk of the block pool and its free index. See the invariants of block_pool.h
// and free_index.h.
//
// Every loop is bounded by the slabs' capacities, so that a corrupt list ends in a verdict and not
// in a hang.
#include <algorithm>
#include <array>
#include <cstring>

#include <ashlar/block/block_pool.h>
#include <ashlar/block/fit_tree_validate.h>

namespace ashlar::inline v0::block {
namespace {

constexpr unsigned kStates = 4;

constexpr auto kFree = static_cast<std::uint8_t>(BlockState::kFree);
bool is_owned(std::uint8_t state) {
  return state == static_cast<std::uint8_t>(BlockState::kLive) ||
         state == static_cast<std::uint8_t>(BlockState::kPending);
}

/// What a walk over the segments found.
struct Recount {
  PoolCounts counts;
  std::uint64_t records = 0;
};

bool same_counts(const PoolCounts& a, const PoolCounts& b) {
  for (unsigned i = 0; i < kStates; ++i) {
    if (a.blocks[i] != b.blocks[i] || a.bytes[i] != b.bytes[i]) return false;
  }
  return a.segments == b.segments && a.segment_bytes == b.segment_bytes &&
         a.requested_bytes == b.requested_bytes && a.idle_segments == b.idle_segments &&
         a.idle_bytes == b.idle_bytes;
}

/// Walks one segment's blocks: invariants (1), (2), (5), (8), and its part of the recount.
const char* walk_segment(const BlockRecords& records, const SegmentRecord& segment,
                         std::uint64_t granule, Recount* recount) {
  std::uint64_t end = segment.base;
  std::uint32_t before = kNone;
  for (std::uint32_t i = segment.first; i != kNone; i = records[i].next) {
    if (i >= records.capacity() || ++recount->records > records.capacity()) {
      return "block(1) C3: a list of blocks is broken";
    }
    const std::uint8_t state = records.state(i);
    const std::uint64_t size = records.size(i);
    if (state >= kStates) return "block(1) C3: an unused record is in a segment";
    if (records[i].prev != before) return "block(1) C3: neighbours do not agree";
    if (records.address(i) != end) return "block(1) C3: a gap or an overlap between blocks";
    if (size == 0 || size % granule != 0 || end % granule != 0) {
      return "block(5): an address or a size is no multiple of the granule";
    }
    if (before != kNone && records.state(before) == kFree && state == kFree)
      return "block(2) C4: two free blocks touch";
    end += size;
    recount->counts.blocks[state] += 1;
    recount->counts.bytes[state] += Bytes{size};
    if (is_owned(state)) {
      if (records.requested(i, size) > size)
        return "block(8) C1: a block is smaller than what was requested";
      if (records.has_word(i) && records.word(i) == 0)
        return "block(8): a word of zero stands apart";
      recount->counts.requested_bytes += Bytes{records.requested(i, size)};
    }
    before = i;
  }
  if (end != segment.base + segment.size)
    return "block(1) C3: the blocks do not fill their segment";
  if (records.state(segment.first) == kFree && records.size(segment.first) == segment.size) {
    recount->counts.idle_segments += 1;
    recount->counts.idle_bytes += Bytes{segment.size};
  }
  recount->counts.segments += 1;
  recount->counts.segment_bytes += Bytes{segment.size};
  return nullptr;
}

}  // namespace

/// Is the segment one block in transfer?
bool BlockPool::is_away(std::uint32_t segment) const noexcept {
  const std::uint32_t first = segments_[segment].first;
  return records_.state(first) == raw(BlockState::kInTransfer) && is_whole(records_[first]);
}

const char* BlockPool::validate() const noexcept {
  Recount recount;
  std::uint32_t segment_before = kNone;
  for (std::uint32_t s = segments_first_; s != kNone; s = segments_[s].next) {
    if (s >= segments_.capacity() || recount.counts.segments >= segments_.capacity()) {
      return "block(7): the list of segments is broken";
    }
    const SegmentRecord& segment = segments_[s];
    if (segments_.state(s) == kUnused || segment.prev != segment_before ||
        segment.first >= records_.capacity()) {
      return "block(7): the list of segments is broken";
    }
    if (const char* broken = walk_segment(records_, segment, granule_.count(), &recount))
      return broken;
    segment_before = s;
  }
  if (!same_counts(recount.counts, counts_))
    return "block(6) C14: a counter differs from the recount";
  if (const char* broken = index_.validate(records_, recount.counts.blocks[0])) return broken;

  // The chains first: find() trusts them.
  if (!map_.is_consistent(records_)) return "block(4): the map's chains and its count differ";
  std::uint32_t owned = 0;
  for (std::uint32_t s = segments_first_; s != kNone; s = segments_[s].next) {
    for (std::uint32_t i = segments_[s].first; i != kNone; i = records_[i].next) {
      if (!is_owned(records_.state(i))) continue;
      owned += 1;
      if (map_.find(records_, records_.address(i)) != i)
        return "block(4): a live or pending block is not in the map";
    }
  }
  if (map_.count() != owned) return "block(4): the map holds something else";
  if (!records_.holds(recount.records) || !segments_.holds(recount.counts.segments)) {
    return "block(7): a record is lost, or reached twice";
  }
  const auto is_away = [this](std::uint32_t segment) { return this->is_away(segment); };
  std::uint64_t away = 0;
  for (std::uint32_t s = segments_first_; s != kNone; s = segments_[s].next) {
    if (!is_away(s)) continue;
    away += 1;
    if (records_.link(segments_[s].first).to != s)
      return "block(9): a block in transfer names another segment";
  }
  if (!order_.is_consistent(segments_, counts_.segments - away, is_away))
    return "block(9): the order of the segments";
  return nullptr;
}

/// Have the kGroupsAtOnce groups from `first` on neither a tree nor a bit? Most have not, and are
/// passed over together.
bool FreeIndex::has_nothing_in(unsigned first) const noexcept {
  constexpr std::uint64_t kThese = (std::uint64_t{1} << kGroupsAtOnce) - 1;
  static constexpr auto kNoTrees = [] {
    std::array<std::uint32_t, std::size_t{kGroupsAtOnce} * kSubs> roots{};
    roots.fill(kNoNode);
    return roots;
  }();
  const auto subs = subs_.begin() + first;
  return (groups_ >> first & kThese) == 0 &&
         std::count(subs, subs + kGroupsAtOnce, 0u) == kGroupsAtOnce &&
         std::memcmp(&roots_[std::size_t{first} << kSubBits], kNoTrees.data(), sizeof kNoTrees) ==
             0;
}

const char* FreeIndex::validate(const Records& records, std::uint64_t count) const noexcept {
  FitTrees::Counted found;
  const bool has_latest = latest_ != kNone;
  if (has_latest && (latest_ >= records.capacity() || records.state(latest_) != kFree)) {
    return "block(3) C5: a block in the index is not free";
  }
  for (unsigned group = 0; group < kGroups; ++group) {
    if (group % kGroupsAtOnce == 0 && has_nothing_in(group)) {
      group += kGroupsAtOnce - 1;
      continue;
    }
    const std::uint32_t* const roots = &roots_[std::size_t{group} << kSubBits];
    std::uint32_t filled = 0;
    for (unsigned sub = 0; sub < kSubs; ++sub) {
      const unsigned size_class = (group << kSubBits) | sub;
      if (roots[sub] == kNoNode) continue;
      const auto key_of = [&](std::uint32_t index) {
        const Place place = place_of(records, index);
        // which is in no tree
        const bool is_here = place.size_class == size_class && index != latest_;
        return is_here ? place.key : FitTrees::kSlotMask;  // the latter is no key
      };
      const std::uint64_t before = found.records;
      const char* broken = trees_.validate(records, roots[sub], size_class, &found, key_of);
      if (broken != nullptr) return broken;
      filled |= static_cast<std::uint32_t>(found.records != before) << sub;
    }
    if (filled != subs_[group]) return "block(3) C5: a class's bit differs from its tree";
    if ((groups_ >> group & 1) != (filled != 0))
      return "block(3) C5: a group's bit differs from its classes";
  }
  if (!trees_.holds(found)) return "block(3) C5: a node of the trees is lost, or reached twice";
  const std::uint64_t in_index = found.records + (has_latest ? 1 : 0);
  return in_index == count ? nullptr
                           : "block(3) C5: the index holds more or fewer than the free blocks";
}

}  // namespace ashlar::inline v0::block
