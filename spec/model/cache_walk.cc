// The whole-map walk: the subject's snapshot against the tiling rules, the device's ledger and the owned blocks, and the
// recount that statistics are compared with. Clauses C3, C4, C5, C14, C18, invariant (1) of cache_model.h.
#include <algorithm>

#include "spec/model/cache_model.h"

namespace ashlar::spec {

namespace {

constexpr unsigned f(CacheFigure figure) { return static_cast<unsigned>(figure); }

std::string place(const CacheSegment& segment, const CacheBlock& block) {
  return "segment " + std::to_string(segment.ordinal) + " + " + std::to_string(block.address - segment.base) + " (" +
         std::to_string(block.size) + " bytes)";
}

/// A block as the model knows it, with nothing to look into: the common case of match_owned.
bool is_plainly(const OwnedBlock& own, const CacheBlock& block, bool is_small) {
  return block.state == CacheState::kLive && !own.is_pending && own.size == block.size && own.is_small == is_small &&
         own.requested == block.requested && own.stream == block.stream && own.uses.empty() && block.other_uses == 0;
}

}  // namespace

HeapFigures& CacheModel::heap_of(Device& device, std::uint64_t stream) {
  for (HeapFigures& heap : device.heaps) {
    if (heap.heap == stream) return heap;
  }
  device.heaps.emplace_back();
  device.heaps.back().heap = stream;
  return device.heaps.back();
}

/// A block that is not free against the next owned one; free ones let pending owned blocks go.
void CacheModel::match_owned(Device& device, const CacheSegment& segment, const CacheBlock& block,
                             Blocks::iterator* owned) {
  while (*owned != device.owned.end() && (*owned)->first < block.address) {
    if (!(*owned)->second.is_pending) {
      return report("C2", "a live block is not in the snapshot, before " + place(segment, block));
    }
    *owned = complete(device, *owned);
  }
  const bool is_known = *owned != device.owned.end() && (*owned)->first == block.address;
  if (!is_known) return report("C2", place(segment, block) + " is owned by nobody that was given it");
  const OwnedBlock& own = (*owned)->second;
  const bool is_pending = block.state == CacheState::kPending;
  if (own.is_pending != is_pending) return report("C2", place(segment, block) + (is_pending ? " is pending but live" : " is live but freed"));
  // A borrowed block whose borrower is done, but other uses are not, may go by its heap's stream again.
  const bool is_borrowed = segment.stream != own.stream;
  const bool same_stream = own.stream == block.stream || (is_pending && is_borrowed && block.stream == segment.stream);
  if (own.size != block.size || own.requested != block.requested || !same_stream) {
    return report("C1", place(segment, block) + " changed its size, its requested size or its stream");
  }
  if (own.is_small != segment.is_small) return report("DEV-2", place(segment, block) + " lies in the wrong pool");
  // On a block taken from another stream's heap, that stream's own order stands for a use of it, and the borrower is one.
  const auto in_order = static_cast<std::size_t>(std::count(own.uses.begin(), own.uses.end(), segment.stream));
  const std::size_t least = is_pending ? 0 : own.uses.size() - in_order;
  if (block.other_uses > own.uses.size() + is_borrowed || block.other_uses < least) {
    return report("C7", place(segment, block) + " counts " + std::to_string(block.other_uses) + " uses of " +
                            std::to_string(own.uses.size()) + " announced");
  }
  if (is_pending && own.uses.empty() && !is_borrowed && lost_streams_.empty()) {
    return report("DEV-6", place(segment, block) + " waits for nothing, but was not merged");
  }
  ++*owned;
}

void CacheModel::walk_segment(Device& device, const CacheSegment& segment, HeapFigures& heap, Blocks::iterator* owned) {
  std::uint64_t counts[kCacheFigures] = {};
  const CacheBlock* block = device.next.blocks.data() + segment.block_first;
  const CacheBlock* const end = block + segment.block_count;
  std::uint64_t at = segment.base;
  bool was_free = false;
  for (; block != end; ++block) {
    if (block->address != at || block->size == 0) return report("C3", place(segment, *block) + " leaves a gap or overlaps");
    at += block->size;
    const bool is_free = block->state == CacheState::kFree;
    if (is_free && was_free) return report("C4", place(segment, *block) + " and the block before it are both free");
    was_free = is_free;
    if ((block->size & (settings_.granule - 1)) != 0) return report("C3", place(segment, *block) + " is no multiple of the granule");
    if (is_free) {
      if (segment.block_count == 1) continue;
      counts[f(CacheFigure::kInactiveSplits)] += 1;
      counts[f(CacheFigure::kInactiveSplitBytes)] += block->size;
      continue;
    }
    if (block->state == CacheState::kInTransfer) return report("C18", place(segment, *block) + " is in transfer after the call");
    counts[f(CacheFigure::kActive)] += 1;
    counts[f(CacheFigure::kActiveBytes)] += block->size;
    counts[f(CacheFigure::kRequestedBytes)] += block->requested;
    if (block->state == CacheState::kLive) {
      counts[f(CacheFigure::kAllocations)] += 1;
      counts[f(CacheFigure::kAllocatedBytes)] += block->size;
    }
    if (*owned != device.owned.end() && (*owned)->first == block->address &&
        is_plainly((*owned)->second, *block, segment.is_small)) {
      ++*owned;
    } else {
      match_owned(device, segment, *block, owned);
    }
  }
  if (at != segment.base + segment.size) {
    return report("C3", "the blocks of segment " + std::to_string(segment.ordinal) + " do not reach its end");
  }
  counts[f(CacheFigure::kSegments)] = 1;
  counts[f(CacheFigure::kReservedBytes)] = segment.size;
  for (unsigned i = 0; i < kCacheFigures; ++i) {
    heap.now[i][0] += counts[i];
    heap.now[i][segment.is_small ? 1 : 2] += counts[i];
  }
}

void CacheModel::walk(Device& device) {
  if (++walks_ % validate_every_ == 0) {
    if (const char* broken = subject_.validate()) return report("C5", std::string("the subject's own walk: ") + broken);
  }
  if (!subject_.snapshot(device.id, &device.next).is_ok()) return report("C3", "no snapshot could be taken");
  for (HeapFigures& heap : device.heaps) {
    std::copy(&heap.now[0][0], &heap.now[0][0] + kCacheFigures * kCachePools, &heap.before[0][0]);
    std::fill(&heap.now[0][0], &heap.now[0][0] + kCacheFigures * kCachePools, 0);
  }
  const std::vector<DeviceWitness::Held>& held = device.witness->segments();
  const std::vector<CacheSegment>& segments = device.next.segments;
  if (segments.size() != held.size()) {
    return report("C14", "the snapshot has " + std::to_string(segments.size()) + " segments, the device gave out " +
                             std::to_string(held.size()));
  }
  Blocks::iterator owned = device.owned.begin();
  for (std::size_t i = 0; i < segments.size() && verdict_.is_good(); ++i) {
    if (segments[i].base != held[i].base || segments[i].size != held[i].size) {
      return report("C14", "segment " + std::to_string(segments[i].ordinal) + " is not as the device gave it out");
    }
    walk_segment(device, segments[i], heap_of(device, segments[i].stream), &owned);
  }
  while (owned != device.owned.end() && verdict_.is_good()) {
    if (!owned->second.is_pending) return report("C2", "a live block is not in the snapshot, after the last segment");
    owned = complete(device, owned);
  }
  std::fill(&device.sum[0][0], &device.sum[0][0] + kCacheFigures * kCachePools, 0);
  for (const HeapFigures& heap : device.heaps) {
    for (unsigned n = 0; n < kCacheFigures * kCachePools; ++n) (&device.sum[0][0])[n] += (&heap.now[0][0])[n];
  }
  std::swap(device.view, device.next);
  device.is_fresh = true;
}

void CacheModel::walk_all() {
  for (Device& device : devices_) {
    if (verdict_.is_good()) walk(device);
  }
}

void CacheModel::judge_empty(DeviceId id) {
  Device& device = at(id);
  walk(device);
  if (const char* broken = subject_.validate()) report("C5", std::string("the subject's own walk: ") + broken);
  if (!device.owned.empty()) report("C14", "after everything was freed, a free is still pending");
  if (!device.witness->segments().empty()) {
    report("C14", "after everything was freed and trimmed, " + std::to_string(device.witness->segment_bytes()) +
                      " bytes are still reserved");
  }
}

}  // namespace ashlar::spec
