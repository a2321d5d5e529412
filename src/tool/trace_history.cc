#include "src/tool/trace_history.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

namespace ashlar::tool {
namespace {

using cache::HistoryAction;
using cache::HistoryEvent;

constexpr std::uint64_t kBlockStep = 512;
constexpr std::uint64_t kSegmentStep = std::uint64_t{2} << 20;
constexpr std::uint64_t kSegmentMin = std::uint64_t{20} << 20;

std::uint64_t rounded(std::uint64_t size, std::uint64_t step) {
  return (size + step - 1) / step * step;
}

struct LiveBlock {
  std::uint64_t size;
  Bytes requested;
};

/// One stream's segments and what is free in them.
struct StreamMemory {
  std::map<std::uint64_t, std::uint64_t> segments;  // base -> size
  std::map<std::uint64_t, std::uint64_t> free;      // address -> size
  std::set<std::pair<std::uint64_t, std::uint64_t>> free_by_size;
  std::map<std::uint64_t, LiveBlock> live;  // by address

  void add_free(std::uint64_t address, std::uint64_t size) {
    free.emplace(address, size);
    free_by_size.emplace(size, address);
  }
  void remove_free(std::map<std::uint64_t, std::uint64_t>::iterator at) {
    free_by_size.erase({at->second, at->first});
    free.erase(at);
  }

  /// The address of a block of that size; nothing if no free range has room.
  std::optional<std::uint64_t> take(std::uint64_t size) {
    const auto best = free_by_size.lower_bound({size, 0});
    if (best == free_by_size.end()) return std::nullopt;
    const auto [range, address] = *best;
    remove_free(free.find(address));
    if (range > size) add_free(address + size, range - size);
    return address;
  }

  /// Ranges of different segments do not touch: the maker leaves a gap.
  void give_back(std::uint64_t address, std::uint64_t size) {
    const auto after = free.find(address + size);
    if (after != free.end()) {
      size += after->second;
      remove_free(after);
    }
    const auto next = free.lower_bound(address);
    if (next != free.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == address) {
        address = before->first;
        size += before->second;
        remove_free(before);
      }
    }
    add_free(address, size);
  }
};

/// Runs a trace and records it.
class HistoryMaker {
 public:
  explicit HistoryMaker(const Trace& trace) : trace_(trace), streams_(trace.streams.size()) {}

  bool run() {
    address_of_.resize(trace_.allocations);
    stream_of_.resize(trace_.allocations);
    for (const TraceEvent& event : trace_.events) {
      switch (event.kind) {
        case TraceEvent::Kind::kAllocate:
          if (!allocate(event)) return false;
          break;
        case TraceEvent::Kind::kFree: free(event.slot); break;
        case TraceEvent::Kind::kMark: mark(trace_.marks[event.slot]); break;
      }
    }
    record(HistoryAction::kSnapshot, {}, Bytes{reserved_}, {});
    return true;
  }

  cache::HistorySnapshot result() {
    std::map<std::uint64_t, std::uint32_t> owner_of;  // base of a segment -> its stream's index
    for (std::uint32_t s = 0; s < streams_.size(); ++s) {
      for (const auto& [base, size] : streams_[s].segments) owner_of.emplace(base, s);
    }
    for (const auto& [base, stream] : owner_of) add_segment(base, stream);
    made_.block_contexts.resize(made_.snapshot.blocks.size());
    return std::move(made_);
  }

 private:
  StreamId stream_id(std::uint32_t index) const { return StreamId{trace_.streams[index]}; }

  void record(HistoryAction action, Address address, Bytes size, StreamId stream) {
    HistoryEvent event;
    event.sequence = made_.history.events.size();
    event.time_us = event.sequence;
    event.address = address;
    event.size = size;
    event.stream = stream;
    event.action = action;
    made_.history.events.push_back(event);
  }

