// HappensBefore: finds bytes reused before an earlier owner's use is over, and says whose fault it
// is (C6, C7, D4).
//
// Purpose: the oracle for stream order. It knows the machine's order (clocks.h), and the driver
// tells it who owns which bytes. For every byte range it keeps the last use on every stream by
// earlier owners (`prior` stamps). Stamps belong to bytes, not to blocks: splits and merges of
// blocks neither lose a stamp nor have to be announced. Bytes are those of the machine's memory
// (memory_pieces.h): a page keeps its stamps at whichever address it is handed out.
//
// Whose fault it is (reference: the proof of the stream-order model):
//   - the allocator's, if it handed out bytes while an earlier use is neither done nor ordered
//     before the new owner's next work on its own stream, and the earlier owner freed properly:
//     every use was on its own stream, or announced, or ordered before the free;
//   - the caller's, if the earlier owner did not free properly;
//   - the caller's, if the own stream is ordered but the new owner's first use on another stream
//     races with an earlier use: the caller must order that use after the allocation on the block's
//     own stream.
//
// Within a capture the same rules hold of the nodes of the graph, which its edges order: detector_graphs.cc.
//
// Thread safety: none (the machine's lock).
// Cost: O(log live + uses not yet done); no allocation in a steady state.
// Invariants:
//   (1) Live allocations are disjoint in live_ (an overlapping one is reported and not entered in
//       live_), as bytes and not only as addresses.
//   (2) priors_ holds every use that may still run of a freed range, and by a graph of a group; a
//       settled use is dropped when a scan meets it, or when the list would grow.
//   (3) What is mapped under a live allocation does not change (C1): it is looked up once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spec/gpu/capture.h"
#include "spec/gpu/clocks.h"
#include "spec/gpu/fault.h"
#include "spec/gpu/flat_map.h"
#include "spec/gpu/memory.h"
#include "spec/gpu/memory_pieces.h"
#include "spec/gpu/short_list.h"
#include "spec/gpu/sim_slots.h"
#include "spec/gpu/sim_types.h"

namespace ashlar::spec {

class HappensBefore {
 public:
  HappensBefore(const Clocks& clocks, const Memory& memory, const Captures& captures,
                FaultLog& faults);

  /// The allocator handed out the range, for use on that lane. Checks C2, C6, C7.
  /// Uses of the bytes by graphs of `group` are not checked: the caller orders the group's graphs. In a graph it
  /// is for the nodes of `body_lane`, which captures a body of a conditional of that lane's graph. An allocation that was
  /// freed may be given here again, where the free turns out to be refused.
  void on_allocate(AllocationTag tag, Address at, Bytes size, std::uint32_t lane,
                   std::uint32_t thread, GraphGroup group = 0,
                   std::optional<std::uint32_t> body_lane = std::nullopt);
  /// From now on the allocation is for the nodes of that lane: the body that it was made in has ended.
  void on_pass(AllocationTag tag, std::uint32_t lane);
  /// The caller told the allocator of a use on that lane (record_use). Unknown tags are ignored.
  void on_use_announced(AllocationTag tag, std::uint32_t lane);
  /// The caller freed it: after this call on the host, nothing it enqueues may use it.
  void on_free(AllocationTag tag, std::uint32_t thread);
  /// A kernel, or a graph of a group, at the lane's next place touches that range. False if its tag is
  /// dead, which is reported as the caller's fault.
  bool on_touch(const Touch& touch, std::uint32_t lane, std::uint32_t thread);
  /// A kernel that the lane, which captures, adds to its graph touches that range.
  void on_captured_touch(const Touch& touch, std::uint32_t lane);
  /// The range is about to be returned or unmapped. `in_flight`: also report uses of these addresses
  /// that may still run; those of the same pages at other addresses go on undisturbed.
  void on_unmap(Address at, Bytes size, std::uint32_t thread, bool in_flight);

 private:
  struct Stamp {
    std::uint64_t place = 0;
    std::uint32_t lane = 0;
    bool covered = true;  // the free was proper for this use
    AllocationTag owner = 0;
  };
  struct Prior {
    MemoryPiece piece;
    Stamp use;
    GraphGroup group = 0;  // of the graph that uses the bytes
  };
  struct GraphUse {
    CaptureNode node;
    std::uint32_t lane = 0;
    bool covered = true;
    AllocationTag owner = 0;
  };
  struct GraphPrior {
    MemoryPieces pieces;
    GraphUse use;
  };
  struct Allocation {
    AllocationTag tag = 0;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t allocated_at = 0;  // the own lane's place at the allocation
    std::uint32_t lane = 0;
    std::uint32_t graph_lane = 0;  // whose nodes it is for, in a graph
    MemoryPieces pieces;
    ShortList<Stamp, 2> uses;               // last place on each lane
    ShortList<std::uint32_t, 2> announced;  // lanes
    // prior uses that other lanes' first uses may race with
    ShortList<Stamp, 2> races;
    ShortList<GraphUse, 1> graph_uses;  // last node of each member of each capture
    ShortList<GraphUse, 1> graph_races;
  };
  struct Live {
    std::uint64_t begin;
    std::uint64_t end;
    std::uint32_t index;
  };

  Allocation* find(AllocationTag tag);
  std::size_t live_at_or_after(std::uint64_t begin) const;
  /// The place in live_ of the first piece that ends after `begin`.
  std::size_t live_ending_after(std::uint64_t begin) const;
  void enter_live(std::uint32_t index);
  void leave_live(std::uint32_t index);
  /// What it used, if it was freed before: the free was refused.
  void take_back_uses(Allocation& made);
  void check_priors(Allocation& made, std::uint32_t thread, GraphGroup group);
  void check_bounds(const Touch& touch, const Allocation& made);
  static void add_race(Allocation& made, const Stamp& use);
  void check_races(Allocation& made, std::uint32_t lane, std::uint32_t thread);
  void check_live(std::uint64_t begin, std::uint64_t end);
  void free_captured(const Allocation& made);
  void check_graph_priors(Allocation& made);
  void report_unordered(FaultKind kind, Blame by, const Allocation& made, const GraphUse& use);
  void add_prior(const Prior& prior);
  void drop_settled();
  void report_race(FaultKind kind, Blame by, const char* what, const Allocation& made,
                   const Stamp& use);

  const Clocks& clocks_;
  const Memory& memory_;
  const Captures& captures_;
  FaultLog& faults_;
  FlatMap by_tag_;
  SimSlots<Allocation> allocations_;  // by_tag_ and live_ index it
  std::vector<Live> live_;            // the pieces of live allocations, by begin
  std::vector<Prior> priors_;         // unordered
  MemoryPieces pieces_;               // of the range that a call is about
  std::vector<GraphPrior>
      graph_priors_;  // of open captures; those of ended ones go at the next scan
};

}  // namespace ashlar::spec
