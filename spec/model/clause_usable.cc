// C1, C2, C10, C21, DEV-1, DEV-4: what an allocation was given. See cache_clauses.h.
#include <algorithm>

#include "spec/model/cache_clauses.h"

namespace ashlar::spec {

namespace {

/// What the device promises of every segment's base; a granule over this cannot be kept.
constexpr std::uint64_t kAlignmentMax = 512;

/// info(), or the same from the snapshot where the device went during the call and info() says so.
Result<CacheInfo> info_of(CacheState& state, JudgedDevice& device, std::uint64_t address) {
  const Result<CacheInfo> got = state.subject.info(Address{address});
  if (got.is_ok() || device.was_gone || got.code() != end_of(state, device)) return got;
  cache::Snapshot& map = device.map.next;
  if (!state.subject.snapshot(device.id, &map).is_ok()) return got;
  for (const cache::SnapshotSegment& segment : map.segments) {
    for (std::uint32_t i = 0; i < segment.block_count; ++i) {
      const cache::SnapshotBlock& block = map.blocks[segment.block_first + i];
      if (block.address.value() != address || block.state != BlockState::kLive) continue;
      return CacheInfo{block.size, block.requested, segment.base, segment.size, block.stream};
    }
  }
  return got;
}

/// C1: big enough, remembered rightly, aligned.
void judge_info(CacheState& state, const CacheInfo& info, std::uint64_t size, const Stream& stream,
                std::uint64_t address) {
  if (info.size.count() < size || info.requested.count() != size)
    state.verdict.report("C1", "the block is smaller than asked, or misremembers it");
  if (address % std::min(state.rules.granule(), kAlignmentMax) != 0)
    state.verdict.report("C1", hex(address), " is not aligned");
  if (info.stream != stream.id) state.verdict.report("C1", "info() names another stream");
}

/// C1: the segment held from the device that has all of the block; nullptr when none has.
const DeviceWitness::Held* judge_inside(CacheState& state, const JudgedDevice& device,
                                        const CacheInfo& info, std::uint64_t address) {
  const std::vector<DeviceWitness::Held>& held = device.ledger.witness().segments();
  auto segment =
      std::upper_bound(held.begin(), held.end(), address,
                       [](std::uint64_t a, const DeviceWitness::Held& h) { return a < h.base; });
  const bool is_inside = segment != held.begin() &&
                         (--segment, address - segment->base <= segment->size) &&
                         info.size.count() <= segment->size - (address - segment->base);
  if (!is_inside) {
    state.verdict.report("C1", hex(address),
                         " is not wholly inside a segment held from the device");
    return nullptr;
  }
  if (info.segment.value() != segment->base || info.segment_size.count() != segment->size)
    state.verdict.report("C1", "info() misstates the segment of ", hex(address));
  return &*segment;
}

/// C2: no live block shares a byte with it. A pending one that does must have completed; whether
/// rightly, the detector knows.
bool judge_disjoint(CacheState& state, JudgedDevice& device, std::uint64_t address,
                    std::uint64_t size) {
  OwnedBlocks& owned = device.books.owned();
  auto other = owned.lower_bound(address);
  if (other != owned.begin() && (--other, other->first + other->second.size <= address)) ++other;
  while (other != owned.end() && other.address() < address + size) {
    if (!other->second.is_pending) {
      state.verdict.report("C2", hex(address), " overlaps the live block at ", hex(other->first));
      return false;
    }
    device.books.touch(other->first);
    other = device.books.complete(other);
  }
  return true;
}

/// Is the segment at that base one whose blocks are never split (DEV-8)? It may be where the map at hand
/// does not show it, or shows what was there before.
bool is_unsplit(const CacheState& state, const JudgedDevice& device, std::uint64_t base) {
  if (state.asked.is_unsplit) return true;
  const cache::SnapshotSegment* const segment = find_segment(device.map.view.segments, base);
  return segment == nullptr || !device.map.is_fresh ? state.pools.any_unsplit()
                                                    : state.pools.is_unsplit(heap_of(*segment));
}

/// DEV-1, DEV-4: as large as the rules make it, and not much larger.
void judge_size(CacheState& state, std::uint64_t usable, std::uint64_t rounded) {
  if (usable < rounded)
    state.verdict.report("DEV-1", "the block is smaller than the rounded request ", rounded);
  const std::uint64_t spare = usable - std::min(rounded, usable);
  if (state.rules.is_to_split(spare, rounded))
    state.verdict.report("DEV-4", "a block with ", spare, " bytes to spare was not split");
}

/// The free block that the call took or cut; 0 where it is not known.
std::uint64_t size_before(const JudgedDevice& device, const cache::SnapshotSegment& now,
                          std::uint64_t address, bool had_view) {
  if (device.ledger.gained_bytes() != 0) return 0;
  if (device.ledger.witness().grants().is_new(now.ordinal))
    return now.base.value() == address ? now.size.count() : 0;
  if (!had_view) return 0;
  const cache::Snapshot& before = device.map.next;
  const cache::SnapshotSegment* const was = find_segment(before.segments, address);
  if (was == nullptr || was->ordinal != now.ordinal) return 0;
  for (std::uint32_t i = 0; i < was->block_count; ++i) {
    const cache::SnapshotBlock& block = before.blocks[was->block_first + i];
    if (block.address.value() == address && block.state == BlockState::kFree)
      return block.size.count();
  }
  return 0;
}

}  // namespace

void judge_cut(CacheState& state, const JudgedDevice& device, const JudgedCall& call,
               bool had_view) {
  const OwnedBlock* const given = device.books.find_live(call.address);
  if (given == nullptr || !device.map.is_fresh) return;
  const cache::SnapshotSegment* const now = find_segment(device.map.view.segments, call.address);
  if (now == nullptr) return;  // the walk has said so
  const std::uint64_t whole = size_before(device, *now, call.address, had_view);
  if (whole <= given->size) return;
  if (is_unsplit(state, device, now->base.value()))
    return state.verdict.report("DEV-8", "a block of a pool without splits was cut at ",
                                given->size, " of ", whole, " bytes");
  const std::uint64_t rounded = state.rules.rounded(call.requested);
  if (given->size != rounded)
    state.verdict.report("DEV-4", "a block was cut at ", given->size, " bytes for ", rounded);
  if (!state.rules.fits(whole, rounded)) {
    state.verdict.report("DEV-3", "a block of ", whole, " bytes was cut for ", rounded,
                         ", which it may not serve");
  }
  if (!state.rules.is_to_split(whole - rounded, rounded)) {
    state.verdict.report("DEV-4", "a block of ", whole, " bytes was split for ", rounded,
                         ", though too little is left");
  }
}

void follow_allocation(CacheState& state, JudgedDevice& device, std::uint64_t tag,
                       std::uint64_t size, const Stream& stream, std::uint64_t address) {
  const Result<CacheInfo> got = info_of(state, device, address);
  if (!got.is_ok()) {
    return state.verdict.report("C1",
                                "info() does not know the address just given out: ", hex(address));
  }
  const CacheInfo& info = got.value();
  const std::uint64_t rounded = state.rules.rounded(size);
  judge_info(state, info, size, stream, address);
  const DeviceWitness::Held* const segment = judge_inside(state, device, info, address);
  if (segment == nullptr || !judge_disjoint(state, device, address, info.size.count())) return;
  judge_given_memory(state, device, {address, address + info.size.count()});
  for (const std::uint64_t part : {segment->ordinal, address - segment->base}) {
    state.address_hash.add(part);
    state.world.step_addresses.add(part);
  }
  if (!is_unsplit(state, device, segment->base)) judge_size(state, info.size.count(), rounded);
  OwnedBlock block;
  block.tag = tag;
  block.size = info.size.count();
  block.requested = size;
  block.stream = stream.id.value();
  block.pool = state.rules.pool_of(rounded);
  block.capture = state.streams.graph_of(stream);
  if (state.asked.is_pool)
    block.memory_pool = state.pools.find(device.id, state.asked.pool)->serial;
  device.books.add_live(address, block);
  device.bounds.add_allocation(block.pool, block.size, size);
}

}  // namespace ashlar::spec
