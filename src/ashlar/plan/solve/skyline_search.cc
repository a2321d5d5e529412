#include <ashlar/plan/solve/skyline_search.h>

#include <algorithm>
#include <cstddef>

#include <ashlar/base/mix.h>

namespace ashlar::inline v0::plan::solve {
namespace {

/// A search goes as deep as items are placed and floors raised; this many levels fit a thread's
/// stack.
constexpr std::uint32_t kDepthMax = 4'000;
/// Nodes from one look at the clock to the next: a node takes microseconds.
constexpr std::uint64_t kNodesBetweenLooks = 32;

}  // namespace

bool SkylineSearch::can_search(const Items& items) {
  const auto to_place = std::count_if(items.items.begin(), items.items.end(),
                                      [](const Item& item) { return item.pinned == kNotPinned; });
  return to_place <= kItemsMax && cover_of(items) <= kCoverMax;
}

SkylineSearch::SkylineSearch(const Items& items)
    : instance_(items), state_(instance_), choices_(instance_, state_) {}

SkylineSearch::Outcome SkylineSearch::run(Units capacity, const std::vector<std::int32_t>& ranks,
                                          const Limits& limits, SearchMemory* memory) {
  if (instance_.items.lower_bound > capacity) return Outcome::kNone;
  memory->failed.begin(capacity);
  memory->blames.resize(instance_.items.size(), 0);
  memory_ = memory;
  limits_ = limits;
  nodes_ = 0;
  steps_begin_ = steps();
  steps_end_ =
      limits.steps > ~std::uint64_t{0} - steps() ? ~std::uint64_t{0} : steps() + limits.steps;
  has_stopped_ = false;
  depth_ = 0;
  parts_.clear();
  choices_.begin(&ranks);
  if (!state_.begin(capacity, &memory->blames)) return Outcome::kNone;
  if (search(Part{0, instance_.items.sections()})) return Outcome::kFound;
  return has_stopped_ ? Outcome::kStopped : Outcome::kNone;
}

bool SkylineSearch::is_out_of_limits() {
  nodes_ += 1;
  has_stopped_ |= nodes_ > limits_.nodes || steps() >= steps_end_ || depth_ > kDepthMax ||
                  (nodes_ % kNodesBetweenLooks == 0 && is_told_to_stop());
  return has_stopped_;
}

bool SkylineSearch::is_told_to_stop() const {
  return limits_.monitor != nullptr ? limits_.monitor->should_stop(steps() - steps_begin_)
                                    : limits_.stop->is_met();
}

/// Searches each part of `whole` that has unplaced items. False: one of them has no plan, or the
/// search was stopped.
bool SkylineSearch::search(Part whole) {
  if (is_out_of_limits()) return false;
  state_.add_steps(whole.last - whole.first);
  const std::size_t begin = parts_.size();
  for (Section s = whole.first; s < whole.last;) {
    if (!state_.is_open(s)) {
      s += 1;
      continue;
    }
    Section end = s + 1;
    while (end < whole.last && state_.is_crossed(end)) end += 1;
    parts_.push_back({s, end});
    s = end;
  }
  // Small parts first: where one of them has no plan, that is found out sooner.
  std::sort(parts_.begin() + static_cast<std::ptrdiff_t>(begin), parts_.end(),
            [](const Part& a, const Part& b) {
              const Section width_a = a.last - a.first, width_b = b.last - b.first;
              return width_a != width_b ? width_a < width_b : a.first < b.first;
            });
  bool have_all = true;
  const std::size_t end = parts_.size();
  depth_ += 1;
  for (std::size_t i = begin; have_all && i < end; ++i) have_all = search_part(parts_[i]);
  depth_ -= 1;
  parts_.resize(begin);
  return have_all;
}

bool SkylineSearch::search_part(Part part) {
  const FailedParts::Key key = key_of(part);
  if (memory_->failed.holds(key)) return false;
  const ValleyChoices choices = choices_.push(part);
  const Trail::Mark before = state_.mark();
  bool found = false;
  for (std::uint32_t k = choices.begin; !found && !has_stopped_ && k < choices.end; ++k) {
    state_.place(choices_.candidate(k), choices.floor);
    found = state_.propagate() && search(part);
    if (!found) state_.undo(before);
  }
  if (!found && !has_stopped_ && choices.raised != kNoUnits) {
    found = state_.raise(choices.section, choices.raised) && state_.propagate() && search(part);
    if (!found) state_.undo(before);
  }
  choices_.pop(choices);
  if (!found && !has_stopped_) memory_->failed.add(key);
  return found;
}

/// The part's unplaced items and its floors, hashed.
FailedParts::Key SkylineSearch::key_of(Part part) const {
  FailedParts::Key key{0, 0};
  const auto add = [&key](std::uint64_t word) {
    key.bucket ^= word;
    key.check += (word * 0x9e3779b97f4a7c15u) ^ (word >> 29);
  };
  state_.for_unplaced_in(part, [&](ItemIndex index) { add(instance_.key[index]); });
  for (Section s = part.first; s < part.last; ++s) {
    if (state_.is_open(s)) add(mix(mix(s + 1) + static_cast<std::uint64_t>(state_.floor(s))));
  }
  return key;
}

}  // namespace ashlar::inline v0::plan::solve
