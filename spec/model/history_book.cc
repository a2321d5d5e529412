#include "spec/model/history_book.h"

#include <iterator>
#include <optional>

namespace ashlar::spec {
namespace {

using cache::HistoryAction;
using cache::HistoryEvent;

AddressRange range_of(Address address, Bytes size) {
  return {address.value(), address.value() + size.count()};
}

std::string at(const HistoryEvent& event) {
  return " (event " + std::to_string(event.sequence) + ", address " +
         std::to_string(event.address.value()) + ", " + std::to_string(event.size.count()) +
         " bytes)";
}

}  // namespace

void HistoryBook::read(const cache::Snapshot& from, Blocks* blocks, RangeSet* memory) {
  for (const cache::SnapshotSegment& segment : from.segments)
    memory->add(range_of(segment.base, segment.size));
  for (const cache::SnapshotBlock& block : from.blocks) {
    if (block.state == BlockState::kUnmapped) memory->cut(range_of(block.address, block.size));
    if (block.state != BlockState::kLive && block.state != BlockState::kPending) continue;
    const bool is_live = block.state == BlockState::kLive;
    (*blocks)[block.address.value()] = {block.size.count(), block.requested.count(),
                                        is_live ? block.stream.value() : 0, is_live};
  }
}

void HistoryBook::begin(const cache::Snapshot& now, std::uint64_t next) {
  taken_.clear();
  memory_ = {};
  read(now, &taken_, &memory_);
  next_ = next;
  is_on_ = true;
}

bool HistoryBook::is_any_taken_in(const AddressRange& range) const {
  const auto behind = taken_.lower_bound(range.end);
  if (behind == taken_.begin()) return false;
  const auto& [address, block] = *std::prev(behind);
  return address + block.size > range.begin;
}

std::string HistoryBook::follow(const HistoryEvent& event) {
  if (event.sequence != next_) return "an event is missing or out of order" + at(event);
  if (event.time_us < time_us_) return "an event is older than the one before" + at(event);
  std::string wrong;
  switch (event.action) {
    case HistoryAction::kAllocate:
    case HistoryAction::kFreeRequested:
    case HistoryAction::kFreeCompleted: wrong = follow_block(event); break;
    case HistoryAction::kSegmentAllocate:
    case HistoryAction::kSegmentMap:
    case HistoryAction::kSegmentFree:
    case HistoryAction::kSegmentUnmap: wrong = follow_memory(event); break;
    case HistoryAction::kSnapshot:
    case HistoryAction::kOutOfMemory:
    case HistoryAction::kUserDefined: break;
  }
  if (!wrong.empty()) return wrong + at(event);
  time_us_ = event.time_us;
  ++next_;
  return {};
}

std::string HistoryBook::follow_block(const HistoryEvent& event) {
  const std::uint64_t address = event.address.value();
  const AddressRange range = range_of(event.address, event.block_size);
  if (event.action == HistoryAction::kAllocate) {
    if (event.size > event.block_size) return "an allocation is larger than its block";
    if (!memory_.covers(range)) return "an allocation where no memory is";
    if (is_any_taken_in(range)) return "an allocation of what is taken";
    taken_[address] = {event.block_size.count(), event.size.count(), event.stream.value(), true};
    return {};
  }
  const auto found = taken_.find(address);
  if (found == taken_.end()) return "a free of what is not taken";
  Block& block = found->second;
  if (block.size != event.block_size.count() || block.requested != event.size.count())
    return "a free of another size than its allocation's";
  const bool is_request = event.action == HistoryAction::kFreeRequested;
  if (is_request != block.is_live)
    return is_request ? "a free is requested twice" : "a free is completed that nobody requested";
  if (is_request && block.stream != event.stream.value())
    return "a free of another stream's allocation";
  if (is_request) {
    block.is_live = false;
    block.stream = 0;
  } else {
    taken_.erase(found);
  }
  return {};
}

std::string HistoryBook::follow_memory(const HistoryEvent& event) {
  const AddressRange range = range_of(event.address, event.size);
  const bool comes =
      event.action == HistoryAction::kSegmentAllocate || event.action == HistoryAction::kSegmentMap;
  if (comes) {
    if (memory_.bytes_in(range) != 0) return "memory comes where some is";
    memory_.add(range);
    return {};
  }
  if (!memory_.covers(range)) return "memory goes where none is";
  if (is_any_taken_in(range)) return "memory goes from under what is taken";
  memory_.cut(range);
  return {};
}

std::string HistoryBook::difference(const cache::Snapshot& now) const {
  Blocks blocks;
  RangeSet memory;
  read(now, &blocks, &memory);
  if (!(memory == memory_))
    return "the events have " + std::to_string(memory_.bytes()) +
           " bytes of memory, the snapshot " + std::to_string(memory.bytes()) + ", or elsewhere";
  for (const auto& [address, block] : blocks) {
    const auto mine = taken_.find(address);
    if (mine == taken_.end())
      return "the snapshot has a block at " + std::to_string(address) + " that no event tells of";
    if (!(mine->second == block))
      return "the block at " + std::to_string(address) + " is not what the events say";
  }
  if (blocks.size() != taken_.size()) return "the events have a block that the snapshot has not";
  return {};
}

}  // namespace ashlar::spec
