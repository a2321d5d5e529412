// What happens to blocks and to the device's memory in an account pass, so that a page can show the address map after
// any event.
//
// Purpose: a snapshot after each event would be as large as all maps together. The records are what
// changes; page_map.js replays them, and begins at a keyframe of its own.
// Thread safety: none; one pass to an object.
//
// The format: LEB128 numbers. A record is a head, 4 * (events since the record before) + kind, and:
//   kind 0, a block         address, size, size - requested, stream
//   kind 1, its free        how many blocks came after it so far
//   kind 2, a range         address, 2 * size + (1 if it is of the small pool)
//   kind 3, its end         how many ranges came after it so far
// A range is memory that the device gave: a segment, or the part of one that has pages. One that grows
// ends and begins.
// An address is the difference from that of the record with an address before, doubled, and one less
// than its negative if it is negative. The first event is MapRecords::first; what is there before it
// comes first, as if it had come then.
//
// Invariants:
//   (1) A block or range that ends has begun, and only once.
//   (2) What the records up to an event leave is what the pass held after that event.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ashlar/cache/snapshot.h>

namespace ashlar::tool {

/// Of a longer trace, the events around the peak are kept.
inline constexpr std::uint64_t kMapEventsMax = 200'000;

struct MapRecords {
  std::uint64_t first = 0;  ///< the first event whose map is known
  std::uint64_t end = 0;    ///< one past the last; equal to `first` where nothing was kept
  std::string bytes;        ///< in the format above
};

/// One live block.
struct MapBlock {
  Address address;
  Bytes size;       ///< of the whole block
  Bytes requested;  ///< what the trace asked for
  std::uint32_t stream = 0;
};

class MapRecorder {
 public:
  /// For a trace of `events` events and `slots` allocations; `peak`: the event to keep by all means.
  MapRecorder(std::uint64_t events, std::uint64_t peak, std::size_t slots);

  void allocate(std::uint64_t event, std::uint32_t slot, const MapBlock& block);
  /// REQUIRES: the slot has a block.
  void free(std::uint64_t event, std::uint32_t slot);
  /// Is the map after this event kept? hold() is needed of the first such event, and of later ones that change it.
  bool has_map(std::uint64_t event) const {
    return event >= records_.first && event < records_.end;
  }
  bool is_first_map(std::uint64_t event) const { return event == records_.first; }
  /// What the device gave, which may be as before.
  void hold(std::uint64_t event, const cache::Snapshot& map);
  MapRecords take() { return std::move(records_); }

 private:
  static constexpr std::uint64_t kNotWritten = ~std::uint64_t{0};
  struct Block : MapBlock {
    bool is_live = false;
    std::uint64_t number = kNotWritten;  ///< among the blocks of the records
  };
  struct Range {
    Address address;
    Bytes size;
    bool is_small;
    std::uint64_t number = kNotWritten;  ///< among the ranges of the records
  };

  static std::vector<Range> ranges_of(const cache::Snapshot& map);
  bool keeps(std::uint64_t event);
  void write(std::uint64_t event, Block* block);
  void write(std::uint64_t event, Range* range);
  void head(std::uint64_t event, unsigned kind);
  void number(std::uint64_t value);
  void address(Address address);

  MapRecords records_;
  bool has_begun_ = false;
  std::uint64_t last_event_ = 0;
  std::uint64_t last_address_ = 0;
  std::uint64_t blocks_written_ = 0;
  std::uint64_t ranges_written_ = 0;
  std::vector<Block> blocks_;  ///< by slot
  std::vector<Range> ranges_;  ///< by address
};

}  // namespace ashlar::tool
