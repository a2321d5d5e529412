// The one implementation of Replay: the sequence of recorded events, and a cursor.
//
// Thread safety and invariants: replay.h. The rule that decides each request: replay_rule.h.
#pragma once

#include <cstdint>
#include <vector>

#include <ashlar/base/spin_lock.h>
#include <ashlar/replay/replay.h>
#include <ashlar/replay/replay_rule.h>
#include <ashlar/replay/slot_set.h>

namespace ashlar::inline v0::replay {

class PlannedReplay final : public Replay {
 public:
  /// REQUIRES: the arguments passed Replay::create()'s checks. Throws std::bad_alloc.
  PlannedReplay(Upstream& upstream, const Stream& stream, const Recording& recording,
                const plan::Plan& plan, Bytes alignment);
  /// Gives the segment back, unless planned memory is still live in it.
  ~PlannedReplay() override;
  PlannedReplay(const PlannedReplay&) = delete;
  PlannedReplay& operator=(const PlannedReplay&) = delete;

  Result<Address> allocate(Bytes size, const Stream& stream) noexcept override;
  Status free(Address address) noexcept override;
  Status record_use(Address address, const Stream& stream) noexcept override;
  bool owns(Address address) const noexcept override;
  Status rewind() noexcept override;
  ReplayCounts counts() const noexcept override;
  std::uint64_t live() const noexcept override;
  Address base() const noexcept override;
  Bytes segment_size() const noexcept override { return segment_size_; }

  /// Gives the segment back, if there is one, and asks upstream for another. REQUIRES: no planned
  /// memory is live.
  Status renew_segment() noexcept ASHLAR_EXCLUDES(lock_);

 private:
  static constexpr std::uint32_t kNoSlot = SlotSet::kNone;
  enum Flag : std::uint8_t { kLive = 1, kLate = 2, kUsed = 4, kHeld = 8 };

  struct Event {
    // Of an allocation; zero for a free, and for the end, which is behind the last event.
    Bytes size;
    Bytes offset;
    std::uint32_t slot = kNoSlot;  // none: an unmanaged allocation, or the end
    std::uint32_t allocation = 0;
    bool is_allocation() const { return size != Bytes{}; }
    bool is_end() const { return size == Bytes{} && slot == kNoSlot; }
  };
  /// A planned offset, and the allocation that is there now. Slots are numbered in order of their
  /// offsets. A slot has one allocation at a time, because all its allocations share their first
  /// byte.
  struct Slot {
    Bytes offset;
    Bytes size;
    std::uint32_t allocation = 0;
    std::uint8_t flags = 0;
  };

  bool contains(Address address) const noexcept ASHLAR_REQUIRES(lock_);
  bool is_on_time(const Event& free) const noexcept ASHLAR_REQUIRES(lock_);
  Address occupy(const Event& event) noexcept ASHLAR_REQUIRES(lock_);
  Address place(Bytes size) noexcept ASHLAR_REQUIRES(lock_);
  std::size_t match(Bytes size) const noexcept ASHLAR_REQUIRES(lock_);
  void pass_over(std::size_t end) noexcept ASHLAR_REQUIRES(lock_);
  bool is_barred(const Event& event) const noexcept ASHLAR_REQUIRES(lock_);
  Slot* live_at(Address address, Status* refusal) noexcept ASHLAR_REQUIRES(lock_);
  void end_life(Slot& slot) noexcept ASHLAR_REQUIRES(lock_);
  void adopt_segment(Address segment) noexcept ASHLAR_REQUIRES(lock_);

  Upstream& upstream_;
  const Stream stream_;
  const Bytes alignment_;
  const Bytes segment_size_;
  mutable SpinLock lock_;
  Address segment_ ASHLAR_GUARDED_BY(lock_);
  Address base_ ASHLAR_GUARDED_BY(lock_);
  std::vector<Event> events_ ASHLAR_GUARDED_BY(lock_);
  std::size_t cursor_ ASHLAR_GUARDED_BY(lock_) = 0;
  std::vector<Slot> slots_ ASHLAR_GUARDED_BY(lock_);
  SlotSet barred_ ASHLAR_GUARDED_BY(lock_);          // slots whose bytes are late or held
  std::uint64_t live_ ASHLAR_GUARDED_BY(lock_) = 0;  // allocations in the segment
  std::uint64_t held_ ASHLAR_GUARDED_BY(lock_) = 0;  // slots
  ReplayCounts counts_ ASHLAR_GUARDED_BY(lock_);
};

}  // namespace ashlar::inline v0::replay
