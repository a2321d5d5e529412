#include "spec/gpu/clocks.h"

namespace ashlar::spec {

bool Clocks::merge(Clock& into, const Clock& from) {
  bool changed = false;
  into.extend(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (into[i] >= from[i]) continue;
    into[i] = from[i];
    changed = true;
  }
  return changed;
}

void Clocks::enqueue(std::uint32_t lane, std::uint32_t thread) {
  Lane& at = lanes_[lane];
  const Host* host = host_of(thread);
  if (host != nullptr && (host->version != at.host_version || thread != at.host_thread)) {
    merge(at.clock, host->clock);
    at.host_version = host->version;
    at.host_thread = thread;
  }
  ++at.enqueued;
  at.clock.extend(std::size_t{lane} + 1);
  at.clock[lane] = at.enqueued;
}

void Clocks::join(std::uint32_t lane, const Clock& before, std::uint32_t edge) {
  if (keeps(edge)) merge(lanes_[lane].clock, before);
}

void Clocks::join_lane(std::uint32_t lane, std::uint32_t before, std::uint32_t edge) {
  if (keeps(edge) && lane != before) merge(lanes_[lane].clock, lanes_[before].clock);
}

void Clocks::learn(std::uint32_t thread, const Clock& done, std::uint32_t edge) {
  if (!keeps(edge)) return;
  const std::uint32_t index = keeps(kEdgeHostThreads) ? 0 : thread;
  if (hosts_.size() <= index) hosts_.resize(index + 1);
  if (merge(hosts_[index].clock, done)) ++hosts_[index].version;
}

bool Clocks::before_next_of(std::uint32_t used_lane, std::uint64_t place, std::uint32_t lane,
                            std::uint32_t thread) const {
  if (used_lane == lane) {
    if (keeps(kEdgeStreamOrder)) return true;
  } else if (place_in(lanes_[lane].clock, used_lane) >= place) {
    return true;
  }
  return done_for(used_lane, place, thread);
}

}  // namespace ashlar::spec
