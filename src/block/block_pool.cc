#include <ashlar/block/block_pool.h>

#include <algorithm>
#include <bit>

#include <ashlar/base/checked.h>

namespace ashlar {
inline namespace v0 {
namespace block {
namespace {

constexpr std::uint64_t kGranuleMin = 16;
constexpr std::uint64_t kGranuleMax = 64 * 1024;

constexpr std::uint32_t raw(BlockIndex block) { return static_cast<std::uint32_t>(block); }
constexpr std::uint32_t raw(SegmentIndex segment) { return static_cast<std::uint32_t>(segment); }
constexpr std::uint8_t raw(State state) { return static_cast<std::uint8_t>(state); }

bool is_owned(const BlockRecord& record) {
  return record.state == raw(State::kLive) || record.state == raw(State::kPending);
}

}  // namespace

BlockPool::BlockPool(Bytes granule)
    : granule_(granule), index_(static_cast<unsigned>(std::countr_zero(granule.count()))) {
  ASHLAR_ASSERT(is_power_of_two(granule.count()), "block(5): the granule is not a power of two");
  ASHLAR_ASSERT(granule.count() >= kGranuleMin && granule.count() <= kGranuleMax, "block(5): granule out of range");
}

BlockPool::~BlockPool() = default;

// Records and counters. -----------------------------------------------------------------------------------------------

inline const BlockRecord& BlockPool::at(BlockIndex block) const noexcept {
  const BlockRecord& record = records_[raw(block)];
  ASHLAR_ASSERT(record.state != kUnused, "block(7): no such block");
  return record;
}

inline BlockRecord& BlockPool::checked(BlockIndex block, [[maybe_unused]] State state) noexcept {
  BlockRecord& record = records_[raw(block)];
  ASHLAR_ASSERT(record.state == raw(state), "block: the block is in another state than this operation needs");
  return record;
}

inline void BlockPool::count_out(State state, std::uint64_t size) noexcept {
  counts_.blocks[raw(state)] -= 1;
  counts_.bytes[raw(state)] -= Bytes{size};
}

inline void BlockPool::count_in(State state, std::uint64_t size) noexcept {
  counts_.blocks[raw(state)] += 1;
  counts_.bytes[raw(state)] += Bytes{size};
}

/// A free block with no neighbours is a whole segment: it becomes idle, or stops being so.
inline void BlockPool::count_idle(const BlockRecord& record, bool now_idle) noexcept {
  if (record.prev != kNone || record.next != kNone) return;
  if (now_idle) {
    counts_.idle_segments += 1;
    counts_.idle_bytes += Bytes{record.size};
  } else {
    counts_.idle_segments -= 1;
    counts_.idle_bytes -= Bytes{record.size};
  }
}

// Segments. -----------------------------------------------------------------------------------------------------------

SegmentIndex BlockPool::add_segment(Address base, Bytes size, std::uint64_t stamp, std::uint64_t user,
                                    State state) noexcept {
  ASHLAR_ASSERT(state == State::kFree || state == State::kInTransfer, "block: a segment begins free or in transfer");
  ASHLAR_ASSERT(size.count() > 0 && size % granule_ == 0, "block(5): a segment's size");
  ASHLAR_ASSERT(base.value() % granule_.count() == 0, "block(5): a segment's address");
  ASHLAR_ASSERT(base.value() <= Bytes::max().count() - size.count(), "block(5): a segment past the last address");
  if (!records_.reserve_one() || !segments_.reserve_one()) return kNoSegment;

  const std::uint32_t segment = segments_.take();
  const std::uint32_t block = records_.take();
  SegmentRecord& s = segments_[segment];
  s = SegmentRecord{base.value(), size.count(), user, block, kNone, segments_first_, 0};
  if (segments_first_ != kNone) segments_[segments_first_].prev = segment;
  segments_first_ = segment;
  counts_.segments += 1;
  counts_.segment_bytes += size;

  BlockRecord& record = records_[block];
  record = BlockRecord{};
  record.address = base.value();
  record.size = size.count();
  record.stamp = stamp;
  record.segment = segment;
  record.state = raw(state);
  count_in(state, size.count());
  if (state == State::kFree) count_idle(record, true);
  if (index_.extend_window(base.value(), size.count())) {
    reindex();
  } else if (state == State::kFree) {
    index_.insert(records_, block);
  }
  return SegmentIndex{segment};
}

/// The index's keys changed: builds it anew from the segments.
void BlockPool::reindex() noexcept {
  index_.clear();
  for (std::uint32_t s = segments_first_; s != kNone; s = segments_[s].next) {
    for (std::uint32_t b = segments_[s].first; b != kNone; b = records_[b].next) {
      if (records_[b].state == raw(State::kFree)) index_.insert(records_, b);
    }
  }
}

void BlockPool::remove_segment(SegmentIndex segment) noexcept {
  SegmentRecord& s = segments_[raw(segment)];
  ASHLAR_ASSERT(s.state != kUnused, "block(7): no such segment");
  const std::uint32_t block = s.first;
  const BlockRecord& record = checked(BlockIndex{block}, State::kInTransfer);
  ASHLAR_ASSERT(record.size == s.size, "block(1): a segment is dropped while it has several blocks");
  count_out(State::kInTransfer, record.size);
  counts_.segments -= 1;
  counts_.segment_bytes -= Bytes{s.size};
  records_.put(block);
  if (s.prev != kNone) {
    segments_[s.prev].next = s.next;
  } else {
    segments_first_ = s.next;
  }
  if (s.next != kNone) segments_[s.next].prev = s.prev;
  segments_.put(raw(segment));
}

bool BlockPool::is_idle(SegmentIndex segment) const noexcept {
  const BlockRecord& record = at(view(segment).first);
  return record.state == raw(State::kFree) && record.next == kNone;
}

// The operations. -----------------------------------------------------------------------------------------------------

BlockIndex BlockPool::best_fit(Bytes size, Bytes size_end) const noexcept {
  ASHLAR_ASSERT(size.count() > 0 && size % granule_ == 0, "block(5): best_fit of a size that is no block's");
  const std::uint32_t found = index_.lower_bound(records_, size.count());
  if (found == kNone || records_[found].size >= size_end.count()) return kNoBlock;
  return BlockIndex{found};
}

BlockIndex BlockPool::next_fit(BlockIndex block) const noexcept {
  ASHLAR_ASSERT(at(block).state == raw(State::kFree), "block: next_fit of a block that is not free");
  return BlockIndex{index_.successor(records_, raw(block))};
}

BlockIndex BlockPool::take(BlockIndex block, Bytes size, bool split, Bytes requested, std::uint64_t user) noexcept {
  ASHLAR_ASSERT(size.count() > 0 && size % granule_ == 0, "block(5): take of a size that is no block's");
  ASHLAR_ASSERT(size <= this->size(block), "C1: take of more than the block has");
  // Everything that can fail comes before the first change (and before references: the slab may move).
  const bool splits = split && size < this->size(block);
  if (!map_.reserve_one() || (splits && !records_.reserve_one())) return kNoBlock;

  BlockRecord& record = checked(block, State::kFree);
  count_idle(record, false);
  index_.remove(records_, raw(block));
  if (splits) {
    const std::uint32_t rest = records_.take();
    BlockRecord& r = records_[rest];
    r.address = record.address + size.count();
    r.size = record.size - size.count();
    r.stamp = record.stamp;
    r.prev = raw(block);
    r.next = record.next;
    r.segment = record.segment;
    r.state = raw(State::kFree);
    if (r.next != kNone) records_[r.next].prev = rest;
    record.next = rest;
    record.size = size.count();
    counts_.bytes[raw(State::kFree)] -= size;
    index_.insert(records_, rest);
  } else {
    count_out(State::kFree, record.size);
  }
  record.state = raw(State::kLive);
  record.caller = {requested.count(), user};
  count_in(State::kLive, record.size);
  counts_.requested_bytes += requested;
  map_.insert(record.address, raw(block));
  return block;
}

/// Takes the next block, which is free, into this one.
inline void BlockPool::absorb_next(BlockRecord& record) noexcept {
  const std::uint32_t gone = record.next;
  const BlockRecord& next = records_[gone];
  const std::uint32_t self = next.prev;
  record.size += next.size;
  record.stamp = std::max(record.stamp, next.stamp);
  record.next = next.next;
  if (next.next != kNone) records_[next.next].prev = self;
  records_.put(gone);
}

BlockIndex BlockPool::release(BlockIndex block, std::uint64_t stamp) noexcept {
  std::uint32_t merged = raw(block);
  BlockRecord& record = records_[merged];
  ASHLAR_ASSERT(record.state != kUnused && record.state != raw(State::kFree), "C16: release of a free block");
  if (is_owned(record)) {
    map_.erase(record.address, merged);
    counts_.requested_bytes -= Bytes{record.caller.requested};
  }
  count_out(State{record.state}, record.size);
  count_in(State::kFree, record.size);
  record.state = raw(State::kFree);
  record.stamp = stamp;

  if (record.next != kNone && records_[record.next].state == raw(State::kFree)) {
    index_.remove(records_, record.next);
    absorb_next(record);
    counts_.blocks[raw(State::kFree)] -= 1;
  }
  if (record.prev != kNone && records_[record.prev].state == raw(State::kFree)) {
    merged = record.prev;
    index_.remove(records_, merged);
    absorb_next(records_[merged]);
    counts_.blocks[raw(State::kFree)] -= 1;
  }
  index_.insert(records_, merged);
  count_idle(records_[merged], true);
  return BlockIndex{merged};
}

void BlockPool::defer(BlockIndex block) noexcept {
  BlockRecord& record = checked(block, State::kLive);
  count_out(State::kLive, record.size);
  count_in(State::kPending, record.size);
  record.state = raw(State::kPending);
}

void BlockPool::undefer(BlockIndex block) noexcept {
  BlockRecord& record = checked(block, State::kPending);
  count_out(State::kPending, record.size);
  count_in(State::kLive, record.size);
  record.state = raw(State::kLive);
}

void BlockPool::lift(BlockIndex block) noexcept {
  BlockRecord& record = checked(block, State::kFree);
  count_idle(record, false);
  index_.remove(records_, raw(block));
  count_out(State::kFree, record.size);
  count_in(State::kInTransfer, record.size);
  record.state = raw(State::kInTransfer);
}

// Queries. ------------------------------------------------------------------------------------------------------------

BlockIndex BlockPool::find(Address address) const noexcept { return BlockIndex{map_.find(address.value(), records_)}; }

BlockView BlockPool::view(BlockIndex block) const noexcept {
  const BlockRecord& record = at(block);
  const BlockRecord::Caller caller = is_owned(record) ? record.caller : BlockRecord::Caller{};
  return BlockView{Address{record.address}, Bytes{record.size}, Bytes{caller.requested}, State{record.state},
                   record.stamp,            caller.user,        SegmentIndex{record.segment}};
}

SegmentView BlockPool::view(SegmentIndex segment) const noexcept {
  const SegmentRecord& s = segments_[raw(segment)];
  ASHLAR_ASSERT(s.state != kUnused, "block(7): no such segment");
  return SegmentView{Address{s.base}, Bytes{s.size}, s.user, BlockIndex{s.first}};
}

BlockIndex BlockPool::next(BlockIndex block) const noexcept { return BlockIndex{at(block).next}; }
SegmentIndex BlockPool::first_segment() const noexcept { return SegmentIndex{segments_first_}; }
SegmentIndex BlockPool::next(SegmentIndex segment) const noexcept {
  ASHLAR_ASSERT(segments_[raw(segment)].state != kUnused, "block(7): no such segment");
  return SegmentIndex{segments_[raw(segment)].next};
}
State BlockPool::state(BlockIndex block) const noexcept { return State{at(block).state}; }
Bytes BlockPool::size(BlockIndex block) const noexcept { return Bytes{at(block).size}; }
std::uint64_t BlockPool::user(BlockIndex block) const noexcept { return view(block).user; }
SegmentIndex BlockPool::segment(BlockIndex block) const noexcept { return SegmentIndex{at(block).segment}; }
const PoolCounts& BlockPool::counts() const noexcept { return counts_; }
Bytes BlockPool::granule() const noexcept { return granule_; }

void BlockPool::set_user(BlockIndex block, std::uint64_t user) noexcept {
  ASHLAR_ASSERT(is_owned(at(block)), "block: only live and pending blocks have a user's word");
  records_[raw(block)].caller.user = user;
}

void BlockPool::set_user(SegmentIndex segment, std::uint64_t user) noexcept {
  ASHLAR_ASSERT(segments_[raw(segment)].state != kUnused, "block(7): no such segment");
  segments_[raw(segment)].user = user;
}

Bytes BlockPool::largest_free() const noexcept {
  const std::uint32_t found = index_.largest(records_);
  return found == kNone ? Bytes{} : Bytes{records_[found].size};
}

}  // namespace block
}  // namespace v0
}  // namespace ashlar
