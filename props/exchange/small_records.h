// A record small enough to be written out in a test.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <utility>

#include <ashlar/exchange.h>

namespace ashlar::props {

inline cache::HistoryEvent event_of(cache::HistoryAction action, std::uint64_t address,
                                    std::uint64_t size, std::uint64_t time_us = 0) {
  cache::HistoryEvent event;
  event.time_us = time_us;
  event.address = Address{address};
  event.size = event.block_size = Bytes{size};
  event.stream = StreamId{7};
  event.action = action;
  return event;
}

/// A segment of 4096 bytes at 4096: a live block of 1024 bytes that was there before the history, a pending one of
/// 512, one of 512 allocated in it, and 2048 free bytes.
inline cache::HistorySnapshot small_record() {
  using cache::HistoryAction;
  const auto block = [](std::uint64_t address, std::uint64_t size, std::uint64_t requested,
                        BlockState state) {
    return cache::SnapshotBlock{Address{address}, Bytes{size}, Bytes{requested},
                                StreamId{7},      0,           state};
  };
  cache::HistorySnapshot record;
  record.snapshot.segments = {
      {Address{4096}, 4096_B, StreamId{7}, 0, 0, 4, PoolId::kSmall, {0, 2}}};
  record.snapshot.blocks = {
      block(4096, 1024, 1000, BlockState::kLive), block(5120, 512, 500, BlockState::kPending),
      block(5632, 512, 400, BlockState::kLive), block(6144, 2048, 0, BlockState::kFree)};
  record.block_contexts = {cache::ContextId{1}, {}, cache::ContextId{2}, {}};
  record.history.events = {event_of(HistoryAction::kFreeRequested, 5120, 500, 10),
                           event_of(HistoryAction::kAllocate, 5632, 400, 20)};
  record.history.events[1].context = cache::ContextId{2};
  return record;
}

inline std::vector<exchange::Frame> small_frames(cache::ContextId context) {
  if (context == cache::ContextId{1}) return {{"inner;f", "a.cc", 3}, {"outer", "b.cc", 4}};
  return {};
}

/// What `write(sink)` writes. Fails the test by an empty text if it fails.
template <class Write>
std::string text_of(Write&& write) {
  std::string text;
  const Status status = std::forward<Write>(write)(exchange::string_sink(&text));
  return status.is_ok() ? text : std::string();
}

}  // namespace ashlar::props
