// See cache_state_words.h.
#include "props/sequences/cache_state_words.h"

#include <algorithm>

#include <ashlar/cache/queries.h>

#include "props/adapters/cache_peer.h"

namespace ashlar::props {
namespace {

using cache::CachePeer;
using cache::StreamHeap;
using cache::UseNode;

class StateWriter {
 public:
  StateWriter(cache::CachingAllocator& allocator, DeviceId device, const spec::SimGpu& gpu,
              std::vector<std::uint64_t>* words)
      : shared_(CachePeer::shared(allocator)),
        cache_(CachePeer::device(allocator, static_cast<std::uint32_t>(device.value()))),
        gpu_(gpu),
        words_(*words) {}

  void write() ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    for (StreamHeap& heap : cache_.heaps()) note_sequences(heap);
    std::sort(sequences_.begin(), sequences_.end());
    note_ordinals();
    for (StreamHeap& heap : cache_.heaps()) write_heap(heap);
    put(CachePeer::pooled_events(cache_.uses().events()));
    put(shared_.captures.load());
    put(shared_.unrecorded.count(cache_.id(), cache_.id()));
    cache::OutOfMemory account;
    cache_.ledger().write(&account);
    put(account.limit.count());
    gpu_.queue_contents(&words_);
  }

 private:
  void put(std::uint64_t word) { words_.push_back(word); }

  // Numbers that only grow: their order counts, and what is covered.
  void note_sequences(StreamHeap& heap) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    for (unsigned i = 0; i < heap.marks.count(); ++i) sequences_.push_back(heap.marks[i].sequence);
    sequences_.push_back(heap.marks.unmarked().sequence);
    for_each_waiting(heap, [this](const UseNode& node) { sequences_.push_back(node.sequence); });
  }
  void put_sequence(std::uint64_t sequence) {
    const auto at = std::lower_bound(sequences_.begin(), sequences_.end(), sequence);
    put(static_cast<std::uint64_t>(at - sequences_.begin()));
    put(cache_.uses().synchronizer().is_covered(sequence) ? 1 : 0);
  }
  void put_event(const cache::EventSlot& slot) {
    put(slot.pool == nullptr ? 0 : 1 + gpu_.entries_until(slot.event));
  }

  // Segments' ordinals: their order counts.
  void note_ordinals() {
    static_cast<void>(cache::write_snapshot(cache_, &map_));
    for (const cache::SnapshotSegment& segment : map_.segments)
      ordinals_.push_back(segment.ordinal);
    std::sort(ordinals_.begin(), ordinals_.end());
    for (const cache::SnapshotSegment& segment : map_.segments) {
      const auto at = std::lower_bound(ordinals_.begin(), ordinals_.end(), segment.ordinal);
      put(static_cast<std::uint64_t>(at - ordinals_.begin()));
    }
  }

  template <class Visit>
  static void for_each_waiting(StreamHeap& heap, Visit visit) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    for (const UseNode* head = CachePeer::first_queue(heap.uses); head != nullptr;
         head = head->queue.next) {
      for (const UseNode* node = head; node != nullptr; node = node->next) visit(*node);
    }
    for (const UseNode* node = heap.uses.unrecorded(); node != nullptr; node = node->next)
      visit(*node);
  }

  void write_heap(StreamHeap& heap) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    put(heap.stream.id.value());
    put(static_cast<std::uint64_t>(heap.life.state()));
    for (const cache::StealTurns& turns : heap.misses.steals) {
      for (const std::uint64_t word : CachePeer::words(turns)) put(word);
    }
    put(heap.clock.is_all_complete() ? 0 : heap.clock.now() - heap.clock.newest_release() + 1);
    put(heap.marks.count());
    for (unsigned i = 0; i < heap.marks.count(); ++i) {
      put(heap.clock.now() - heap.marks[i].covers);
      put_sequence(heap.marks[i].sequence);
      put_event(heap.marks[i].slot);
    }
    const cache::EpochMarks::Unmarked& unmarked = heap.marks.unmarked();
    put(unmarked.covers == 0 ? 0 : heap.clock.now() - unmarked.covers + 1);
    put_sequence(unmarked.sequence);
    write_uses(heap);
    for (const PoolId id : kPoolIds) write_pool(heap, id);
  }

  void write_uses(StreamHeap& heap) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    put(CachePeer::poll_due_in(heap.uses));
    put(CachePeer::poll_delay(heap.uses));
    put(CachePeer::has_new(heap.uses));
    put(heap.uses.unrecorded_count());
    for_each_waiting(heap, [&](const UseNode& node) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
      put(heap.pool(node.pool).address(node.block).value());
      write_node(node);
    });
    // The spare ones' events are taken in their order.
    put(heap.uses.nodes().spare_count());
    for (const UseNode* node = CachePeer::spare(heap.uses.nodes()); node != nullptr;
         node = node->next) {
      put_event(node->slot);
    }
  }
  void write_node(const UseNode& node) {
    put(node.user == nullptr ? 0 : node.user->stream.id.value());
    put((node.has_event ? 2u : 0u) + (node.is_borrower ? 1u : 0u));
    put_sequence(node.sequence);
    put_event(node.slot);
  }

  /// Blocks by address; the index's own order follows from their sizes, and the order of ordinals
  /// that note_ordinals() put.
  void write_pool(StreamHeap& heap, PoolId id) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    const block::BlockPool& pool = heap.pool(id);
    std::vector<block::SegmentView> segments;
    for (block::SegmentIndex s = pool.first_segment(); s != block::kNoSegment; s = pool.next(s))
      segments.push_back(pool.view(s));
    std::sort(segments.begin(), segments.end(),
              [](const auto& a, const auto& b) { return a.base < b.base; });
    for (const block::SegmentView& segment : segments) {
      put(segment.base.value());
      put(segment.size.count());
      for (block::BlockIndex b = segment.first; b != block::kNoBlock; b = pool.next(b))
        write_block(heap, pool.view(b));
    }
    put(~std::uint64_t{0});
  }
  void write_block(StreamHeap& heap,
                   const block::BlockView& block) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    put(block.size.count());
    put(block.requested.count());
    put(static_cast<std::uint64_t>(block.state));
    if (block.state == BlockState::kFree)
      put(heap.clock.is_complete(block.stamp) ? 0 : heap.clock.now() - block.stamp + 1);
    for (const UseNode* use = StreamHeap::first_use(block.user); use != nullptr;
         use = use->sibling) {
      write_node(*use);
    }
  }

  const cache::SharedState& shared_;
  cache::DeviceCache& cache_;
  const spec::SimGpu& gpu_;
  std::vector<std::uint64_t>& words_;
  cache::Snapshot map_;
  std::vector<std::uint64_t> sequences_;
  std::vector<std::uint64_t> ordinals_;
};

}  // namespace

void append_state(cache::CachingAllocator& allocator, DeviceId device, const spec::SimGpu& gpu,
                  std::vector<std::uint64_t>* words) {
  StateWriter(allocator, device, gpu, words).write();
}

}  // namespace ashlar::props
