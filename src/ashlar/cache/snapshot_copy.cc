#include <ashlar/cache/snapshot_copy.h>

#include <algorithm>

#include <ashlar/block/pool_walk.h>
#include <ashlar/cache/device_cache.h>

namespace ashlar::inline v0::cache {
namespace {

/// The most slices of one pool that lead no further than the ones before: each means that another
/// thread has merged as many blocks as a slice copies.
constexpr unsigned kSetbacksMax = 1000;

/// The fewest blocks of a long segment that a slice copies.
constexpr unsigned kCopiedAtLeast = 2;

/// Field by field into its place: built elsewhere and copied, it would wait for its own stores
/// (measured: a fifth of a snapshot). Returns how many uses it saw.
unsigned show(const StreamHeap& heap, const block::BlockView& view, SnapshotBlock* out) noexcept {
  out->address = view.address;
  out->size = view.size;
  out->requested = view.requested;
  out->state = view.state;
  out->stream = heap.stream.id;
  out->other_uses = 0;
  unsigned uses = 0;
  // A block that is neither live nor pending has no user's word.
  for (const UseNode* use = StreamHeap::first_use(view.user); use != nullptr; use = use->sibling) {
    ++uses;
    if (use->is_borrower) {
      out->stream = use->user->stream.id;
    } else {
      ++out->other_uses;
    }
  }
  return uses;
}

/// Makes room for `more` elements; a vector that grows, grows by half at least.
template <class T>
void reserve_more(std::vector<T>* vector, std::size_t more) {
  if (vector->capacity() - vector->size() >= more) return;
  vector->reserve(std::max(vector->size() + more, vector->capacity() + vector->capacity() / 2));
}

}  // namespace

Status PoolCopy::run() {
  for (;; SpinLock::give_way()) {
    reserve_slice();
    const Guard guard(heap_.lock);
    if (copy_slice()) return Status::ok();
    ASHLAR_REQUIRE(setbacks_ <= kSetbacksMax, Code::kBusy,
                   "blocks are freed faster than a snapshot copies them");
  }
}

void PoolCopy::reserve_slice() {
  constexpr unsigned kMost = kCopiedPerHold + kCopiedAtLeast;
  reserve_more(&out_->segments, kMost);
  reserve_more(&out_->blocks, kMost);
  reserve_more(&copied_, kMost);
}

bool PoolCopy::copy_slice() noexcept {
  steps_left_ = kCopiedPerHold;
  const block::PoolWalk walk(heap_.pool(id_));
  if (is_in_segment_ && !resume_segment()) return false;
  for (; number_ < walk.segments_end(); ++number_) {
    if (steps_left_ == 0) return false;
    const block::SegmentIndex at = walk.segment(number_);
    if (at == block::kNoSegment) {
      spend(1);
    } else if (!copy_segment(at)) {
      return false;
    }
  }
  return true;
}

bool PoolCopy::copy_segment(block::SegmentIndex at) noexcept {
  const block::SegmentView view = heap_.pool(id_).view(at);
  const bool is_whole_slice = steps_left_ == kCopiedPerHold;
  is_in_segment_ = true;
  ordinal_ = record_of(view)->ordinal;
  first_ = out_->blocks.size();
  copied_.clear();
  reached_ = view.base;
  if (copy_blocks(view.first)) {
    end_segment(at);
    return true;
  }
  if (!is_whole_slice) drop_segment();  // the next slice begins with it, and may suffice
  return false;
}

bool PoolCopy::copy_blocks(block::BlockIndex block) noexcept {
  const block::BlockPool& pool = heap_.pool(id_);
  // At least one block more than the one that the slice goes on at, however many uses that has.
  for (unsigned copied = 0; block != block::kNoBlock; block = pool.next(block), ++copied) {
    if (steps_left_ == 0 && copied >= kCopiedAtLeast) return false;
    out_->blocks.emplace_back();
    copied_.push_back(block);
    const block::BlockView view = pool.view(block);
    spend(1 + show(heap_, view, &out_->blocks.back()));
    if (view.state == BlockState::kInTransfer && in_transfer_ == InTransfer::kAsNoted)
      out_->blocks.back().state = noted_state(view, pool.segment(block));
  }
  return true;
}

bool PoolCopy::resume_segment() noexcept {
  const block::BlockPool& pool = heap_.pool(id_);
  const block::PoolWalk walk(pool);
  const block::SegmentIndex at = walk.segment(number_);
  // Another one, or one block: that is copied from its beginning. (Only of a segment that is one
  // block can the range be another segment's too, so below an address belongs to one block.)
  if (at == block::kNoSegment || record_of(pool.view(at))->ordinal != ordinal_ ||
      pool.is_whole(pool.view(at).first)) {
    ++setbacks_;
    drop_segment();
    return true;
  }
  // Back to a block that is still where it was. The segment's first block always is.
  for (; copied_.size() > 1 && !walk.is_at(copied_.back(), out_->blocks.back().address); spend(1)) {
    if (steps_left_ == 0) {
      ++setbacks_;
      return false;
    }
    copied_.pop_back();
    out_->blocks.pop_back();
  }
  const block::BlockIndex from = copied_.size() > 1 ? copied_.back() : pool.view(at).first;
  copied_.pop_back();
  out_->blocks.pop_back();
  if (copy_blocks(from)) {
    end_segment(at);
    ++number_;
    return true;
  }
  const Address end = out_->blocks.back().address + out_->blocks.back().size;
  if (end > reached_) {
    reached_ = end;
  } else {
    ++setbacks_;
  }
  return false;
}

BlockState PoolCopy::noted_state(const block::BlockView& view,
                                 block::SegmentIndex at) const noexcept {
  const DeviceSegment& segment = *record_of(heap_.pool(id_).view(at));
  if (!segment.page_table.is_made()) return BlockState::kFree;
  // All of the block is on its way, or none of it.
  const Bytes page = heap_.cache.supply().pages().page();
  const bool is_gone = segment.page_table[(view.address - segment.base) / page].is_gone;
  return is_gone ? BlockState::kUnmapped : BlockState::kFree;
}

void PoolCopy::end_segment(block::SegmentIndex at) noexcept {
  const block::SegmentView view = heap_.pool(id_).view(at);
  const DeviceSegment& record = *record_of(view);
  if (in_transfer_ == InTransfer::kAsNoted && record.entry.shown_in.load() != &heap_)
    return drop_segment();
  out_->segments.push_back(
      {view.base, view.size, heap_.stream.id, ordinal_, static_cast<std::uint32_t>(first_),
       static_cast<std::uint32_t>(out_->blocks.size() - first_), id_, heap_.membership.id,
       heap_.membership.id.is_default() ? 0 : heap_.id.load(), record.page_table.is_made()});
  is_in_segment_ = false;
}

void PoolCopy::drop_segment() noexcept {
  out_->blocks.resize(first_);
  is_in_segment_ = false;
}

void PoolCopy::spend(unsigned steps) noexcept {
  count_steps(steps);
  steps_left_ -= std::min(steps, steps_left_);
}

void sort_segments(Snapshot* out) {
  std::vector<SnapshotSegment>& segments = out->segments;
  std::sort(segments.begin(), segments.end(),
            [](const SnapshotSegment& a, const SnapshotSegment& b) { return a.base < b.base; });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const SnapshotSegment& next = segments[i];
    bool is_newest = true;
    while (is_newest && kept > 0 && segments[kept - 1].base + segments[kept - 1].size > next.base) {
      is_newest = segments[kept - 1].block_first < next.block_first;
      if (is_newest) --kept;
    }
    if (is_newest) segments[kept++] = next;
  }
  if (kept == segments.size()) return;
  segments.resize(kept);
  std::vector<SnapshotBlock> blocks;
  blocks.reserve(out->blocks.size());
  for (SnapshotSegment& segment : segments) {
    const auto first = out->blocks.begin() + segment.block_first;
    segment.block_first = static_cast<std::uint32_t>(blocks.size());
    blocks.insert(blocks.end(), first, first + segment.block_count);
  }
  out->blocks = std::move(blocks);
}

}  // namespace ashlar::inline v0::cache
