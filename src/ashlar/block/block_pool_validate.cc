// validate() of the block pool and of its free index: walks of the whole structure. See the
// invariants of block_pool.h, free_index.h and fit_classes.h.
//
// Every loop is bounded by the slabs' records, so that a corrupt list is reported instead of
// looping forever.
#include <algorithm>
#include <array>
#include <cstring>

#include <ashlar/block/block_pool.h>
#include <ashlar/block/fit_tree_validate.h>

namespace ashlar::inline v0::block {
namespace {

constexpr auto kFree = raw(BlockState::kFree);
constexpr auto kUnmapped = raw(BlockState::kUnmapped);

/// The result of a walk over the segments.
struct Recount {
  PoolCounts counts;
  std::uint64_t records = 0;
};

bool same_counts(const PoolCounts& a, const PoolCounts& b) {
  for (unsigned i = 0; i < kBlockStates; ++i) {
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
    if (i >= records.touched() || ++recount->records > records.touched()) {
      return "block(1) C3: a list of blocks is broken";
    }
    const std::uint8_t state = records.state(i);
    const std::uint64_t size = records.size(i);
    if (state >= kBlockStates) return "block(1) C3: an unused record is in a segment";
    if (records[i].prev != before) return "block(1) C3: neighbours do not agree";
    if (records.address(i) != end) return "block(1) C3: a gap or an overlap between blocks";
    if (size == 0 || size % granule != 0 || end % granule != 0) {
      return "block(5): an address or a size is not a positive multiple of the granule";
    }
    if (before != kNone && records.state(before) == state && (state == kFree || state == kUnmapped))
      return state == kFree ? "block(2) C4: two free blocks touch"
                            : "block(2) C4: two unmapped blocks touch";
    end += size;
    recount->counts.blocks[state] += 1;
    recount->counts.bytes[state] += Bytes{size};
    if (is_owned(state)) {
      if (records.requested(i, size) > size)
        return "block(8) C1: a block is smaller than its request";
      if (records.has_user(i) && records.user(i) == 0)
        return "block(8): a user word in an overflow record is zero";
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

const char* BlockPool::validate() const noexcept {
  const LongSectionScope check;  // not the pool's work
  Recount recount;
  std::uint32_t segment_before = kNone;
  for (std::uint32_t s = segments_first_; s != kNone; s = records_.segments()[s].next) {
    if (s >= records_.segments().touched() ||
        recount.counts.segments >= records_.segments().touched()) {
      return "block(7): the list of segments is broken";
    }
    const SegmentRecord& segment = records_.segments()[s];
    if (records_.segments().state(s) == kUnused || segment.prev != segment_before ||
        segment.first >= records_.touched()) {
      return "block(7): the list of segments is broken";
    }
    if (const char* broken = walk_segment(records_, segment, granule_.count(), &recount))
      return broken;
    segment_before = s;
  }
  if (!same_counts(recount.counts, counts_))
    return "block(6) C14: a counter differs from the recount";
  for (std::uint32_t s = segments_first_; s != kNone; s = records_.segments()[s].next) {
    for (std::uint32_t i = records_.segments()[s].first; i != kNone; i = records_[i].next) {
      if (records_.segment(i) != s) return "block(9): a block names another segment";
    }
    if (records_.segments().column<SegmentShift>(s).bytes % granule_.count() != 0)
      return "block(5): a position is not a multiple of the granule";
  }
  if (const char* broken = index_.validate(records_, recount.counts.blocks[kFree], kFree))
    return broken;
  const std::uint64_t unmapped = recount.counts.blocks[kUnmapped];
  if (unmapped_ == nullptr && unmapped != 0) return "block(3) C5: unmapped blocks without an index";
  if (unmapped_ != nullptr) {
    const char* broken = unmapped_->validate(records_, unmapped, kUnmapped);
    if (broken != nullptr) return broken;
  }

  // The chains are checked first because find() relies on them.
  if (!map_.is_consistent(records_))
    return "block(4): the chains of the map are broken, or differ from its count";
  std::uint32_t owned = 0;
  for (std::uint32_t s = segments_first_; s != kNone; s = records_.segments()[s].next) {
    for (std::uint32_t i = records_.segments()[s].first; i != kNone; i = records_[i].next) {
      if (!is_owned(records_.state(i))) continue;
      owned += 1;
      if (map_.find(records_, records_.address(i)) != i)
        return "block(4): a live or pending block is not in the map";
    }
  }
  if (map_.count() != owned)
    return "block(4): the map holds an entry that is not a live or pending block";
  if (!records_.accounts_for(recount.records) ||
      !records_.segments().accounts_for(recount.counts.segments)) {
    return "block(7): a record is lost, or reached twice";
  }
  return nullptr;
}

/// True if the kGroupsPerStep groups from `first` on have neither a tree nor a bit set. Most groups
/// are so, and validate() skips them together.
bool FitClasses::are_groups_empty(unsigned first) const noexcept {
  constexpr std::uint64_t kGroupMask = (std::uint64_t{1} << kGroupsPerStep) - 1;
  static constexpr auto kNoTrees = [] {
    std::array<std::uint32_t, std::size_t{kGroupsPerStep} * kClassesPerGroup> roots{};
    roots.fill(kNoNode);
    return roots;
  }();
  const auto classes = class_bits_.begin() + first;
  return (group_bits_ >> first & kGroupMask) == 0 &&
         std::count(classes, classes + kGroupsPerStep, 0u) == kGroupsPerStep &&
         std::memcmp(&roots_[std::size_t{first} << kClassBits], kNoTrees.data(), sizeof kNoTrees) ==
             0;
}

const char* FitClasses::validate(const Trees& trees, const Records& records, unsigned mark,
                                 std::uint32_t latest, Trees::NodeCounts* found) const noexcept {
  for (unsigned group = 0; group < kGroups; ++group) {
    if (group % kGroupsPerStep == 0 && are_groups_empty(group)) {
      group += kGroupsPerStep - 1;
      continue;
    }
    const std::uint32_t* const roots = &roots_[std::size_t{group} << kClassBits];
    std::uint32_t filled = 0;
    for (unsigned in_group = 0; in_group < kClassesPerGroup; ++in_group) {
      const unsigned size_class = (group << kClassBits) | in_group;
      if (roots[in_group] == kNoNode) continue;
      const auto key_of = [&](std::uint32_t index) {
        const std::uint64_t position = records.position(index);
        const Place place = place_of(records, index);
        // The record inserted last belongs in no tree, one outside the window in none of these;
        // kSlotMask is no record's key.
        const bool belongs_here =
            place.size_class == size_class && contains(position, position) && index != latest;
        return belongs_here ? place.key : Trees::kSlotMask;
      };
      const std::uint64_t before = found->records;
      const char* broken =
          trees.validate(records, roots[in_group], size_class | mark, found, key_of);
      if (broken != nullptr) return broken;
      filled |= static_cast<std::uint32_t>(found->records != before) << in_group;
    }
    if (filled != class_bits_[group]) return "block(3) C5: a class's bit differs from its tree";
    if ((group_bits_ >> group & 1) != (filled != 0))
      return "block(3) C5: a group's bit differs from its classes";
  }
  return nullptr;
}

const char* FreeIndex::validate(const Records& records, std::uint64_t count,
                                std::uint8_t state) const noexcept {
  const bool has_latest = latest_ != kNone;
  if (has_latest && (latest_ >= records.touched() || records.state(latest_) != state)) {
    return "block(3) C5: a block in the index has another state";
  }
  if (move_ != Move::kToWide && span_last_ != 0 && !near_.contains(span_base_, span_last_))
    return "block(3) C5: the window does not contain the segments";
  Trees::NodeCounts found;
  found.state = state;
  if (const char* broken = near_.validate(trees_, records, 0, latest_, &found)) return broken;
  if (wide_ != nullptr) {
    const char* broken = wide_[0].validate(trees_, records, kWideMark, latest_, &found);
    if (broken != nullptr) return broken;
  }
  if (move_ == Move::kSettled ? wide_ != nullptr && !wide_[0].is_empty() : wide_ == nullptr)
    return "block(3) C5: a block is in classes that are not searched";
  if (!trees_.accounts_for(found))
    return "block(3) C5: a node of the trees is lost, or reached twice";
  const std::uint64_t in_index = found.records + (has_latest ? 1 : 0);
  return in_index == count ? nullptr
                           : "block(3) C5: the index holds more or fewer than the free blocks";
}

}  // namespace ashlar::inline v0::block
