#include "spec/plan/check.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace ashlar::spec {
namespace {

using plan::Buffer;
using plan::Problem;
using plan::Time;
using Rule = PlanViolation::Rule;

std::string name_of(const Problem& problem, std::uint32_t b) {
  return problem.ids.empty() ? std::to_string(b) : problem.ids[b];
}

std::string text_of(Bytes bytes) { return std::to_string(bytes.count()); }

// The rules of a single buffer, and of a buffer with the first one of its group.
class AloneCheck {
 public:
  AloneCheck(const Problem& problem, const std::vector<Bytes>& offsets, Capacities capacities)
      : problem_(problem), offsets_(offsets), capacities_(capacities) {}

  std::optional<PlanViolation> check(std::uint32_t b) {
    const Buffer& buffer = problem_.buffers[b];
    const Bytes offset = offsets_[b];
    if (offset == plan::kNowhere) return violation(Rule::kNowhere, b, " has no offset");
    if (offset > plan::kPlanBytesMax - buffer.size)
      return violation(Rule::kCapacity, b, " ends over 2^62");
    const Bytes capacity = problem_.spaces[buffer.space].capacity;
    if (capacities_ == Capacities::kHeld && offset + buffer.size > capacity) {
      return violation(
          Rule::kCapacity, b,
          " ends at " + text_of(offset + buffer.size) + ", past the capacity " + text_of(capacity));
    }
    if (offset % buffer.alignment != 0) {
      return violation(
          Rule::kAlignment, b,
          " is at " + text_of(offset) + ", no multiple of " + text_of(buffer.alignment));
    }
    if (buffer.pinned != plan::kNowhere && offset != buffer.pinned) {
      return violation(Rule::kPin, b,
                       " is at " + text_of(offset) + " and pinned to " + text_of(buffer.pinned));
    }
    if (buffer.group == plan::kNoGroup) return std::nullopt;
    const std::uint32_t first = first_of_group_.emplace(buffer.group, b).first->second;
    if (offsets_[first] == offset) return std::nullopt;
    return PlanViolation{Rule::kGroup, first, b, 0,
                         "buffers " + name_of(problem_, first) + " and " + name_of(problem_, b) +
                             " are of one alias group, at " + text_of(offsets_[first]) + " and " +
                             text_of(offset)};
  }

 private:
  PlanViolation violation(Rule rule, std::uint32_t b, const std::string& what) const {
    return {rule, b, b, 0, "buffer " + name_of(problem_, b) + what};
  }

  const Problem& problem_;
  const std::vector<Bytes>& offsets_;
  const Capacities capacities_;
  std::map<std::uint32_t, std::uint32_t> first_of_group_;
};

// A sweep over time that finds the first overlap. Live buffers are kept by space and first byte.
// While no overlap is found, buffers that begin at one byte are of one group and all others are
// apart, so a buffer that begins to live can overlap only its neighbours.
class Sweep {
 public:
  Sweep(const Problem& problem, const std::vector<Bytes>& offsets)
      : problem_(problem), offsets_(offsets), live_(problem.spaces.size()) {}

  std::optional<PlanViolation> run() {
    for (const Change& change : changes()) {
      if (!change.comes) {
        leave(change.buffer);
      } else if (const std::optional<std::uint32_t> victim = come(change.buffer)) {
        return overlap(*victim, change.buffer, change.at);
      }
    }
    return std::nullopt;
  }

 private:
  struct Change {
    Time at;
    bool comes;  // at one time, lives end before others begin: they are half-open
    std::uint32_t buffer;
    bool operator<(const Change& other) const {
      if (at != other.at) return at < other.at;
      return comes != other.comes ? other.comes : buffer < other.buffer;
    }
  };
  using Ends = std::set<std::pair<Bytes, std::uint32_t>>;  // of buffers that begin at one byte

  std::vector<Change> changes() const {
    std::vector<Change> all;
    for (std::uint32_t b = 0; b < problem_.buffers.size(); ++b) {
      const Buffer& buffer = problem_.buffers[b];
      all.push_back({buffer.life.lower, true, b});
      for (std::uint32_t g = buffer.gaps_begin; g < buffer.gaps_end; ++g) {
        all.push_back({problem_.gaps[g].lower, false, b});
        all.push_back({problem_.gaps[g].upper, true, b});
      }
      all.push_back({buffer.life.upper, false, b});
    }
    std::sort(all.begin(), all.end());
    return all;
  }

  Bytes end_of(std::uint32_t b) const { return offsets_[b] + problem_.buffers[b].size; }

  // Adds b. A live buffer that overlaps b; nullopt, and b is added, if there is none.
  std::optional<std::uint32_t> come(std::uint32_t b) {
    std::map<Bytes, Ends>& live = live_[problem_.buffers[b].space];
    const auto here = live.lower_bound(offsets_[b]);
    if (here != live.begin()) {
      const auto [end, below] = *std::prev(here)->second.rbegin();
      if (end > offsets_[b]) return below;
    }
    auto above = here;
    if (here != live.end() && here->first == offsets_[b]) {
      const std::uint32_t same = here->second.rbegin()->second;
      const std::uint32_t group = problem_.buffers[b].group;
      if (group == plan::kNoGroup || group != problem_.buffers[same].group) return same;
      ++above;
    }
    if (above != live.end() && above->first < end_of(b)) return above->second.rbegin()->second;
    live[offsets_[b]].emplace(end_of(b), b);
    return std::nullopt;
  }