  bool allocate(const TraceEvent& event) {
    StreamMemory& memory = streams_[event.stream];
    // An allocation of zero bytes has an address too, so that its free can name it.
    const std::uint64_t size = rounded(std::max<std::uint64_t>(event.size.count(), 1), kBlockStep);
    auto address = memory.take(size);
    if (!address) {
      if (!grow(event.stream, size)) return false;
      address = memory.take(size);
    }
    memory.live.emplace(*address, LiveBlock{size, event.size});
    address_of_[event.slot] = *address;
    stream_of_[event.slot] = event.stream;
    record(HistoryAction::kAllocate, Address{*address}, event.size, stream_id(event.stream));
    return true;
  }

  bool grow(std::uint32_t stream, std::uint64_t size) {
    const std::uint64_t segment = std::max(rounded(size, kSegmentStep), kSegmentMin);
    const std::uint64_t base = next_base_;
    if (segment >= kMadeAddressMax - base) return false;
    next_base_ = base + segment + kSegmentStep;
    reserved_ += segment;
    streams_[stream].segments.emplace(base, segment);
    streams_[stream].add_free(base, segment);
    record(HistoryAction::kSegmentAllocate, Address{base}, Bytes{segment}, stream_id(stream));
    return next_base_ < kMadeAddressMax;
  }

  void free(std::uint32_t slot) {
    StreamMemory& memory = streams_[stream_of_[slot]];
    const auto at = memory.live.find(address_of_[slot]);
    const LiveBlock block = at->second;
    memory.live.erase(at);
    for (const auto action : {HistoryAction::kFreeRequested, HistoryAction::kFreeCompleted})
      record(action, Address{address_of_[slot]}, block.requested, stream_id(stream_of_[slot]));
    memory.give_back(address_of_[slot], block.size);
  }

  void mark(const std::string& text) {
    made_.history.texts.push_back(text);
    record(HistoryAction::kUserDefined, {}, {}, {});
    made_.history.events.back().context = cache::ContextId{made_.history.texts.size()};
  }

  void add_segment(std::uint64_t base, std::uint32_t stream) {
    const StreamMemory& memory = streams_[stream];
    cache::SnapshotSegment segment{};
    segment.base = Address{base};
    segment.size = Bytes{memory.segments.at(base)};
    segment.stream = stream_id(stream);
    segment.ordinal = made_.snapshot.segments.size();
    segment.pool = PoolId::kLarge;
    segment.block_first = static_cast<std::uint32_t>(made_.snapshot.blocks.size());
    std::uint64_t at = base;
    while (at < base + segment.size.count()) {
      cache::SnapshotBlock block{};
      block.address = Address{at};
      block.stream = segment.stream;
      const auto live = memory.live.find(at);
      block.state = live != memory.live.end() ? BlockState::kLive : BlockState::kFree;
      block.size = Bytes{live != memory.live.end() ? live->second.size : memory.free.at(at)};
      if (live != memory.live.end()) block.requested = live->second.requested;
      made_.snapshot.blocks.push_back(block);
      at += block.size.count();
    }
    segment.block_count =
        static_cast<std::uint32_t>(made_.snapshot.blocks.size()) - segment.block_first;
    made_.snapshot.segments.push_back(segment);
  }

  const Trace& trace_;
  std::vector<StreamMemory> streams_;      // by index into Trace::streams
  std::vector<std::uint64_t> address_of_;  // by slot
  std::vector<std::uint32_t> stream_of_;   // by slot: index into Trace::streams
  std::uint64_t next_base_ = kMadeAddressMin;
  std::uint64_t reserved_ = 0;
  cache::HistorySnapshot made_;
};

}  // namespace

std::optional<cache::HistorySnapshot> history_of(const Trace& trace, std::string* error) {
  HistoryMaker maker(trace);
  if (maker.run()) return maker.result();
  *error = "its allocations do not fit in 2^53 bytes of addresses";
  return std::nullopt;
}

}  // namespace ashlar::tool
