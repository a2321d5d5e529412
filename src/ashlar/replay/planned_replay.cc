#include <ashlar/replay/planned_replay.h>

#include <algorithm>

#include <ashlar/base/checked.h>
#include <ashlar/base/exceptions.h>
#include <ashlar/plan/plan_fault.h>

namespace ashlar::inline v0::replay {
namespace {

std::vector<Bytes> distinct(std::vector<Bytes> offsets) {
  std::sort(offsets.begin(), offsets.end());
  offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
  return offsets;
}

}  // namespace

Result<std::unique_ptr<Replay>> Replay::create(Upstream& upstream, const Stream& stream,
                                               const Recording& recording, const plan::Plan& plan,
                                               Bytes alignment) noexcept {
  Result<std::unique_ptr<Replay>> made{Code::kHostOutOfMemory,
                                       "the host has too little memory for the plan"};
  const auto make = [&]() -> Result<std::unique_ptr<Replay>> {
    ASHLAR_REQUIRE(is_power_of_two(alignment.count()) && alignment <= kReplayAlignmentMax,
                   Code::kInvalidArgument, "the alignment is not a power of two up to 2^30");
    if (const Status status = check_recording(recording); !status.is_ok()) return status;
    ASHLAR_REQUIRE(!plan::fault_of_plan(problem_of(recording, alignment), plan),
                   Code::kInvalidArgument, "not a valid plan of the recording");
    auto replay = std::make_unique<PlannedReplay>(upstream, stream, recording, plan, alignment);
    static_cast<void>(replay->renew_segment());
    return std::unique_ptr<Replay>(std::move(replay));
  };
  static_cast<void>(with_host_memory([&] { made = make(); }));
  return made;
}

PlannedReplay::PlannedReplay(Upstream& upstream, const Stream& stream, const Recording& recording,
                             const plan::Plan& plan, Bytes alignment)
    : upstream_(upstream),
      stream_(stream),
      alignment_(alignment),
      // No planned offset is the segment's first byte, so upstream knows no planned address.
      segment_size_(plan.spaces[0].peak == Bytes{} ? Bytes{} : plan.spaces[0].peak + alignment),
      barred_(static_cast<std::uint32_t>(plan.offsets.size())) {
  const std::vector<Bytes> offsets = distinct(plan.offsets);
  for (const Bytes offset : offsets) slots_.push_back({offset, Bytes{}, 0, 0});
  // By allocation. The problem has the managed allocations as buffers, in the same order.
  std::vector<Event> placed(recording.allocations.size());
  std::size_t buffer = 0;
  for (std::uint32_t a = 0; a < placed.size(); ++a) {
    placed[a].size = recording.allocations[a].size;
    placed[a].allocation = a;
    if (!recording.allocations[a].is_managed()) continue;
    placed[a].offset = plan.offsets[buffer++];
    const auto slot = std::lower_bound(offsets.begin(), offsets.end(), placed[a].offset);
    placed[a].slot = static_cast<std::uint32_t>(slot - offsets.begin());
  }
  events_.reserve(static_cast<std::size_t>(recording.events) + 1);
  for (const RecordedEvent& event : events_of(recording)) {
    Event next = placed[event.allocation];
    if (event.is_free && next.slot == kNoSlot) continue;
    if (event.is_free) next.size = Bytes{};
    events_.push_back(next);
  }
  events_.emplace_back();
}

PlannedReplay::~PlannedReplay() {
  if (live_ == 0 && !segment_.is_null()) static_cast<void>(upstream_.free(segment_));
}

bool PlannedReplay::contains(Address address) const noexcept {
  return !segment_.is_null() && address >= segment_ && address - segment_ < segment_size_;
}

/// Whether the memory that this event would free is live, and not late.
bool PlannedReplay::is_on_time(const Event& free) const noexcept {
  const Slot& slot = slots_[free.slot];
  return slot.allocation == free.allocation && (slot.flags & (kLive | kLate)) == kLive;
}

Result<Address> PlannedReplay::allocate(Bytes size, const Stream& stream) noexcept {
  if (size == Bytes{}) return Address{};
  {
    const Guard guard(lock_);
    const Event& next = events_[cursor_];
    if (next.size == size && next.slot != kNoSlot && barred_.is_empty() && !base_.is_null() &&
        is_same_stream(stream, stream_)) [[likely]] {
      ++cursor_;
      return occupy(next);
    }
    if (!is_same_stream(stream, stream_)) {
      ++counts_.other_stream;
    } else if (const Address address = place(size); !address.is_null()) {
      return address;
    }
  }
  return upstream_.allocate(size, stream);
}

Address PlannedReplay::occupy(const Event& event) noexcept {
  Slot& slot = slots_[event.slot];
  ASHLAR_ASSERT(slot.flags == 0, "R1: planned memory is given out twice");
  slot.size = event.size;
  slot.allocation = event.allocation;
  slot.flags = kLive;
  ++live_;
  ++counts_.served;
  return base_ + event.offset;
}

/// Rules (2) and (3). Null: the allocation goes upstream.
Address PlannedReplay::place(Bytes size) noexcept {
  const std::size_t found = match(size);
  if (events_[found].is_end()) {
    const bool is_over =
        std::none_of(events_.begin() + static_cast<std::ptrdiff_t>(cursor_), events_.end(),
                     [](const Event& event) { return event.is_allocation(); });
    ++(is_over ? counts_.past_end : counts_.unexpected_size);
    return Address{};
  }
  pass_over(found);
  cursor_ = found + 1;
  const Event& event = events_[found];
  if (event.slot == kNoSlot) {
    ++counts_.unmanaged;
  } else if (base_.is_null()) {
    ++counts_.no_segment;
  } else if (is_barred(event)) {
    ++counts_.in_use;
  } else {
    return occupy(event);
  }
  return Address{};
}

/// The event that rule (2) matches with an allocation of this size, or the end.
std::size_t PlannedReplay::match(Bytes size) const noexcept {
  unsigned seen = 0;
  std::size_t e = cursor_;
  for (; !events_[e].is_end() && seen < kReplayLookAhead; ++e) {
    if (!events_[e].is_allocation()) continue;
    if (events_[e].size == size) return e;
    ++seen;
  }
  return events_.size() - 1;
}

void PlannedReplay::pass_over(std::size_t end) noexcept {
  for (std::size_t e = cursor_; e < end; ++e) {
    const Event& event = events_[e];
    if (event.is_allocation()) {
      ++counts_.skipped;
    } else if (is_on_time(event)) {
      slots_[event.slot].flags |= kLate;
      barred_.insert(event.slot);
      ++counts_.late;
    }
  }
}

bool PlannedReplay::is_barred(const Event& event) const noexcept {
  if (barred_.is_empty()) return false;
  const std::uint32_t below = barred_.at_or_below(event.slot);
  if (below != kNoSlot && slots_[below].offset + slots_[below].size > event.offset) return true;
  const std::uint32_t above = barred_.above(event.slot);
  return above != kNoSlot && slots_[above].offset < event.offset + event.size;
}

Status PlannedReplay::free(Address address) noexcept {
  if (address.is_null()) return Status::ok();
  {
    const Guard guard(lock_);
    const Event& next = events_[cursor_];
    if (next.slot != kNoSlot && !next.is_allocation() && address == base_ + next.offset) {
      Slot& slot = slots_[next.slot];
      if (slot.flags == kLive) [[likely]] {
        ASHLAR_ASSERT(slot.allocation == next.allocation,
                      "R1: two allocations at one offset, both on time");
        slot.flags = 0;
        --live_;
        ++cursor_;
        return Status::ok();
      }
    }
    if (contains(address)) {
      Status refusal;
      Slot* const slot = live_at(address, &refusal);
      if (slot == nullptr) return refusal;
      end_life(*slot);
      return Status::ok();
    }
    ++counts_.passed_on;
  }
  return upstream_.free(address);
}

/// The slot of the live memory that begins at the address; if there is none, null, and `*refusal`
/// says why.
/// REQUIRES: contains(address).
PlannedReplay::Slot* PlannedReplay::live_at(Address address, Status* refusal) noexcept {
  const Bytes offset = address < base_ ? plan::kNowhere : address - base_;
  const auto slot =
      std::lower_bound(slots_.begin(), slots_.end(), offset,
                       [](const Slot& one, Bytes wanted) { return one.offset < wanted; });
  const std::uint8_t flags =
      slot == slots_.end() || slot->offset != offset ? std::uint8_t{0} : slot->flags;
  if ((flags & kLive) != 0) return &*slot;
  ++counts_.refused;
  *refusal = flags == kHeld
                 ? Status{Code::kDoubleFree, "already freed; another stream may still use it"}
                 : Status{Code::kUnknownPointer, "no live planned memory begins there"};
  return nullptr;
}

/// Rules (4) and (5).
void PlannedReplay::end_life(Slot& slot) noexcept {
  const auto index = static_cast<std::uint32_t>(&slot - slots_.data());
  if ((slot.flags & kLate) == 0) {
    while (!events_[cursor_].is_end() && !events_[cursor_].is_allocation() &&
           !is_on_time(events_[cursor_]))
      ++cursor_;
    const Event& next = events_[cursor_];
    const bool is_next =
        !next.is_end() && !next.is_allocation() && next.allocation == slot.allocation;
    if (is_next) {
      ++cursor_;
    } else {
      ++counts_.early_frees;
    }
  } else if ((slot.flags & kUsed) == 0) {
    barred_.erase(index);
  }
  if ((slot.flags & kUsed) != 0) {
    if ((slot.flags & kLate) == 0) barred_.insert(index);
    slot.flags = kHeld;
    ++held_;
  } else {
    slot.flags = 0;
  }
  --live_;
}

Status PlannedReplay::record_use(Address address, const Stream& stream) noexcept {
  Slot* slot = nullptr;
  std::uint8_t before = 0;
  Address segment;
  {
    const Guard guard(lock_);
    segment = segment_;
    if (contains(address)) {
      Status refusal;
      slot = live_at(address, &refusal);
      if (slot == nullptr) return refusal;
      if (is_same_stream(stream, stream_)) return Status::ok();
      before = slot->flags;
      slot->flags |= kUsed;
    } else {
      ++counts_.passed_on;
    }
  }
  if (slot == nullptr) return upstream_.record_use(address, stream);
  const Status status = upstream_.record_use(segment, stream);
  const Guard guard(lock_);
  if (status.is_ok()) {
    ++counts_.uses;
  } else {
    slot->flags = before;
  }
  return status;
}

bool PlannedReplay::owns(Address address) const noexcept {
  const Guard guard(lock_);
  return contains(address);
}

Status PlannedReplay::rewind() noexcept {
  {
    const Guard guard(lock_);
    pass_over(events_.size() - 1);  // memory that is still live becomes late
    cursor_ = 0;
    if (live_ != 0 || (held_ == 0 && !base_.is_null())) return Status::ok();
  }
  return renew_segment();
}

Status PlannedReplay::renew_segment() noexcept {
  if (segment_size_ == Bytes{}) return Status::ok();
  Address old;
  {
    const Guard guard(lock_);
    old = segment_;
    adopt_segment(Address{});
  }
  if (!old.is_null()) {
    if (const Status status = upstream_.free(old); !status.is_ok()) {
      const Guard guard(lock_);
      segment_ = old;  // still ours, with its held bytes; nothing is served from it
      return status;
    }
  }
  const Result<Address> segment = upstream_.allocate(segment_size_, stream_);
  if (!segment.is_ok()) return segment.status();
  const Guard guard(lock_);
  adopt_segment(segment.value());
  return Status::ok();
}

/// Makes `segment`, or null, the segment: nothing in it is live or held.
void PlannedReplay::adopt_segment(Address segment) noexcept {
  segment_ = segment;
  base_ = segment.is_null()
              ? segment
              : Address{round_down(Bytes{segment.value()} + alignment_, alignment_).count()};
  if (held_ != 0) {
    for (std::uint32_t s = 0; s < slots_.size(); ++s) {
      if (slots_[s].flags != kHeld) continue;
      slots_[s].flags = 0;
      barred_.erase(s);
    }
    held_ = 0;
  }
}

ReplayCounts PlannedReplay::counts() const noexcept {
  const Guard guard(lock_);
  return counts_;
}

std::uint64_t PlannedReplay::live() const noexcept {
  const Guard guard(lock_);
  return live_;
}

Address PlannedReplay::base() const noexcept {
  const Guard guard(lock_);
  return base_;
}

}  // namespace ashlar::inline v0::replay
