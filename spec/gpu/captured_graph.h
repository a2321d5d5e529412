// CapturedGraph: what the kernels of a graph touch, and which of them are in the bodies of its conditionals.
//
// Purpose: the body of a conditional (an "if", a "while") is captured once and runs at each launch as often as
// its condition says: not at all, once, or several times. run_order() lists the touches of such a run.
// Thread safety: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "spec/gpu/sim_types.h"

namespace ashlar::spec {

struct CapturedGraph {
  struct Body {
    std::uint32_t parent = 0;  ///< the number of the body that it is inside; 0: the graph itself
    std::size_t begin = 0;     ///< how many touches had been captured when it began
  };
  std::vector<Touch> touches;  ///< in the order in which they were captured
  std::vector<std::uint32_t>
      body_of;               ///< parallel: in which body, by its number from 1; 0: in none
  std::vector<Body> bodies;  ///< by number minus 1, in the order in which they began
};

/// How often each body of a graph runs at a launch; one inside another runs so often in each run of that.
class BodyRuns {
 public:
  /// Two bits for each body, the first in the lowest.
  explicit BodyRuns(std::uint64_t digits) : digits_(digits) {}
  static BodyRuns never() { return BodyRuns(0); }
  static BodyRuns once() { return BodyRuns(0x5555'5555'5555'5555); }
  static BodyRuns twice() { return BodyRuns(0xaaaa'aaaa'aaaa'aaaa); }
  std::uint32_t of(std::uint32_t body) const { return digits_ >> (2 * ((body - 1) % 32)) & 3; }

 private:
  std::uint64_t digits_;
};

/// The touches of a launch, as indices of CapturedGraph::touches, in an order that the graph's edges permit:
/// what other streams captured beside a body comes after it.
std::vector<std::size_t> run_order(const CapturedGraph& graph, BodyRuns runs);

}  // namespace ashlar::spec
