// Minimum cuts of networks.
//
// Thread safety: none.
// Source: Y. Dinitz's algorithm (1970): phases of shortest augmenting paths, each a blocking flow.
#pragma once

#include <cstdint>
#include <vector>

namespace ashlar::inline v0::sched {

class MinCut {
 public:
  using Capacity = std::int64_t;
  using Vertex = std::uint32_t;
  /// No cut contains an edge of this capacity if one without it exists. Larger than every sum of others.
  static constexpr Capacity kUncuttable = Capacity{1} << 61;

  static constexpr Vertex kSource = 0;
  static constexpr Vertex kSink = 1;

  MinCut() : first_(2, kNone) {}
  Vertex add_vertex() {
    first_.push_back(kNone);
    return static_cast<Vertex>(first_.size() - 1);
  }
  /// The cut pays `capacity` if `from` is on the source's side and `to` is not.
  void add_edge(Vertex from, Vertex to, Capacity capacity);
  /// Finds a minimum cut: the one with the fewest vertices on the source's side. Cost: O(V^2 E) at
  /// worst, near linear for the networks here. Throws std::bad_alloc.
  void solve();
  /// REQUIRES: solve() was called, and no edge added since.
  bool is_on_source_side(Vertex vertex) const { return level_[vertex] != kNone; }

 private:
  static constexpr std::uint32_t kNone = 0xffffffffu;
  struct Edge {
    Vertex to;
    std::uint32_t next;
    Capacity rest;
  };

  bool find_levels();
  /// One augmenting path along the levels. False: there is none.
  bool augment();

  std::vector<Edge> edges_;           // edge k and its reverse k ^ 1
  std::vector<std::uint32_t> first_;  // by vertex
  std::vector<std::uint32_t> level_;  // by vertex; kNone: not reached from the source
  std::vector<std::uint32_t> at_;     // by vertex: the edge that is tried next
  std::vector<std::uint32_t> path_;   // edges
};

}  // namespace ashlar::inline v0::sched
