// Clocks: which work of each stream comes before which, as vector clocks over the streams.
//
// Purpose: the order half of the happens-before detector. A lane is a stream's identity as a dense
// index; its clock says, for every lane, up to which place (1, 2, ...) that lane's entries come
// before this lane's next entry. The host's clock says which entries the host has learnt to be
// done.
// Thread safety: none (the machine's lock). Cost: a join is O(lanes); an enqueue with nothing new
// learnt is O(1).
// Source: vector clocks (Fidge 1988, Mattern 1989).
#pragma once

#include <cstdint>
#include <vector>

#include "spec/gpu/short_list.h"
#include "spec/gpu/sim_types.h"

namespace ashlar::spec {

/// Place by lane; lanes beyond its end count as 0.
using Clock = ShortList<std::uint64_t, 6>;

/// The place of that lane in the clock.
inline std::uint64_t place_in(const Clock& clock, std::uint32_t lane) {
  return lane < clock.size() ? clock[lane] : 0;
}

class Clocks {
 public:
  /// `drop_edges`: a mask of Edge (sim_gpu.h); those edges are ignored.
  explicit Clocks(std::uint32_t drop_edges) : dropped_(drop_edges) {
    lanes_.reserve(kUsual);
    hosts_.resize(1);
  }

  bool keeps(std::uint32_t edge) const { return (dropped_ & edge) == 0; }
  /// The next lane: 0, 1, ...
  void add_lane() { lanes_.emplace_back(); }

  /// The thread enqueues an entry on the lane: it comes after everything the thread has learnt.
  void enqueue(std::uint32_t lane, std::uint32_t thread);
  /// All entries of the lane up to `place` are finished.
  void finish(std::uint32_t lane, std::uint64_t place) { lanes_[lane].done = place; }
  /// The lane's next entry comes after `before`, by that edge.
  void join(std::uint32_t lane, const Clock& before, std::uint32_t edge);
  /// The lane's next entry comes after all entries of the lane `before` so far, by that edge.
  void join_lane(std::uint32_t lane, std::uint32_t before, std::uint32_t edge);
  /// The thread learns that everything in `done` is done, by that edge.
  void learn(std::uint32_t thread, const Clock& done, std::uint32_t edge);
  /// The clock of the lane now: what event_record captures.
  const Clock& clock(std::uint32_t lane) const { return lanes_[lane].clock; }
  std::uint64_t enqueued(std::uint32_t lane) const { return lanes_[lane].enqueued; }
  std::size_t lanes() const { return lanes_.size(); }

  /// Does that entry come before the entry that `thread` enqueues next on `lane`?
  bool before_next_of(std::uint32_t used_lane, std::uint64_t place, std::uint32_t lane,
                      std::uint32_t thread) const;
  /// Does that entry come before the entry that `thread` enqueues next on any lane: is it done, as
  /// far as that thread can know?
  bool done_for(std::uint32_t used_lane, std::uint64_t place, std::uint32_t thread) const {
    if (keeps(kEdgeCompletion) && lanes_[used_lane].done >= place) return true;
    const Host* host = host_of(thread);
    return host != nullptr && place_in(host->clock, used_lane) >= place;
  }
  /// Is it done for every thread, so that it can be dropped?
  bool settled(std::uint32_t used_lane, std::uint64_t place) const {
    if (keeps(kEdgeCompletion)) return lanes_[used_lane].done >= place;
    return keeps(kEdgeHostThreads) && done_for(used_lane, place, 0);
  }

 private:
  struct Lane {
    Clock clock;
    std::uint64_t enqueued = 0;
    std::uint64_t done = 0;
    std::uint64_t host_version = 0;  // of the host clock joined last
    std::uint32_t host_thread = 0;
  };
  struct Host {
    Clock clock;
    std::uint64_t version = 0;
  };
  const Host* host_of(std::uint32_t thread) const {
    const std::uint32_t index = keeps(kEdgeHostThreads) ? 0 : thread;
    return index < hosts_.size() ? &hosts_[index] : nullptr;
  }
  static constexpr std::size_t kUsual = 8;  ///< most machines have fewer lanes
  static bool merge(Clock& into, const Clock& from);

  std::vector<Lane> lanes_;
  std::vector<Host> hosts_;  // one for all threads, or (kEdgeHostThreads dropped) one each
  std::uint32_t dropped_;
};

}  // namespace ashlar::spec
