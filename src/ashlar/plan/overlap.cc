#include <ashlar/plan/overlap.h>

#include <algorithm>
#include <set>
#include <tuple>

#include <ashlar/plan/live.h>

namespace ashlar::inline v0::plan {
namespace {

// A buffer begins or ends to be live. At one time ends come before beginnings, because lifetimes
// are half-open.
struct Event {
  Time at;
  bool begins;
  std::uint32_t buffer;
  friend bool operator<(const Event& a, const Event& b) {
    return std::tie(a.at, a.begins, a.buffer) < std::tie(b.at, b.begins, b.buffer);
  }
};

std::vector<Event> events_of(const Problem& problem, const std::vector<Bytes>& offsets) {
  std::vector<Event> events;
  for (std::uint32_t b = 0; b < problem.buffers.size(); ++b) {
    if (offsets[b] == kNowhere) continue;
    const Buffer& buffer = problem.buffers[b];
    for (std::uint32_t k = 0; k < live_pieces(buffer); ++k) {
      const Lifetime piece = live_piece(problem, buffer, k);
      events.push_back({piece.lower, true, b});
      events.push_back({piece.upper, false, b});
    }
  }
  std::sort(events.begin(), events.end());
  return events;
}

// The live buffers, by space, offset and end. As long as only buffers of one group overlap, those
// that share an offset are of one group, and the last of them has the highest end. So a new buffer
// has to be compared with the neighbours of its place only.
class LiveRanges {
 public:
  LiveRanges(const Problem& problem, const std::vector<Bytes>& offsets)
      : problem_(problem), offsets_(offsets) {}

  /// Returns a live buffer that conflicts with `b` and overlaps it. If there is none, adds `b`.
  std::optional<std::uint32_t> insert(std::uint32_t b) {
    const Range range = range_of(b);
    const auto at_or_above = ranges_.lower_bound({range.space, range.offset, Bytes{}, 0});
    if (at_or_above != ranges_.begin()) {
      const Range& below = *std::prev(at_or_above);
      if (below.space == range.space && below.end > range.offset) return below.buffer;
    }
    if (at_or_above != ranges_.end() && overlap(*at_or_above, range) &&
        !together(at_or_above->buffer, b)) {
      return at_or_above->buffer;
    }
    const auto above = ranges_.lower_bound({range.space, range.offset + Bytes{1}, Bytes{}, 0});
    if (above != ranges_.end() && overlap(*above, range)) return above->buffer;
    ranges_.insert(range);
    return std::nullopt;
  }

  void erase(std::uint32_t b) { ranges_.erase(range_of(b)); }

 private:
  struct Range {
    std::uint32_t space;
    Bytes offset;
    Bytes end;
    std::uint32_t buffer;
    friend bool operator<(const Range& a, const Range& b) {
      return std::tie(a.space, a.offset, a.end, a.buffer) <
             std::tie(b.space, b.offset, b.end, b.buffer);
    }
  };

  Range range_of(std::uint32_t b) const {
    const Buffer& buffer = problem_.buffers[b];
    return {buffer.space, offsets_[b], offsets_[b] + buffer.size, b};
  }
  /// REQUIRES: a begins no lower than b.
  static bool overlap(const Range& a, const Range& b) {
    return a.space == b.space && a.offset < b.end;
  }
  bool together(std::uint32_t a, std::uint32_t b) const {
    return problem_.buffers[a].group != kNoGroup &&
           problem_.buffers[a].group == problem_.buffers[b].group;
  }

  const Problem& problem_;
  const std::vector<Bytes>& offsets_;
  std::set<Range> ranges_;
};

}  // namespace

std::optional<Overlap> first_overlap(const Problem& problem, const std::vector<Bytes>& offsets) {
  LiveRanges live(problem, offsets);
  for (const Event& event : events_of(problem, offsets)) {
    if (!event.begins) {
      live.erase(event.buffer);
    } else if (const std::optional<std::uint32_t> other = live.insert(event.buffer)) {
      return Overlap{*other, event.buffer};
    }
  }
  return std::nullopt;
}

}  // namespace ashlar::inline v0::plan
