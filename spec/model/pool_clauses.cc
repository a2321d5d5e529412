#include "spec/model/pool_clauses.h"

#include <algorithm>
#include <tuple>

namespace ashlar::spec {
namespace {

std::string at(const PoolBlock& block) { return " at " + std::to_string(block.address.value()); }

const PoolSegment* segment_of(const PoolMap& map, const PoolBlock& block) {
  for (const PoolSegment& segment : map.segments) {
    if (segment.base == block.segment) return &segment;
  }
  return nullptr;
}

}  // namespace

std::string check_usable(const PoolMap& map, Address address, Bytes requested, Bytes granule) {
  for (const PoolBlock& block : map.blocks) {
    if (block.address != address) continue;
    if (block.state != PoolState::kLive) return "C1: the block handed out is not live" + at(block);
    if (block.size < requested) return "C1: the block is smaller than the request" + at(block);
    if (address.value() % granule.count() != 0) return "C1: the block is not aligned" + at(block);
    const PoolSegment* segment = segment_of(map, block);
    if (segment == nullptr || block.address < segment->base ||
        block.end() > segment->base + segment->size) {
      return "C1: the block is not inside its segment" + at(block);
    }
    return {};
  }
  return "C1: no block starts where one was handed out: " + std::to_string(address.value());
}

std::string check_disjoint(const PoolMap& map) {
  for (std::size_t i = 1; i < map.blocks.size(); ++i) {
    if (map.blocks[i].address < map.blocks[i - 1].end())
      return "C2: two blocks share a byte" + at(map.blocks[i]);
  }
  return {};
}

std::string check_tiling(const PoolMap& map) {
  std::size_t i = 0;
  for (const PoolSegment& segment : map.segments) {
    Address end = segment.base;
    for (; i < map.blocks.size() && map.blocks[i].segment == segment.base; ++i) {
      if (map.blocks[i].address != end) return "C3: a gap or an overlap" + at(map.blocks[i]);
      if (map.blocks[i].size == Bytes{}) return "C3: an empty block" + at(map.blocks[i]);
      end = map.blocks[i].end();
    }
    if (end != segment.base + segment.size) {
      return "C3: the blocks do not fill the segment at " + std::to_string(segment.base.value());
    }
  }
  return i == map.blocks.size() ? std::string{}
                                : "C3: a block belongs to no segment" + at(map.blocks[i]);
}

std::string check_coalesced(const PoolMap& map) {
  for (std::size_t i = 1; i < map.blocks.size(); ++i) {
    const PoolBlock& left = map.blocks[i - 1];
    const PoolBlock& right = map.blocks[i];
    if (left.state != right.state || left.segment != right.segment) continue;
    if (left.state == PoolState::kFree) return "C4: two free blocks touch" + at(right);
    if (left.state == PoolState::kUnmapped) return "C4: two unmapped blocks touch" + at(right);
  }
  return {};
}

std::string check_index(const PoolMap& map, PoolState state, const std::vector<Address>& order) {
  std::vector<const PoolBlock*> indexed;
  for (const PoolBlock& block : map.blocks) {
    if (block.state == state) indexed.push_back(&block);
  }
  const auto place_of = [&map](const PoolBlock* block) {
    const PoolSegment* const segment = segment_of(map, *block);
    return std::tuple{block->size, segment == nullptr ? 0 : segment->ordinal, block->address};
  };
  std::sort(indexed.begin(), indexed.end(), [&place_of](const PoolBlock* a, const PoolBlock* b) {
    return place_of(a) < place_of(b);
  });
  if (indexed.size() != order.size()) {
    return "C5: the index holds " + std::to_string(order.size()) + " of " +
           std::to_string(indexed.size()) + " blocks";
  }
  for (std::size_t i = 0; i < indexed.size(); ++i) {
    if (indexed[i]->address != order[i])
      return "C5: the index is out of order or incomplete" + at(*indexed[i]);
  }
  return {};
}

std::string check_conserved(const PoolMap& map, const PoolBooks& books) {
  return books == recount(map) ? std::string{} : "C14: a counter differs from the recount";
}

PoolBooks recount(const PoolMap& map) {
  PoolBooks books;
  for (const PoolSegment& segment : map.segments) {
    books.segments += 1;
    books.segment_bytes += segment.size;
  }
  for (const PoolBlock& block : map.blocks) {
    const auto state = static_cast<unsigned>(block.state);
    books.blocks[state] += 1;
    books.bytes[state] += block.size;
    books.requested_bytes += block.requested;
    if (block.state != PoolState::kFree) continue;
    books.largest_free = std::max(books.largest_free, block.size);
    const PoolSegment* segment = block.address == block.segment ? segment_of(map, block) : nullptr;
    if (segment != nullptr && segment->size == block.size) {
      books.idle_segments += 1;
      books.idle_bytes += block.size;
    }
  }
  return books;
}

}  // namespace ashlar::spec
