// The text of steps, the stamps, the hash: see stream_world.h.
//
// A step is a line: the world's number, a letter (as in stream_tie.cs), numbers. A block is named
// by its address. A step that must be refused has a `!` before its letter.
#include "props/proof/stream_world.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "spec/ops/word_hash.h"

namespace ashlar::props {

using cache::SnapshotBlock;
using cache::SnapshotSegment;

namespace {

template <class... Numbers>
void say(unsigned world, const char* step, Numbers... numbers) {
  std::printf("%u %s", world, step);
  (std::printf(" %llu", static_cast<unsigned long long>(numbers)), ...);
  std::putchar('\n');
}

std::uint32_t index_of(const std::vector<std::uint64_t>& streams, std::uint64_t identity) {
  return static_cast<std::uint32_t>(std::find(streams.begin(), streams.end(), identity) -
                                    streams.begin());
}

}  // namespace

StreamWorld::StreamWorld(unsigned number, std::uint32_t streams)
    : number_(number), streams_(streams), done_(streams) {
  for (std::uint32_t t = 0; t < streams; ++t) clocks_.add_lane();
}

// The machine and the caller.

void StreamWorld::progress(std::uint32_t stream) {
  clocks_.finish(stream, ++done_[stream]);
  say(number_, "P", stream);
}

void StreamWorld::record(std::uint32_t stream) {
  events_.push_back(clocks_.clock(stream));
  say(number_, "R", stream);
}

void StreamWorld::wait(std::uint32_t stream, std::uint64_t event) {
  clocks_.join(stream, events_[event], spec::kEdgeRecordWait);
  say(number_, "V", stream, event);
}

void StreamWorld::kernel(std::uint64_t address, std::uint32_t stream) {
  Held& block = held_[index_of_held(address)];
  block.users |= only(stream);
  clocks_.enqueue(stream, 0);
  say(number_, "K", block.heap, address, stream);
}

void StreamWorld::announce(std::uint64_t address, std::uint32_t stream) {
  Held& block = held_[index_of_held(address)];
  block.announced |= only(stream);
  say(number_, "N", block.heap, address, stream);
}

// The allocator.

std::size_t StreamWorld::index_of_held(std::uint64_t address) const {
  for (std::size_t i = 0; i < held_.size(); ++i) {
    if (held_[i].address == address) return i;
  }
  std::fprintf(stderr, "stream_trace: no block begins at %llu\n",
               static_cast<unsigned long long>(address));
  std::exit(1);
}

std::uint64_t StreamWorld::stamp_of(std::uint64_t lo, std::uint64_t hi) const {
  std::uint64_t stamp = 0;
  for (const Piece& piece : free_) {
    if (piece.lo < hi && lo < piece.hi) stamp = std::max(stamp, piece.stamp);
  }
  return stamp;
}

void StreamWorld::forget(std::uint64_t lo, std::uint64_t hi) {
  std::erase_if(free_, [lo, hi](const Piece& piece) { return lo <= piece.lo && piece.hi <= hi; });
}

void StreamWorld::take(std::uint32_t heap, std::uint32_t stream, std::uint64_t address,
                       std::uint64_t size, std::uint64_t rest, const Request& request) {
  const std::uint64_t end = address + size + rest;
  const std::uint64_t since = stamp_of(address, end);
  // [address, end) gets one stamp, which the rest keeps; close() drops the part that is held now.
  free_.push_back({address, end, since, heap});
  held_.push_back({address, size, heap, stream, since, 0, 0, false, {}});
  say(number_, "T", heap, address, stream, request.rounded, request.requested,
      size == request.rounded ? 1 : 0);
}

void StreamWorld::release(std::size_t held) {
  const Held& block = held_[held];
  free_.push_back(
      {block.address, block.address + block.size, clocks_.enqueued(block.heap), block.heap});
  held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(held));
}

void StreamWorld::give(std::uint64_t address) {
  const std::size_t at = index_of_held(address);
  Held& block = held_[at];
  say(number_, "G", block.heap, address);
  if (block.others() == 0) return release(at);
  block.is_pending = true;
  for (std::uint32_t t = 0; t < streams_; ++t) block.until.push_back(clocks_.enqueued(t));
}

void StreamWorld::settle(std::uint64_t address) {
  const std::size_t at = index_of_held(address);
  say(number_, "S", held_[at].heap, address);
  release(at);
}

void StreamWorld::extend(std::uint32_t heap, std::uint64_t base, std::uint64_t size) {
  free_.push_back({base, base + size, 0, heap});
  say(number_, "E", heap, base, size);
}

void StreamWorld::give_back(std::uint32_t heap, std::uint64_t base, std::uint64_t size) {
  forget(base, base + size);
  say(number_, "B", heap, base);
}

