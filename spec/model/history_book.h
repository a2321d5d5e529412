// HistoryBook: what a device's history says is there, event by event (row DEV-18).
//
// Purpose: whoever reads a history sees nothing else of the allocator. So the book knows the memory that was
// there when the history began, and the events; what it makes of them must be what a snapshot shows.
// Thread safety: none.
//
// Rules of an event, beside its place in the order:
//   an allocation lies in memory that is there, on no block that is taken;
//   a free is requested of a live block, and completed of one that was, with the same sizes;
//   memory comes where none is, and goes where no block is taken.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <ashlar/cache/history.h>
#include <ashlar/cache/snapshot.h>

#include "spec/model/range_set.h"

namespace ashlar::spec {

class HistoryBook {
 public:
  bool is_on() const { return is_on_; }
  void end() { is_on_ = false; }
  /// The history is on, this is there now, and the next event has that number.
  void begin(const cache::Snapshot& now, std::uint64_t next);
  /// The number of the next event.
  std::uint64_t next() const { return next_; }

  /// Follows the event. Empty, or what is wrong with it; then the book stays as it was.
  std::string follow(const cache::HistoryEvent& event);
  /// Empty, or the first difference between what the events say is there and the snapshot.
  std::string difference(const cache::Snapshot& now) const;

 private:
  struct Block {
    std::uint64_t size = 0;
    std::uint64_t requested = 0;
    std::uint64_t stream = 0;
    bool is_live = true;
    friend bool operator==(const Block&, const Block&) = default;
  };
  using Blocks = std::map<std::uint64_t, Block>;

  static void read(const cache::Snapshot& from, Blocks* blocks, RangeSet* memory);
  bool is_any_taken_in(const AddressRange& range) const;
  std::string follow_block(const cache::HistoryEvent& event);
  std::string follow_memory(const cache::HistoryEvent& event);

  bool is_on_ = false;
  std::uint64_t next_ = 0;
  std::uint64_t time_us_ = 0;
  Blocks taken_;
  RangeSet memory_;
};

}  // namespace ashlar::spec
