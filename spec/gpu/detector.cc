#include "spec/gpu/detector.h"

#include <algorithm>

namespace ashlar::spec {
namespace {

/// A range of addresses as a part of a report.
struct Range {
  std::uint64_t begin;
  std::uint64_t end;
};
Range range(std::uint64_t begin, std::uint64_t end) { return {begin, end}; }
void append(std::string* text, Range part) {
  *text += joined("[", part.begin, ", ", part.end, ")");
}

}  // namespace

HappensBefore::HappensBefore(const Clocks& clocks, const Memory& memory, const Captures& captures,
                             FaultLog& faults)
    : clocks_(clocks), memory_(memory), captures_(captures), faults_(faults) {
  constexpr std::size_t kUsual = 32;  // most worlds have fewer, and then nothing grows
  allocations_.reserve(kUsual);
  live_.reserve(kUsual);
  priors_.reserve(kUsual);
}

void HappensBefore::report_race(FaultKind kind, Blame by, const char* what, const Allocation& made,
                                const Stamp& use) {
  faults_.report(kind, by, what, ": allocation ", made.tag, " at ", range(made.begin, made.end),
                 " for stream #", made.lane + 1, " has bytes that allocation ", use.owner,
                 " used at entry ", use.place, " of stream #", use.lane + 1,
                 ", which is neither done nor ordered before");
}

HappensBefore::Allocation* HappensBefore::find(AllocationTag tag) {
  if (tag == kNoTag) return nullptr;
  const std::uint32_t index = by_tag_.find(tag);
  return index == FlatMap::kAbsent ? nullptr : &allocations_[index];
}

std::size_t HappensBefore::live_at_or_after(std::uint64_t begin) const {
  const auto it =
      std::lower_bound(live_.begin(), live_.end(), begin,
                       [](const Live& live, std::uint64_t value) { return live.begin < value; });
  return static_cast<std::size_t>(it - live_.begin());
}

std::size_t HappensBefore::live_ending_after(std::uint64_t begin) const {
  const std::size_t place = live_at_or_after(begin);
  return place > 0 && live_[place - 1].end > begin ? place - 1 : place;
}

void HappensBefore::enter_live(std::uint32_t index) {
  const Allocation& made = allocations_[index];
  for (const MemoryPiece& piece : made.pieces) {
    const std::size_t place = live_ending_after(piece.begin);
    const auto at = live_.begin() + static_cast<std::ptrdiff_t>(place);
    if (at == live_.end() || at->begin >= piece.end) {
      live_.insert(at, Live{piece.begin, piece.end, index});
      continue;
    }
    const Allocation& hit = allocations_[at->index];
    const bool is_aliased = hit.begin >= made.end || made.begin >= hit.end || hit.tag == made.tag;
    faults_.report(FaultKind::kOverlap, Blame::kAllocator, "C2: allocation ", made.tag, " at ",
                   range(made.begin, made.end), " overlaps allocation ", hit.tag, " at ",
                   range(hit.begin, hit.end), is_aliased ? ", by another address of a page" : "");
    leave_live(index);
    return;
  }
}

void HappensBefore::leave_live(std::uint32_t index) {
  for (const MemoryPiece& piece : allocations_[index].pieces) {
    const auto at = live_.begin() + static_cast<std::ptrdiff_t>(live_at_or_after(piece.begin));
    if (at != live_.end() && at->begin == piece.begin && at->index == index) live_.erase(at);
  }
}

void HappensBefore::on_allocate(AllocationTag tag, Address at, Bytes size, std::uint32_t lane,
                                std::uint32_t thread, GraphGroup group,
                                std::optional<std::uint32_t> body_lane) {
  ASHLAR_ASSERT(tag != kNoTag && find(tag) == nullptr, "detector: a tag names one allocation");
  const std::uint32_t index = allocations_.add();
  Allocation& made = allocations_[index];
  made.tag = tag;
  made.begin = at.value();
  made.end = made.begin + size.count();
  made.lane = lane;
  made.graph_lane = body_lane.value_or(lane);
  made.allocated_at = clocks_.enqueued(lane);
  made.uses.clear();
  made.announced.clear();
  made.races.clear();
  made.graph_uses.clear();
  made.graph_races.clear();
  by_tag_.insert(tag, index);

  memory_.find_pieces(at, size, &made.pieces);
  enter_live(index);
  take_back_uses(made);
  check_priors(made, thread, group);
  if (!graph_priors_.empty()) check_graph_priors(made);
}

void HappensBefore::take_back_uses(Allocation& made) {
  std::erase_if(priors_, [&made](const Prior& prior) {
    const Stamp& use = prior.use;
    if (use.owner != made.tag) return false;
    const bool is_known = std::any_of(made.uses.begin(), made.uses.end(), [&use](const Stamp& had) {
      return had.lane == use.lane && had.place == use.place;
    });
    if (!is_known) made.uses.push_back(use);  // once for each of its pieces
    if (!is_known && use.covered) made.announced.push_back(use.lane);
    return true;
  });
  std::erase_if(graph_priors_, [&made](const GraphPrior& prior) {
    if (prior.use.owner != made.tag) return false;
    made.graph_uses.push_back(prior.use);
    if (prior.use.covered) made.announced.push_back(prior.use.lane);
    return true;
  });
}

void HappensBefore::check_priors(Allocation& made, std::uint32_t thread, GraphGroup group) {
  for (std::size_t i = 0; i < priors_.size();) {
    const Prior& prior = priors_[i];
    if (!share_bytes(made.pieces, prior.piece) || (group != 0 && prior.group == group)) {
      ++i;
      continue;
    }
    bool forget = clocks_.settled(prior.use.lane, prior.use.place);
    if (!forget && clocks_.before_next_of(prior.use.lane, prior.use.place, made.lane, thread)) {
      add_race(made, prior.use);
    } else if (!forget) {
      report_race(prior.use.covered ? FaultKind::kEarlyReuse : FaultKind::kUnannouncedUse,
                  prior.use.covered ? Blame::kAllocator : Blame::kCaller,
                  prior.use.covered ? "C6/C7" : "C7: a use that was not announced", made,
                  prior.use);
      forget = true;  // reported once
    }
    if (forget) {
      priors_[i] = priors_.back();
      priors_.pop_back();
    } else {
      ++i;
    }
  }
}

// One use is a prior of each of its pieces.
void HappensBefore::add_race(Allocation& made, const Stamp& use) {
  const bool is_known =
      std::any_of(made.races.begin(), made.races.end(), [&use](const Stamp& known) {
        return known.lane == use.lane && known.place == use.place && known.owner == use.owner;
      });
  if (!is_known) made.races.push_back(use);
}

// The allocation itself was ordered after these uses; now another lane touches the bytes, and races
// with each use that it is not ordered after.
void HappensBefore::check_races(Allocation& made, std::uint32_t lane, std::uint32_t thread) {
  for (std::size_t i = 0; i < made.races.size();) {
    const Stamp use = made.races[i];
    const bool settled = clocks_.settled(use.lane, use.place);
    const bool ordered = settled || clocks_.before_next_of(use.lane, use.place, lane, thread);
    if (!ordered) {
      report_race(FaultKind::kUnorderedUse, Blame::kCaller,
                  "C6: a use on another stream, not ordered after the allocation", made, use);
    }
    if (settled || !ordered) {
      made.races.remove(i);
    } else {
      ++i;
    }
  }
}

void HappensBefore::on_use_announced(AllocationTag tag, std::uint32_t lane) {
  Allocation* made = find(tag);
  if (made == nullptr) return;
  if (std::find(made->announced.begin(), made->announced.end(), lane) == made->announced.end()) {
    made->announced.push_back(lane);
  }
}

void HappensBefore::check_bounds(const Touch& touch, const Allocation& made) {
  if (touch.at.value() >= made.begin && touch.at.value() + touch.size.count() <= made.end) return;
  faults_.report(FaultKind::kOutOfBounds, Blame::kCaller,
                 "a kernel touches bytes outside of allocation ", touch.tag);
}

bool HappensBefore::on_touch(const Touch& touch, std::uint32_t lane, std::uint32_t thread) {
  if (touch.tag == kNoTag) {
    const Stamp use{clocks_.enqueued(lane) + 1, lane, true, kNoTag};
    if (touch.group == 0) return true;
    memory_.find_pieces(touch.at, touch.size, &pieces_);
    for (const MemoryPiece& piece : pieces_) add_prior(Prior{piece, use, touch.group});
    return true;
  }
  Allocation* made = find(touch.tag);
  if (made == nullptr) {
    faults_.report(FaultKind::kUseAfterFree, Blame::kCaller, "a kernel was enqueued on allocation ",
                   touch.tag, " after its free");
    return false;
  }
  check_bounds(touch, *made);
  check_races(*made, lane, thread);
  const std::uint64_t place = clocks_.enqueued(lane) + 1;
  for (Stamp& use : made->uses) {
    if (use.lane != lane) continue;
    use.place = place;
    return true;
  }
  made->uses.push_back(Stamp{place, lane, true, touch.tag});
  return true;
}

void HappensBefore::on_free(AllocationTag tag, std::uint32_t thread) {
  Allocation* made = find(tag);
  if (made == nullptr) return;
  for (Stamp use : made->uses) {
    if (clocks_.settled(use.lane, use.place)) continue;
    const bool announced = std::find(made->announced.begin(), made->announced.end(), use.lane) !=
                           made->announced.end();
    const bool ordered = clocks_.keeps(kEdgeFreeCoverage) &&
                         clocks_.before_next_of(use.lane, use.place, made->lane, thread);
    use.covered = use.lane == made->lane || announced || ordered;
    for (const MemoryPiece& piece : made->pieces) add_prior(Prior{piece, use});
  }
  if (!made->graph_uses.empty()) free_captured(*made);
  const std::uint32_t index = by_tag_.find(tag);
  leave_live(index);
  by_tag_.erase(tag);
  allocations_.remove(index);
}

// A later use on the same lane of at least the same bytes, at the same addresses, stands for the earlier
// one.
void HappensBefore::add_prior(const Prior& prior) {
  for (std::size_t i = 0; i < priors_.size(); ++i) {
    Prior& old = priors_[i];
    if (old.use.lane != prior.use.lane || !old.piece.is_within(prior.piece)) continue;
    if (!old.piece.is_same_mapping(prior.piece)) continue;
    if (old.use.covered != prior.use.covered || old.group != prior.group) continue;
    old = priors_.back();
    priors_.pop_back();
    --i;
  }
  if (priors_.size() == priors_.capacity() && !priors_.empty()) drop_settled();
  priors_.push_back(prior);
}

// Called before the list would grow: costs no more than the scan in add_prior, and keeps the list
// within twice its necessary length.
void HappensBefore::drop_settled() {
  for (std::size_t i = 0; i < priors_.size(); ++i) {
    if (!clocks_.settled(priors_[i].use.lane, priors_[i].use.place)) continue;
    priors_[i] = priors_.back();
    priors_.pop_back();
    --i;
  }
}

// REQUIRES: pieces_ are those of the range.
void HappensBefore::check_live(std::uint64_t begin, std::uint64_t end) {
  AllocationTag reported = kNoTag;
  for (const MemoryPiece& piece : pieces_) {
    for (std::size_t i = live_ending_after(piece.begin);
         i < live_.size() && live_[i].begin < piece.end; ++i) {
      const Allocation& made = allocations_[live_[i].index];
      const bool is_aliased = made.begin >= end || begin >= made.end;
      if (is_aliased || made.tag == reported) continue;
      faults_.report(FaultKind::kLiveUnmapped, Blame::kAllocator, "C1: memory at ",
                     range(begin, end), " returned or unmapped under live allocation ", made.tag);
      reported = made.tag;
    }
  }
}

void HappensBefore::on_unmap(Address at, Bytes size, std::uint32_t thread, bool in_flight) {
  const std::uint64_t begin = at.value();
  const std::uint64_t end = begin + size.count();
  memory_.find_pieces(at, size, &pieces_);
  check_live(begin, end);
  if (!in_flight) return;
  for (const Prior& prior : priors_) {
    const std::uint64_t used_end = prior.piece.at + (prior.piece.end - prior.piece.begin);
    if (prior.piece.at >= end || begin >= used_end) continue;
    if (clocks_.done_for(prior.use.lane, prior.use.place, thread)) continue;
    faults_.report(FaultKind::kInFlight, prior.use.covered ? Blame::kAllocator : Blame::kCaller,
                   "D4: memory at ", range(begin, end), " returned or unmapped while entry ",
                   prior.use.place, " of stream #", prior.use.lane + 1,
                   " is not known to be done with it");
  }
}

}  // namespace ashlar::spec
