#include "props/exchange/history_maker.h"

#include <algorithm>
#include <iterator>

#include <ashlar/base/mix.h>

namespace ashlar::props {
namespace {

using cache::HistoryAction;

constexpr Bytes kPage = 64_KiB;
constexpr Bytes kGranule = 512_B;
constexpr std::size_t kLiveMax = 400;
constexpr std::uint64_t kEpochUs = 1'700'000'000'000'000;

}  // namespace

std::uint32_t hash_of(Address address) noexcept {
  const auto low = static_cast<std::uint32_t>(address.value());
  const auto high = static_cast<std::uint32_t>(address.value() >> 32);
  const std::uint32_t mixed = (low ^ high * 0x9e3779b1u) * 0x85ebca6bu;
  return (mixed ^ mixed >> 15) * 0xc2b2ae35u;
}

void advance(const cache::HistoryEvent& event, LiveState* state) noexcept {
  switch (event.action) {
    case HistoryAction::kAllocate:
      ++state->live;
      state->requested += event.size.count();
      state->hash += hash_of(event.address);
      break;
    case HistoryAction::kFreeRequested:
      --state->live;
      ++state->pending;
      state->hash += 2 * hash_of(event.address);
      break;
    case HistoryAction::kFreeCompleted:
      --state->pending;
      state->requested -= event.size.count();
      state->hash -= 3 * hash_of(event.address);
      break;
    case HistoryAction::kSegmentAllocate:
    case HistoryAction::kSegmentMap: state->reserved += event.size.count(); break;
    case HistoryAction::kSegmentFree:
    case HistoryAction::kSegmentUnmap: state->reserved -= event.size.count(); break;
    default: break;
  }
}

std::uint64_t HistoryMaker::random(std::uint64_t below) {
  return mix(mix(seed_) + draws_++) % below;
}

void HistoryMaker::note(HistoryAction action, const Segment* segment, Address address, Bytes size,
                        cache::ContextId context) {
  cache::HistoryEvent event;
  event.sequence = history_.events.size();
  event.time_us = kEpochUs + event.sequence * 7;
  event.address = address;
  event.size = event.block_size = size;
  event.context = context;
  event.action = action;
  if (segment != nullptr) {
    const auto block = segment->blocks.find(address);
    const bool is_of_block = action <= HistoryAction::kFreeCompleted;
    if (is_of_block && block != segment->blocks.end()) event.block_size = block->second.size;
    event.pool = segment->pool;
    event.stream = segment->stream;
    event.memory_pool = segment->memory_pool;
  }
  if (action == HistoryAction::kOutOfMemory) event.device_free = kPage;
  history_.events.push_back(event);
  states_.push_back(states_.back());
  advance(event, &states_.back());
}

void HistoryMaker::run(std::size_t events) {
  while (history_.events.size() + 1 < events) step();
  note(HistoryAction::kSnapshot, nullptr, {}, Bytes{states_.back().reserved});
}

void HistoryMaker::step() {
  const std::uint64_t choice = random(1000);
  if (choice < 3) {
    note(HistoryAction::kOutOfMemory, nullptr, {}, 1_GiB * (1 + random(9)));
  } else if (choice < 6) {
    history_.texts.push_back("step \"" + std::to_string(history_.texts.size()) + "\" \xe2\x9c\x93");
    note(HistoryAction::kUserDefined, nullptr, {}, {}, cache::ContextId{history_.texts.size()});
  } else if (choice < 30) {
    give_back();
  } else if (choice < 200 && !pending_.empty()) {
    complete_free();
  } else if (!live_.empty() && random(kLiveMax) < live_.size()) {
    request_free();
  } else {
    allocate();
  }
}

// First fit in address order, among the segments of a random stream.
void HistoryMaker::allocate() {
  const StreamId stream{random(3)};
  const std::uint64_t small = 1 + random(4000);
  const Bytes requested{random(3) == 0 ? small * 40 : small};
  const Bytes needed = kGranule * ((requested.count() + kGranule.count() - 1) / kGranule.count());
  for (int tries = 0; tries < 2; ++tries) {
    for (auto segment = segments_.begin(); segment != segments_.end(); ++segment) {
      if (segment->second.stream != stream) continue;
      Blocks& blocks = segment->second.blocks;
      const auto fits = [needed](const auto& entry) {
        return entry.second.state == BlockState::kFree && entry.second.size >= needed;
      };
      const auto at = std::find_if(blocks.begin(), blocks.end(), fits);
      if (at != blocks.end()) return take(segment->first, at, requested);
      if (segment->second.is_paged && map_pages(segment, needed)) {
        const auto mapped = std::find_if(blocks.begin(), blocks.end(), fits);
        if (mapped != blocks.end()) return take(segment->first, mapped, requested);
      }
    }
    add_segment(stream, needed);
  }
}

void HistoryMaker::take(Address base, Blocks::iterator at, Bytes requested) {
  Segment& segment = segments_.at(base);
  const Bytes needed = kGranule * ((requested.count() + kGranule.count() - 1) / kGranule.count());
  split(&segment.blocks, at, needed);
  at->second.requested = requested;
  at->second.state = BlockState::kLive;
  at->second.context = cache::ContextId{random(12)};
  live_.push_back({base, at->first});
  note(HistoryAction::kAllocate, &segment, at->first, requested, at->second.context);
}

void HistoryMaker::request_free() {
  const std::size_t i = random(live_.size());
  const Place place = live_[i];
  live_[i] = live_.back();
  live_.pop_back();
  Segment& segment = segments_.at(place.segment);
  Block& block = segment.blocks.at(place.block);
  block.state = BlockState::kPending;
  note(HistoryAction::kFreeRequested, &segment, place.block, block.requested, block.context);
  pending_.push_back(place);
  if (random(2) == 0) {
    std::swap(pending_.back(), pending_[random(pending_.size())]);
  } else {
    complete_free();  // at once: viewers join the two
  }
}

void HistoryMaker::complete_free() {
  const Place place = pending_.back();
  pending_.pop_back();
  Segment& segment = segments_.at(place.segment);
  const auto at = segment.blocks.find(place.block);
  note(HistoryAction::kFreeCompleted, &segment, place.block, at->second.requested,
       at->second.context);
  at->second.state = BlockState::kFree;
  at->second.requested = {};
  merge(&segment.blocks, at);
}

// Every third segment is a range of addresses whose pages are mapped as they are needed. Segments of
// one stream may lie next to each other.
Address HistoryMaker::add_segment(StreamId stream, Bytes needed) {
  Segment segment;
  segment.is_paged = random(3) == 0;
  segment.pool = random(2) == 0 ? PoolId::kSmall : PoolId::kLarge;
  segment.size = kPage * (segment.is_paged ? 24 : needed / kPage + 1 + random(6));
  segment.stream = stream;
  if (random(4) == 0) segment.memory_pool = {0, 1 + random(2)};
  const Address base = next_base_;
  next_base_ = base + segment.size + (segment.is_paged ? kPage : kPage * random(2));
  Block all;
  all.size = segment.size;
  all.state = segment.is_paged ? BlockState::kUnmapped : BlockState::kFree;
  segment.blocks.emplace(base, all);
  const bool is_paged = segment.is_paged;
  const auto at = segments_.emplace(base, std::move(segment)).first;
  if (!is_paged) note(HistoryAction::kSegmentAllocate, &at->second, base, at->second.size);
  return base;
}

// Maps as many pages as are needed, somewhere in an unmapped part.
bool HistoryMaker::map_pages(Segments::iterator at, Bytes needed) {
  Blocks& blocks = at->second.blocks;
  const Bytes size = kPage * (needed / kPage + 1);
  auto hole = std::find_if(blocks.begin(), blocks.end(), [size](const auto& entry) {
    return entry.second.state == BlockState::kUnmapped && entry.second.size >= size;
  });
  if (hole == blocks.end()) return false;
  const Bytes left = kPage * random((hole->second.size - size) / kPage + 1);
  if (left > Bytes{}) hole = split(&blocks, hole, left);
  split(&blocks, hole, size);
  hole->second.state = BlockState::kFree;
  note(HistoryAction::kSegmentMap, &at->second, hole->first, size);
  merge(&blocks, hole);
  return true;
}

// A segment that is free goes, and a free page of one that is not whole.
void HistoryMaker::give_back() {
  for (auto at = segments_.begin(); at != segments_.end(); ++at) {
    const auto& [base, segment] = *at;
    if (segment.is_paged) {
      if (random(2) == 0) unmap_page(at);
    } else if (segment.blocks.size() == 1 &&
               segment.blocks.begin()->second.state == BlockState::kFree) {
      note(HistoryAction::kSegmentFree, &segment, base, segment.size);
      segments_.erase(at);
      return;
    }
  }
}

void HistoryMaker::unmap_page(Segments::iterator at) {
  Blocks& blocks = at->second.blocks;
  for (auto block = blocks.begin(); block != blocks.end(); ++block) {
    if (block->second.state != BlockState::kFree) continue;
    const std::uint64_t offset = (block->first - at->first) % kPage;
    const Bytes skip{offset == 0 ? 0 : kPage.count() - offset};
    if (block->second.size < skip + kPage) continue;
    if (skip > Bytes{}) block = split(&blocks, block, skip);
    split(&blocks, block, kPage);
    block->second.state = BlockState::kUnmapped;
    note(HistoryAction::kSegmentUnmap, &at->second, block->first, kPage);
    merge(&blocks, block);
    return;
  }
}

// Leaves `size` bytes in the block at `at`; the rest is a block of the same state, which is returned.
HistoryMaker::Blocks::iterator HistoryMaker::split(Blocks* blocks, Blocks::iterator at,
                                                   Bytes size) {
  if (at->second.size == size) return at;
  Block rest = at->second;
  rest.size = at->second.size - size;
  at->second.size = size;
  return blocks->emplace(at->first + size, rest).first;
}

void HistoryMaker::merge(Blocks* blocks, Blocks::iterator at) {
  const auto next = std::next(at);
  if (next != blocks->end() && next->second.state == at->second.state) {
    at->second.size += next->second.size;
    blocks->erase(next);
  }
  if (at == blocks->begin()) return;
  const auto before = std::prev(at);
  if (before->second.state != at->second.state) return;
  before->second.size += at->second.size;
  blocks->erase(at);
}

cache::HistorySnapshot HistoryMaker::record(std::size_t events_max) const {
  cache::HistorySnapshot record;
  std::uint64_t ordinal = 0;
  for (const auto& [base, segment] : segments_) {
    auto& blocks = record.snapshot.blocks;
    const auto first = static_cast<std::uint32_t>(blocks.size());
    for (const auto& [address, block] : segment.blocks) {
      blocks.push_back({address, block.size, block.requested, segment.stream, 0, block.state});
      record.block_contexts.push_back(block.context);
    }
    record.snapshot.segments.push_back({base, segment.size, segment.stream, ordinal++, first,
                                        static_cast<std::uint32_t>(segment.blocks.size()),
                                        segment.pool, segment.memory_pool, 0, segment.is_paged});
  }
  const auto& events = history_.events;
  const std::size_t kept = std::min(events_max, events.size());
  record.history.events.assign(events.end() - static_cast<std::ptrdiff_t>(kept), events.end());
  record.history.lost = events.size() - kept;
  record.history.texts = history_.texts;
  return record;
}

}  // namespace ashlar::props
