#include <ashlar/sched/min_cut.h>

#include <algorithm>

namespace ashlar::inline v0::sched {

void MinCut::add_edge(Vertex from, Vertex to, Capacity capacity) {
  if (from == to || capacity == 0) return;
  edges_.push_back({to, first_[from], capacity});
  first_[from] = static_cast<std::uint32_t>(edges_.size() - 1);
  edges_.push_back({from, first_[to], 0});
  first_[to] = static_cast<std::uint32_t>(edges_.size() - 1);
}

bool MinCut::find_levels() {
  level_.assign(first_.size(), kNone);
  level_[kSource] = 0;
  std::vector<Vertex> queue{kSource};
  for (std::size_t k = 0; k < queue.size(); ++k) {
    for (std::uint32_t e = first_[queue[k]]; e != kNone; e = edges_[e].next) {
      if (edges_[e].rest == 0 || level_[edges_[e].to] != kNone) continue;
      level_[edges_[e].to] = level_[queue[k]] + 1;
      queue.push_back(edges_[e].to);
    }
  }
  return level_[kSink] != kNone;
}

bool MinCut::augment() {
  path_.clear();
  Vertex vertex = kSource;
  while (vertex != kSink) {
    std::uint32_t& e = at_[vertex];
    while (e != kNone && (edges_[e].rest == 0 || level_[edges_[e].to] != level_[vertex] + 1))
      e = edges_[e].next;
    if (e != kNone) {
      path_.push_back(e);
      vertex = edges_[e].to;
      continue;
    }
    if (path_.empty()) return false;
    // A dead end: the edge to it is not tried again.
    vertex = edges_[path_.back() ^ 1].to;
    at_[vertex] = edges_[path_.back()].next;
    path_.pop_back();
  }
  Capacity flow = edges_[path_[0]].rest;
  for (const std::uint32_t e : path_) flow = std::min(flow, edges_[e].rest);
  for (const std::uint32_t e : path_) {
    edges_[e].rest -= flow;
    edges_[e ^ 1].rest += flow;
  }
  return true;
}

void MinCut::solve() {
  while (find_levels()) {
    at_ = first_;
    while (augment()) {
    }
  }
}

}  // namespace ashlar::inline v0::sched