  void leave(std::uint32_t b) {
    std::map<Bytes, Ends>& live = live_[problem_.buffers[b].space];
    const auto here = live.find(offsets_[b]);
    here->second.erase({end_of(b), b});
    if (here->second.empty()) live.erase(here);
  }

  PlanViolation overlap(std::uint32_t a, std::uint32_t b, Time at) const {
    const std::uint32_t one = std::min(a, b);
    const std::uint32_t other = std::max(a, b);
    return {Rule::kOverlap, one, other, at,
            "buffers " + name_of(problem_, one) + " and " + name_of(problem_, other) +
                " are both live at " + std::to_string(at) + " and share bytes [" +
                text_of(std::max(offsets_[a], offsets_[b])) + ", " +
                text_of(std::min(end_of(a), end_of(b))) + ")"};
  }

  const Problem& problem_;
  const std::vector<Bytes>& offsets_;
  std::vector<std::map<Bytes, Ends>> live_;  // by space, then by first byte
};

std::optional<PlanViolation> check_spaces(const Problem& problem, const plan::Plan& plan) {
  if (plan.spaces.size() != problem.spaces.size()) {
    return PlanViolation{Rule::kCount, 0, 0, 0,
                         std::to_string(plan.spaces.size()) + " answers for " +
                             std::to_string(problem.spaces.size()) + " spaces"};
  }
  std::vector<Bytes> peaks(problem.spaces.size());
  for (std::size_t b = 0; b < problem.buffers.size(); ++b) {
    const Buffer& buffer = problem.buffers[b];
    peaks[buffer.space] = std::max(peaks[buffer.space], plan.offsets[b] + buffer.size);
  }
  for (std::uint32_t s = 0; s < peaks.size(); ++s) {
    const std::string space = "space " + std::to_string(s);
    const Bytes stated = plan.spaces[s].peak;
    const Bytes bound = plan.spaces[s].lower_bound;
    if (stated != peaks[s]) {
      return PlanViolation{Rule::kPeak, s, s, 0,
                           space + " ends at " + text_of(peaks[s]) + ", not at " + text_of(stated)};
    }
    if (bound > stated) {
      return PlanViolation{
          Rule::kLowerBound, s, s, 0,
          space + " ends at " + text_of(stated) + ", below its lower bound " + text_of(bound)};
    }
  }
  return std::nullopt;
}

// REQUIRES: check_spaces() found nothing.
std::optional<PlanViolation> check_cannot_fit(const Problem& problem, const plan::Plan& plan) {
  std::set<std::uint32_t> seen;
  std::set<std::uint32_t> explained;  // spaces
  const auto violation = [](std::size_t i, const std::string& text) {
    const auto at = static_cast<std::uint32_t>(i);
    return PlanViolation{Rule::kCannotFit, at, at, 0, text};
  };
  const auto is_misfit = [&](std::uint32_t s) {
    return plan.spaces[s].lower_bound > problem.spaces[s].capacity;
  };
  for (std::size_t i = 0; i < plan.cannot_fit.size(); ++i) {
    const std::uint32_t b = plan.cannot_fit[i];
    if (b >= problem.buffers.size())
      return violation(i,
                       "buffer " + std::to_string(b) + " is listed as misfit and does not exist");
    if (!seen.insert(b).second)
      return violation(i, "buffer " + name_of(problem, b) + " is listed twice as misfit");
    if (!is_misfit(problem.buffers[b].space)) {
      return violation(
          i, "buffer " + name_of(problem, b) + " is listed as misfit, in a space that may fit");
    }
    explained.insert(problem.buffers[b].space);
  }
  for (std::uint32_t s = 0; s < problem.spaces.size(); ++s) {
    if (is_misfit(s) && explained.count(s) == 0) {
      return violation(plan.cannot_fit.size(),
                       "space " + std::to_string(s) +
                           " cannot fit, and none of its buffers is listed as misfit");
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<PlanViolation> check_plan(const Problem& problem, const std::vector<Bytes>& offsets,
                                        Capacities capacities) {
  if (offsets.size() != problem.buffers.size()) {
    return PlanViolation{Rule::kCount, 0, 0, 0,
                         std::to_string(offsets.size()) + " offsets for " +
                             std::to_string(problem.buffers.size()) + " buffers"};
  }
  AloneCheck alone(problem, offsets, capacities);
  for (std::uint32_t b = 0; b < offsets.size(); ++b) {
    if (auto violation = alone.check(b)) return violation;
  }
  return Sweep(problem, offsets).run();
}

std::optional<PlanViolation> check_answer(const Problem& problem, const plan::Plan& plan) {
  if (auto violation = check_plan(problem, plan.offsets)) return violation;
  if (auto violation = check_spaces(problem, plan)) return violation;
  return check_cannot_fit(problem, plan);
}

}  // namespace ashlar::spec
