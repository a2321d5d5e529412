#include <ashlar/cache/history_notes.h>

#include <array>
#include <cstddef>
#include <span>

#include <ashlar/base/step_count.h>

namespace ashlar::inline v0::cache {
namespace {

HistoryEvent event_of(const StreamHeap& heap, PoolId pool, HistoryAction action) noexcept {
  HistoryEvent event;
  event.action = action;
  event.stream = heap.stream.id;
  event.memory_pool = heap.membership.id;
  event.pool = pool;
  return event;
}

}  // namespace

void note_block(StreamHeap& heap, PoolId pool, block::BlockIndex block,
                HistoryAction action) noexcept {
  const block::BlockView view = heap.pool(pool).view(block);
  HistoryEvent event = event_of(heap, pool, action);
  event.address = view.address;
  event.size = view.requested;
  event.block_size = view.size;
  for (const UseNode* use = StreamHeap::first_use(view.user); use != nullptr; use = use->sibling) {
    count_steps(1);
    if (use->is_borrower) event.stream = use->user->stream.id;
  }
  history_of(heap).note(event);
}

void note_memory(StreamHeap& heap, PoolId pool, Address address, Bytes size,
                 HistoryAction action) noexcept {
  if (!history_of(heap).is_on()) return;
  HistoryEvent event = event_of(heap, pool, action);
  event.address = address;
  event.size = event.block_size = size;
  history_of(heap).note(event);
}

void pass_segment(StreamHeap& heap, DeviceSegment& segment, const StreamHeap* from,
                  const StreamHeap* to) noexcept {
  HistoryLog& log = history_of(heap);
  if (!log.is_on()) return segment.entry.shown_in.store(to);
  std::array<HistoryEvent, 2> events;
  std::size_t count = 0;
  const auto add = [&](const StreamHeap* whose, HistoryAction action) {
    if (whose == nullptr) return;
    HistoryEvent& event = events[count++] = event_of(*whose, segment.pool, action);
    event.address = segment.base;
    event.size = event.block_size = segment.size;
  };
  add(from, HistoryAction::kSegmentFree);
  add(to, HistoryAction::kSegmentAllocate);
  log.note_passing(std::span(events).first(count), to, &segment.entry.shown_in);
}

}  // namespace ashlar::inline v0::cache
