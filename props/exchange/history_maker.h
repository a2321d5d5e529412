// Makes histories: a small allocator that allocates and frees at random, and notes what it does.
//
// Purpose: the exchange room's writers take records; these are honest ones, of any length, with
// everything in them that an allocator does: frees that stay pending, segments that come and go, pages
// mapped and unmapped inside a range, two pools, several streams, a memory pool, failures and
// annotations. Beside each event it keeps what was live then: what a reader of the file must find.
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <ashlar/cache/history.h>

namespace ashlar::props {

/// What was there between two events.
struct LiveState {
  std::uint64_t live = 0;       ///< blocks
  std::uint64_t pending = 0;    ///< blocks
  std::uint64_t requested = 0;  ///< bytes of both
  std::uint64_t reserved = 0;   ///< bytes of all ranges with memory
  std::uint32_t hash = 0;  ///< of the addresses: the sum of hash_of(), of pending blocks thrice
};

/// An address in 32 bits; viewer_replay.js has the same function.
std::uint32_t hash_of(Address address) noexcept;

/// The state after the event.
void advance(const cache::HistoryEvent& event, LiveState* state) noexcept;

class HistoryMaker {
 public:
  /// The same events for the same seed. Memory lies from `base` on.
  HistoryMaker(std::uint64_t seed, Address base) : seed_(seed), next_base_(base) {}

  /// Goes on until there are at least so many events; the last is a snapshot.
  void run(std::size_t events);
  /// What there is now, and the newest `events_max` events: a ring of that size.
  cache::HistorySnapshot record(std::size_t events_max = ~std::size_t{0}) const;
  /// Before each event, and after the last one.
  const std::vector<LiveState>& states() const { return states_; }

 private:
  struct Block {
    Bytes size;
    Bytes requested;
    BlockState state = BlockState::kFree;
    cache::ContextId context;
  };
  using Blocks = std::map<Address, Block>;
  struct Segment {
    Bytes size;
    StreamId stream;
    PoolId pool = PoolId::kSmall;
    MemoryPoolId memory_pool{};
    bool is_paged = false;
    Blocks blocks;
  };
  using Segments = std::map<Address, Segment>;
  struct Place {
    Address segment;
    Address block;
  };

  std::uint64_t random(std::uint64_t below);
  void note(cache::HistoryAction action, const Segment* segment, Address address, Bytes size,
            cache::ContextId context = {});
  void step();
  void allocate();
  void take(Address base, Blocks::iterator at, Bytes requested);
  void request_free();
  void complete_free();
  Address add_segment(StreamId stream, Bytes needed);
  bool map_pages(Segments::iterator at, Bytes needed);
  void give_back();
  void unmap_page(Segments::iterator at);
  static Blocks::iterator split(Blocks* blocks, Blocks::iterator at, Bytes size);
  static void merge(Blocks* blocks, Blocks::iterator at);

  std::uint64_t seed_;
  std::uint64_t draws_ = 0;
  Address next_base_;
  Segments segments_;
  std::vector<Place> live_;
  std::vector<Place> pending_;
  cache::History history_;
  std::vector<LiveState> states_{LiveState{}};
};

}  // namespace ashlar::props
