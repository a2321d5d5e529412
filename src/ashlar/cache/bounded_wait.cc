#include <ashlar/cache/bounded_wait.h>

#include <algorithm>
#include <thread>

#include <ashlar/cache/device_cache.h>
#include <ashlar/cache/nvtx_ranges.h>

namespace ashlar::inline v0::cache {

BoundedWait::BoundedWait(DeviceCache& cache, SharedState& shared, Deadline& deadline,
                         std::atomic<std::uint64_t>& waits, const StreamHeap* asking) noexcept
    : cache_(cache),
      shared_(shared),
      deadline_(deadline),
      waits_(waits),
      work_(asking != nullptr ? WaitedWork::Which::kAny : WaitedWork::Which::kEarlier,
            cache.uses().synchronizer(), asking) {}

void BoundedWait::note_unfinished() noexcept {
  work_.begin();
  was_pending_ = was_in_hand_ = false;
  for (StreamHeap& heap : cache_.heaps()) {
    const Guard guard(heap.lock);
    if (!work_.concerns(heap)) continue;
    was_in_hand_ |= heap.uses.is_in_hand();
    was_pending_ |= heap.uses.is_in_hand() || !heap.uses.is_empty();
  }
}

BoundedWait::Choice BoundedWait::oldest_of(StreamHeap& heap, const Choice& than) const noexcept {
  Choice oldest = than;
  const auto offer = [&](UseTracker& tracker, EventHandle event, std::uint64_t sequence) {
    if (sequence >= oldest.sequence || !work_.concerns(tracker.synchronizer(), sequence)) return;
    oldest = {Choice::Kind::kEvent, &tracker, event, sequence};
  };
  const StreamLife::State life = heap.life.state();
  if (life == StreamLife::State::kRetired && !heap.clock.is_all_complete())
    offer(heap.cache.uses(), heap.last_event.slot.event, heap.last_event.sequence);
  if (!heap.marks.is_empty())
    offer(heap.cache.uses(), heap.marks.oldest().slot.event, heap.marks.oldest().sequence);
  if (const UseNode* use = heap.uses.queues().oldest()) {
    StreamHeap& user = *use->user;
    const EventSlot& slot = use->has_event ? use->slot : user.last_event.slot;
    offer(user.cache.uses(), slot.event, use->sequence);
  }
  return oldest;
}

bool BoundedWait::needs(DeviceCache& device) const noexcept {
  if (work_.is_covered(device.uses().synchronizer())) return false;
  return (has_unmarked_ && &device == &cache_) ||
         shared_.unrecorded.count(cache_.id(), device.id()) != 0;
}

UseTracker* BoundedWait::next_to_synchronize() noexcept {
  const std::uint32_t devices = shared_.unrecorded.devices();
  for (std::uint32_t i = 0; i < devices; ++i) {
    synchronized_ = (synchronized_ + 1) % devices;
    DeviceCache& device = *shared_.caches[synchronized_];
    if (needs(device)) return &device.uses();
  }
  return nullptr;
}

void BoundedWait::ask_others(const UseTracker* waited_for) noexcept {
  for (std::uint32_t i = 0; i < shared_.unrecorded.devices(); ++i) {
    DeviceCache& device = *shared_.caches[i];
    if (&device.uses() == waited_for || !needs(device)) continue;
    static_cast<void>(device.uses().synchronizer().ask());
  }
}

BoundedWait::Choice BoundedWait::find_oldest() noexcept {
  Choice oldest;
  bool is_in_hand = false;
  has_unmarked_ = false;
  for (StreamHeap& heap : cache_.heaps()) {
    const Guard guard(heap.lock);
    if (!work_.concerns(heap)) continue;
    is_in_hand |= heap.uses.is_in_hand();
    oldest = oldest_of(heap, oldest);
    has_unmarked_ |= Epochs::has_unmarked(heap);
  }
  if (oldest.kind != Choice::Kind::kNothing) return oldest;
  if (is_in_hand && work_.may_wait_for_others()) return {Choice::Kind::kOtherThread, nullptr, {}};
  if (UseTracker* const next = next_to_synchronize()) return {Choice::Kind::kSynchronize, next, {}};
  return {};
}

void BoundedWait::begin_hold() noexcept {
  if (!is_holding_) shared_.event_waiters.fetch_add(1, std::memory_order_acq_rel);
  is_holding_ = true;
}

void BoundedWait::end_hold() noexcept {
  if (is_holding_) shared_.event_waiters.fetch_sub(1, std::memory_order_acq_rel);
  is_holding_ = false;
}

bool BoundedWait::choose() noexcept {
  begin_hold();  // before the event is read under its heap's lock
  choice_ = find_oldest();
  while (choice_.kind == Choice::Kind::kNothing && work_.move_border()) choice_ = find_oldest();
  if (choice_.kind == Choice::Kind::kNothing) {
    // Nothing is left to wait for; but what another thread finished after the search began has not
    // been looked at.
    return was_pending_ && work_.may_look_again();
  }
  // The event is done, as a wait found, but the sweep was refused that answer.
  if (choice_.is_same_event(done_)) deadline_.charge_ms(deadline_.slice_ms());
  if (deadline_.left_ms() != 0) return true;
  // To ask whether a device is done takes no time: once per call even where none is permitted, and
  // whatever else there is to wait for.
  if (!has_asked_) {
    if (UseTracker* const next = next_to_synchronize()) {
      choice_ = {Choice::Kind::kSynchronize, next, {}};
      return true;
    }
  }
  // The time is over, or there was none, and the search since then failed: stop. Once per call
  // there is an exception: if another thread held uses, the search could not see them.
  const bool is_held = was_in_hand_ || choice_.kind == Choice::Kind::kOtherThread;
  const bool look_again = is_held && !has_looked_again_;
  has_looked_again_ = true;
  ran_out_ = !look_again;
  if (look_again) choice_.kind = Choice::Kind::kOtherThread;
  return look_again;
}

void BoundedWait::wait() noexcept {
  if (choice_.kind == Choice::Kind::kNothing) return;
  if (choice_.kind == Choice::Kind::kOtherThread) {
    std::this_thread::yield();
    return;
  }
  const BlockingCallScope scope(shared_);
  if (!scope.is_permitted()) return;
  const NvtxRange range(SlowPath::kWait);
  has_asked_ = true;
  const bool is_event = choice_.kind == Choice::Kind::kEvent;
  ask_others(is_event ? nullptr : choice_.tracker);
  const std::uint32_t slice_ms = deadline_.slice_ms();
  const std::uint32_t limit_ms = is_event ? std::max(1u, slice_ms) : slice_ms;
  if (limit_ms != 0) waits_.fetch_add(1, std::memory_order_relaxed);
  const Status waited = is_event
                            ? choice_.tracker->driver().event_synchronize(choice_.event, limit_ms)
                            : choice_.tracker->synchronizer().run(limit_ms);
  end_hold();
  if (is_event && waited.is_ok()) done_ = choice_;
  // A refusal takes no time: without a charge the next round would be refused at once again.
  if (!waited.is_ok() && waited.code() != Code::kNotReady) deadline_.charge_ms(slice_ms);
}

}  // namespace ashlar::inline v0::cache
