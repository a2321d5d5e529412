// The replay, executable: what src/ashlar/replay/replay_rule.h says, done the slow and plain way.
//
// It keeps no marks of what is late: a block is late when it is live though this run's cursor is
// past its recorded free, or it is of an earlier run. It is told no addresses: blocks are offsets.
// Thread safety: none. Cost: linear in what is live, a call.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ashlar/replay/recording.h>
#include <ashlar/replay/replay_counts.h>
#include <ashlar/replay/replay_rule.h>

namespace ashlar::spec {

class ReplayModel {
 public:
  /// `offsets` by managed allocation, in order.
  ReplayModel(const replay::Recording& recording, const std::vector<Bytes>& offsets);

  /// The offset it is served at; nothing: upstream's affair.
  std::optional<Bytes> allocate(Bytes size, bool is_own_stream);
  /// Of an address inside the segment: what the call answers. Nothing: no block can begin there.
  Code free(std::optional<Bytes> offset);
  /// What the use answers before upstream is asked, and whether it is.
  struct Use {
    Code code = Code::kOk;
    bool asks_upstream = false;
  };
  Use use(std::optional<Bytes> offset, bool is_own_stream);
  /// Upstream's answer to that question was good.
  void used(Bytes offset);
  /// A free or a use of an address outside the segment.
  void passed_on() { ++counts_.passed_on; }
  /// True: the segment is to be renewed now.
  bool rewind();
  /// There is a new segment, or none.
  void set_segment(bool has_segment);

  bool has_segment() const { return has_segment_; }
  const replay::ReplayCounts& counts() const { return counts_; }

 private:
  struct Event {
    bool is_free = false;
    std::uint32_t allocation = 0;
  };
  struct Block {
    std::uint32_t allocation = 0;
    std::uint64_t run = 0;
    bool is_used = false;
    bool is_held = false;   // freed; only its bytes are still barred
    bool was_late = false;  // and is counted
  };
  struct Planned {
    Bytes size;
    std::optional<Bytes> offset;  // of a managed one
    std::size_t free_at = 0;      // in the row; likewise
  };

  bool is_late(const Block& block) const;
  void count_late();
  Block* live_at(std::optional<Bytes> offset);
  bool is_held_at(std::optional<Bytes> offset) const;
  bool is_barred(const Planned& planned) const;

  std::vector<Planned> planned_;  // by allocation
  std::vector<Event> row_;
  std::size_t cursor_ = 0;
  std::uint64_t run_ = 0;
  bool has_segment_ = false;
  std::vector<Block> blocks_;
  replay::ReplayCounts counts_;
};

}  // namespace ashlar::spec
