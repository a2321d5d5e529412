#include "spec/plan/brute_force.h"

#include <algorithm>
#include <cstdint>

#include <ashlar/base/assert.h>

#include "spec/plan/placing.h"

namespace ashlar::spec {
namespace {

using plan::Buffer;
using plan::Problem;
using plan::Time;

bool is_live(const Problem& problem, const Buffer& buffer, Time at) {
  if (at < buffer.life.lower || at >= buffer.life.upper) return false;
  for (std::uint32_t g = buffer.gaps_begin; g < buffer.gaps_end; ++g) {
    if (at >= problem.gaps[g].lower && at < problem.gaps[g].upper) return false;
  }
  return true;
}

// Tries the orders of one space's units; the units of other spaces do not matter.
class Orders {
 public:
  Orders(const Problem& problem, std::uint32_t space, Bytes lower_bound)
      : placing_(problem), lower_bound_(lower_bound) {
    for (std::size_t u = 0; u < placing_.units().size(); ++u) {
      if (placing_.units()[u].space != space) continue;
      if (placing_.is_placed(u)) {
        pinned_peak_ = std::max(pinned_peak_, placing_.end_of(u));
      } else {
        free_.push_back(u);
      }
    }
    ASHLAR_ASSERT(free_.size() <= kBruteForceUnitsMax, "plan: too many units to try every order");
  }

  void try_all() { extend(0, pinned_peak_); }
  Bytes least() const { return least_; }
  /// By buffer; only those of this space are set.
  const std::vector<Bytes>& offsets() const { return offsets_; }

 private:
  void extend(std::size_t placed, Bytes peak) {
    if (peak >= least_ || least_ == lower_bound_) return;  // no better plan can follow
    if (placed == free_.size()) {
      least_ = peak;
      offsets_ = placing_.offsets();
      return;
    }
    for (const std::size_t unit : free_) {
      if (placing_.is_placed(unit)) continue;
      placing_.place(unit);
      extend(placed + 1, std::max(peak, placing_.end_of(unit)));
      placing_.take_back(unit);
    }
  }

  Placing placing_;
  const Bytes lower_bound_;
  std::vector<std::size_t> free_;
  Bytes pinned_peak_;
  Bytes least_ = Bytes::max();
  std::vector<Bytes> offsets_;
};

}  // namespace

LeastPeaks brute_force(const Problem& problem) {
  const std::vector<Bytes> lower_bounds = live_peaks(problem);
  LeastPeaks answer;
  answer.offsets.resize(problem.buffers.size());
  for (std::uint32_t s = 0; s < problem.spaces.size(); ++s) {
    Orders orders(problem, s, lower_bounds[s]);
    orders.try_all();
    answer.peaks.push_back(orders.least());
    for (std::size_t b = 0; b < problem.buffers.size(); ++b) {
      if (problem.buffers[b].space == s) answer.offsets[b] = orders.offsets()[b];
    }
  }
  return answer;
}

bool cannot_fit(const Problem& problem, const std::vector<std::uint32_t>& buffers) {
  if (buffers.empty()) return false;
  Problem part = problem;
  part.buffers.clear();
  part.ids.clear();
  for (const std::uint32_t b : buffers) part.buffers.push_back(problem.buffers[b]);
  const std::uint32_t space = part.buffers[0].space;
  return brute_force(part).peaks[space] > problem.spaces[space].capacity;
}

// Live bytes grow only where a buffer's life begins, so only those times are counted.
std::vector<Bytes> live_peaks(const Problem& problem) {
  std::vector<Time> times;
  for (const Buffer& buffer : problem.buffers) {
    times.push_back(buffer.life.lower);
    for (std::uint32_t g = buffer.gaps_begin; g < buffer.gaps_end; ++g)
      times.push_back(problem.gaps[g].upper);
  }
  const std::vector<Placing::Unit> units = Placing(problem).units();
  std::vector<Bytes> peaks(problem.spaces.size());
  for (const Time at : times) {
    std::vector<Bytes> live(problem.spaces.size());
    for (const Placing::Unit& unit : units) {
      Bytes largest;
      for (const std::uint32_t b : unit.members) {
        if (is_live(problem, problem.buffers[b], at))
          largest = std::max(largest, problem.buffers[b].size);
      }
      live[unit.space] += largest;
    }
    for (std::size_t s = 0; s < peaks.size(); ++s) peaks[s] = std::max(peaks[s], live[s]);
  }
  return peaks;
}

}  // namespace ashlar::spec
