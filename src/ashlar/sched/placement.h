// Placement: which backend computes what, so that the fewest bytes are copied.
//
// Purpose: the problem without graphs and backends, and its solver. For two backends with memories of
// their own the answer is a minimum. For more it is one that no expansion move improves, or the one that 16 rounds
// of moves have reached; where a backend reads a memory that another of the same memory does not, moves
// that would help may be missed.
// Thread safety: pure functions.
//
// Items are to be placed. A flow is a value: made where its producer is, and copied once to every other
// memory in which a consumer cannot read it there. Of placements with the same copied bytes the one
// with fewer copies is better, then the one in which work changes the backend less often. Where the three
// together do not fit a capacity of MinCut (some 10^17), bytes alone decide.
// Source: expansion moves: Y. Boykov, O. Veksler, R. Zabih, IEEE PAMI 23 (2001). A flow with many
// consumers is cut once, by a vertex of its own.
#pragma once

#include <cstdint>
#include <vector>

#include <ashlar/base/types.h>

namespace ashlar::inline v0::sched {

/// A value that items use.
struct PlacedFlow {
  std::uint32_t producer = 0;
  std::vector<std::uint32_t> consumers;  ///< items, each once
  Bytes bytes;
};

/// What is to be placed, on which backends.
struct PlacementProblem {
  std::uint32_t items = 0;
  std::uint32_t backends = 0;
  /// By item and backend: whether the item may be there. Each item has at least one.
  std::vector<std::uint8_t> allowed;
  std::vector<PlacedFlow> flows;
  /// By backend and backend: whether the first reads what lies in the second's memory.
  std::vector<std::uint8_t> reads;
  std::vector<std::uint32_t> memory;  ///< by backend: a number of its memory
  std::vector<std::uint32_t> work;  ///< items in the order in which they work; some more than once

  bool is_allowed(std::uint32_t item, std::uint32_t backend) const {
    return allowed[std::size_t{item} * backends + backend] != 0;
  }
  bool can_read(std::uint32_t reader, std::uint32_t owner) const {
    return reads[std::size_t{reader} * backends + owner] != 0;
  }
};

/// What a placement costs.
struct PlacementCost {
  Bytes bytes;
  std::uint64_t copies = 0;
  std::uint64_t changes = 0;  ///< of the backend, from work to work
  friend constexpr bool operator==(const PlacementCost&, const PlacementCost&) = default;
  friend constexpr auto operator<=>(const PlacementCost&, const PlacementCost&) = default;
};

/// The cost of a placement: a backend by item.
PlacementCost cost_of(const PlacementProblem& problem,
                      const std::vector<std::uint32_t>& backend_of);

/// A placement of least cost, as far as the head of this file says. Cost: at most 16 minimum cuts for each backend.
/// Throws std::bad_alloc.
std::vector<std::uint32_t> place(const PlacementProblem& problem);

}  // namespace ashlar::inline v0::sched
