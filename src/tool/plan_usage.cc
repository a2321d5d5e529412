#include "src/tool/plan_usage.h"

#include <algorithm>
#include <map>
#include <set>

#include <ashlar/plan/live.h>

namespace ashlar::tool {
namespace {

struct Change {
  plan::Time time;
  std::uint32_t buffer;
  bool begins;
};

std::vector<Change> changes_of(const plan::Problem& problem,
                               const std::vector<std::uint32_t>& buffers) {
  std::vector<Change> changes;
  for (const std::uint32_t b : buffers) {
    for (std::uint32_t k = 0; k < live_pieces(problem.buffers[b]); ++k) {
      const plan::Lifetime piece = live_piece(problem, problem.buffers[b], k);
      changes.push_back({piece.lower, b, true});
      changes.push_back({piece.upper, b, false});
    }
  }
  std::sort(changes.begin(), changes.end(),
            [](const Change& a, const Change& b) { return a.time < b.time; });
  return changes;
}

Bytes greatest(const std::multiset<Bytes>& set) { return set.empty() ? Bytes{} : *set.rbegin(); }

// The buffers that are live at a moment.
class LiveBuffers {
 public:
  LiveBuffers(const plan::Problem& problem, const std::vector<Bytes>& offsets)
      : problem_(problem), offsets_(offsets) {}

  void apply(const Change& change) {
    const plan::Buffer& buffer = problem_.buffers[change.buffer];
    put(&ends_, offsets_[change.buffer] + buffer.size, change.begins);
    if (buffer.group == plan::kNoGroup) {
      live_ = change.begins ? live_ + buffer.size : live_ - buffer.size;
      return;
    }
    std::multiset<Bytes>& sizes = groups_[buffer.group];
    live_ = live_ - greatest(sizes);
    put(&sizes, buffer.size, change.begins);
    live_ = live_ + greatest(sizes);
  }
  UsagePoint at(plan::Time time) const { return {time, live_, live_, greatest(ends_)}; }

 private:
  static void put(std::multiset<Bytes>* set, Bytes value, bool is_new) {
    if (is_new) {
      set->insert(value);
    } else {
      set->erase(set->find(value));
    }
  }

  const plan::Problem& problem_;
  const std::vector<Bytes>& offsets_;
  std::multiset<Bytes> ends_;
  std::map<std::uint32_t, std::multiset<Bytes>> groups_;
  Bytes live_;
};

// At most one point for each span of `width` from the first point on, and the last point.
std::vector<UsagePoint> merged(const std::vector<UsagePoint>& points, std::uint64_t width) {
  const auto origin = static_cast<std::uint64_t>(points.front().from);
  const auto since_origin = [origin](plan::Time time) {
    return static_cast<std::uint64_t>(time) - origin;
  };
  std::vector<UsagePoint> out;
  std::uint64_t next_span = 0;  // the span after that of out.back()
  for (std::size_t i = 0; i + 1 < points.size(); ++i) {
    UsagePoint point = points[i];
    if (since_origin(point.from) / width >= next_span) {
      next_span = since_origin(point.from) / width + 1;
      out.push_back(point);
      continue;
    }
    out.back().least = std::min(out.back().least, point.least);
    out.back().most = std::max(out.back().most, point.most);
    out.back().end = std::max(out.back().end, point.end);
    const std::uint64_t next = since_origin(points[i + 1].from);
    if (next / width < next_span || next == next_span * width) continue;
    // The point lasts into the next span, and the other points merged with it do not.
    point.from = static_cast<plan::Time>(origin + next_span * width);
    ++next_span;
    out.push_back(point);
  }
  out.push_back(points.back());
  return out;
}

}  // namespace

std::vector<UsagePoint> usage_of(const plan::Problem& problem, const std::vector<Bytes>& offsets,
                                 const std::vector<std::uint32_t>& buffers,
                                 std::uint64_t points_max) {
  const std::vector<Change> changes = changes_of(problem, buffers);
  std::vector<UsagePoint> points;
  LiveBuffers live(problem, offsets);
  for (std::size_t i = 0; i < changes.size(); ++i) {
    live.apply(changes[i]);
    if (i + 1 == changes.size() || changes[i + 1].time != changes[i].time)
      points.push_back(live.at(changes[i].time));
  }
  if (points.size() <= points_max) return points;
  const auto span = static_cast<std::uint64_t>(points.back().from) -
                    static_cast<std::uint64_t>(points.front().from);
  return merged(points, span / points_max + 1);
}

}  // namespace ashlar::tool