void StreamWorld::adopt(std::uint32_t heap, std::uint32_t to, std::uint64_t base,
                        std::uint64_t size) {
  forget(base, base + size);
  free_.push_back({base, base + size, 0, to});
  say(number_, "A", heap, to, base, size);
}

// The state.

std::vector<std::uint64_t> StreamWorld::pending() const {
  std::vector<std::uint64_t> addresses;
  for (const Held& block : held_) {
    if (block.is_pending) addresses.push_back(block.address);
  }
  return addresses;
}

std::uint64_t StreamWorld::close(const spec::CacheModel& model,
                                 const std::vector<std::uint64_t>& streams, PoolId pool) {
  spec::WordHash hash;
  for (std::uint32_t t = 0; t < streams_; ++t) {
    hash.add(clocks_.enqueued(t));
    hash.add(done_[t]);
    for (std::uint32_t s = 0; s < streams_; ++s) hash.add(place_in(clocks_.clock(t), s));
  }
  hash.add(events_.size());
  const cache::Snapshot& view = model.device(DeviceId{0}).map.view;
  const spec::OwnedBlocks& owned = model.device(DeviceId{0}).books.owned();
  std::vector<Piece> free;
  for (std::uint32_t h = 0; h < streams_; ++h) {
    for (const SnapshotSegment& segment : view.segments) {
      if (segment.stream.value() != streams[h] || segment.pool != pool) continue;
      hash.add(segment.base.value());
      hash.add(segment.size.count());
      for (std::uint32_t i = 0; i < segment.block_count; ++i) {
        const SnapshotBlock& block = view.blocks[segment.block_first + i];
        const std::uint64_t address = block.address.value();
        const std::uint64_t end = address + block.size.count();
        hash.add(address);
        hash.add(end - address);
        const auto own = owned.find(address);
        if (own == owned.end()) {
          free.push_back({address, end, stamp_of(address, end), h});
          hash.add(free.back().stamp);
          continue;
        }
        const Held& held_block = held(address);
        StreamSet uses = 0;
        for (const std::uint64_t use : own->second.uses) uses |= only(index_of(streams, use));
        hash.add(own->second.is_pending ? 2 : 1);
        hash.add(own->second.requested);
        hash.add(index_of(streams, own->second.stream));
        hash.add(uses);
        hash.add(held_block.since);
        for (const std::uint64_t position : held_block.until) hash.add(position);
      }
    }
  }
  free_ = std::move(free);
  return hash.value();
}

// Steps that must be refused.

void StreamWorld::probe_held(const Held& held, std::uint32_t stream) {
  say(number_, "!E", stream, held.address, held.size);
  if (!held.is_pending) {
    if (!may_use(held, stream)) say(number_, "!K", held.heap, held.address, stream);
    if ((held.users & ~held.others() & ~only(held.heap)) != 0)
      say(number_, "!G", held.heap, held.address);
    return;
  }
  for (std::uint32_t t = 0; t < streams_; ++t) {
    if ((held.others() & only(t)) == 0 || held.until[t] <= done_[t]) continue;
    return say(number_, "!S", held.heap, held.address);
  }
}

void StreamWorld::probe_free(const Piece& piece, std::uint32_t stream) {
  if (piece.stamp <= done_[piece.heap]) return;
  say(number_, "!B", piece.heap, piece.lo);  // a part of a segment, or all of it
  say(number_, "!A", piece.heap, stream, piece.lo, piece.hi - piece.lo);
  if (clocks_.before_next_of(piece.heap, piece.stamp, stream, 0)) return;
  say(number_, "!T", piece.heap, piece.lo, stream, piece.hi - piece.lo, 1, 1);
}

/// The heap's own stream may not take the block if another block of the heap fits better.
void StreamWorld::probe_fit(const Piece& piece) {
  for (const Piece& other : free_) {
    const std::uint64_t size = other.hi - other.lo;
    const bool is_better =
        size < piece.hi - piece.lo || (size == piece.hi - piece.lo && other.lo < piece.lo);
    if (other.heap == piece.heap && is_better)
      return say(number_, "!T", piece.heap, piece.lo, piece.heap, size, 1, 1);
  }
}

void StreamWorld::probe(spec::Random& random) {
  const auto stream = static_cast<std::uint32_t>(random.below(streams_));
  if (!held_.empty() && random.one_in(4)) probe_held(held_[random.below(held_.size())], stream);
  if (free_.empty() || !random.one_in(8)) return;
  probe_free(free_[random.below(free_.size())], stream);
  probe_fit(free_[random.below(free_.size())]);
}

}  // namespace ashlar::props
