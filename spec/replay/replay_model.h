// ReplayModel: the rule of src/ashlar/replay/replay_rule.h, executed slowly and plainly.
//
// It computes lateness instead of marking it: a live block is late when this run's cursor is past
// its recorded free, or when it was allocated in an earlier run. It knows no addresses: blocks are
// offsets.
// Thread safety: none. Cost: a call is linear in the live blocks.
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
  /// `offsets`: of the managed allocations, in order.
  ReplayModel(const replay::Recording& recording, const std::vector<Bytes>& offsets);

  /// The offset at which the request is served; nullopt if it goes upstream.
  std::optional<Bytes> allocate(Bytes size, bool is_own_stream);
  /// The answer to a free of an address inside the segment. nullopt: no block can begin there.
  Code free(std::optional<Bytes> offset);
  /// The answer to a use before upstream is asked, and whether upstream is asked.
  struct Use {
    Code code = Code::kOk;
    bool asks_upstream = false;
  };
  Use use(std::optional<Bytes> offset, bool is_own_stream);
  /// Upstream accepted the use.
  void used(Bytes offset);
  /// A free or a use of an address outside the segment.
  void passed_on() { ++counts_.passed_on; }
  /// Ends a run. True if the segment must be renewed now.
  bool rewind();
  /// The replay has a new segment, or has none.
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
    bool is_held = false;   // freed, but no request may get its bytes
    bool was_late = false;  // is counted as late
  };
  struct Planned {
    Bytes size;
    std::optional<Bytes> offset;  // of a managed allocation
    std::size_t free_at = 0;      // index of its free in row_; of a managed allocation
  };

  bool is_late(const Block& block) const;
  void count_late();
  Block* live_at(std::optional<Bytes> offset);
  bool is_held_at(std::optional<Bytes> offset) const;
  bool is_barred(const Planned& planned) const;

  std::vector<Planned> planned_;  // by allocation
  std::vector<Event> row_;        // the recorded events, in order
  std::size_t cursor_ = 0;
  std::uint64_t run_ = 0;
  bool has_segment_ = false;
  std::vector<Block> blocks_;
  replay::ReplayCounts counts_;
};

}  // namespace ashlar::spec
