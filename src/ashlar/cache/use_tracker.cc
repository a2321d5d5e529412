#include <ashlar/cache/use_tracker.h>

#include <algorithm>
#include <array>
#include <optional>

#include <ashlar/cache/device_cache.h>

namespace ashlar::inline v0::cache {
namespace {

constexpr unsigned kQueuesPerPoll = 16;

/// Says that this thread may be recording on the stream's handle, or asking whom it names (Epochs::retire and
/// DeviceCache::quiesce wait for it).
class RecordingScope {
 public:
  explicit RecordingScope(StreamHeap& stream) noexcept
      : stream_(stream), phase_(stream.life.recorders().begin()) {}
  ~RecordingScope() { stream_.life.recorders().end(phase_); }
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;

 private:
  StreamHeap& stream_;
  const unsigned phase_;
};

}  // namespace

/// Streams on which one retry could record no event, because their handles do not name them here
/// now: their other uses need not ask again. Remembers a few, one for each remainder of an identity.
class RefusedStreams {
 public:
  bool has(const StreamHeap& stream) const noexcept { return refused_[slot_of(stream)] == &stream; }
  void add(const StreamHeap& stream) noexcept { refused_[slot_of(stream)] = &stream; }

 private:
  static constexpr std::size_t kSlots = 32;
  static std::size_t slot_of(const StreamHeap& stream) noexcept {
    return static_cast<std::size_t>(stream.stream.id.value()) % kSlots;
  }
  std::array<const StreamHeap*, kSlots> refused_{};
};

bool UseTracker::is_over(const StreamHeap& user) const noexcept {
  const UseTracker& theirs = user.cache.uses();
  return &theirs != this && theirs.is_lost();
}

Result<Stream> UseTracker::identify(StreamHandle handle) noexcept {
  // Whether a capture is announced or not: one that another library makes, and tells nobody of, must live on.
  const Result<device::CaptureStatus> asked = driver_.capture_status(handle);
  const bool captures = asked.is_ok() ? asked.value() != device::CaptureStatus::kNone
                                      : asked.code() == Code::kCaptureUnsafe;
  if (captures && !shared_.is_capturing()) met_capture_.store(true, std::memory_order_relaxed);
  if (!asked.is_ok()) return asked.status();
  ASHLAR_REQUIRE(!captures, Code::kCaptureUnsafe, "a stream that captures cannot be identified");
  return driver_.identify(handle);
}

bool UseTracker::may_record(StreamHeap& user) noexcept {
  const RecordingScope scope(user);
  return is_named(user);
}

bool UseTracker::is_named(StreamHeap& user) noexcept {
  // Under the scope: the announcement of the stream's capture is seen here, or it waits for the answer.
  if (user.life.is_capturing()) return false;
  // Ask who the handle means now: it may be the per-thread default stream's, on another thread
  // (H5), or that of a stream destroyed without an announcement, come back as another stream's (the
  // head of caching_allocator.h, (c)).
  const Result<Stream> here = identify(user.stream.handle);
  if (here.is_ok() && here.value().id == user.stream.id) return true;
  const bool is_gone =
      here.is_ok() || here.code() == Code::kInvalidHandle || here.code() == Code::kWrongDevice;
  if (is_gone && !user.stream.thread_bound) lose(user);
  return false;
}

Status UseTracker::record_on(StreamHeap& user, EventSlot& slot, bool in_capture) noexcept {
  const RecordingScope scope(user);
  const bool is_permitted = user.life.is_alive() && (in_capture || !shared_.is_capturing());
  if (!is_permitted || !is_named(user)) {
    return {Code::kNotReady, "no event may be recorded on that stream now"};
  }
  if (const Status filled = events_.fill(slot); !filled.is_ok()) return filled;
  const Status recorded = driver_.event_record(slot.event, user.stream.handle);
  if (recorded.is_ok()) return recorded;
  events_.give(slot);
  if (recorded.code() == Code::kInvalidHandle) lose(user);
  return recorded;
}

void UseTracker::lose(StreamHeap& user) noexcept {
  const std::uint64_t sequence = next_sequence();
  user.life.lose(sequence);
  // The stream's other heaps too, of memory pools. A heap that was retired in vain has none alive.
  user.cache.heaps().lose(user.stream.id, sequence);
}

bool UseTracker::ask_last_event(StreamHeap& user) noexcept {
  switch (user.life.state()) {
    case StreamLife::State::kFinished: return true;
    case StreamLife::State::kRetired:
      if (!driver_.event_query(user.last_event.slot.event).is_ok()) return false;
      break;
    case StreamLife::State::kLost:
      if (!synchronizer_.is_covered(user.life.lost_at())) return false;
      break;
    default: return false;
  }
  finish(user);
  return true;
}

void UseTracker::finish(StreamHeap& user) noexcept {
  if (!user.life.finish()) return;
  const Guard guard(user.lock);
  user.clock.complete(kEverything);
}

bool UseTracker::is_over_in_graph(const StreamHeap& heap, UseNode& node) noexcept {
  if (node.in_graph == InGraph::kNo || !heap.is_reserved()) return false;
  StreamHeap* const ended = heap.cache.uses().shared_.bodies.ended.load();
  StreamHeap* const parent = ended == nullptr ? nullptr : ended->life.parent();
  if (node.user == ended && parent != nullptr) pass_to_parent(*parent, &node);
  if (node.in_graph == InGraph::kBody) return false;
  const StreamHeap& user = *node.user;
  // As DeviceCache::record_use() had it of the body's parent.
  if (is_in_order_of(heap, user)) return true;
  // At a body's end the uses of every heap come here, also of one whose stream's handle is dead.
  if (ended != nullptr) return false;
  // A handle of a thread's default stream may name another thread's here.
  const bool is_named_here = !user.stream.thread_bound && !heap.stream.thread_bound;
  if (&user.cache != &heap.cache || !is_named_here) return false;
  Driver& driver = heap.cache.driver();
  if (node.mark.capture != 0) return driver.capture_covers(heap.stream.handle, node.mark).is_ok();
  const Result<device::CaptureMark> made = driver.capture_mark(user.stream.handle);
  if (made.is_ok()) node.mark = made.value();
  return false;
}

UseTracker::Recorded UseTracker::record_event_of(const StreamHeap& heap, UseNode& node,
                                                 RefusedStreams* refused) noexcept {
  StreamHeap& user = *node.user;
  const UseTracker& ours = heap.cache.uses();
  UseTracker& theirs = user.cache.uses();
  if (is_only_in_graph(heap, node) || is_over_in_graph(heap, node)) return Recorded::kComplete;
  const std::uint64_t first_try = node.sequence;
  const bool is_covered = first_try != 0 && theirs.synchronizer_.is_covered(first_try);
  if (is_covered || ours.is_over(user)) return Recorded::kComplete;
  node.sequence = theirs.next_sequence();
  node.prefer_event_of(theirs.events_);
  if (user.life.is_alive() && (refused == nullptr || !refused->has(user))) {
    const Status recorded = theirs.record_on(user, node.slot);
    node.has_event = recorded.is_ok();
    if (recorded.is_ok()) return Recorded::kYes;
    if (refused != nullptr && recorded.code() == Code::kNotReady) refused->add(user);
  }
  if (ours.is_over(user)) return Recorded::kComplete;
  switch (user.life.state()) {
    case StreamLife::State::kFinished: return Recorded::kComplete;
    case StreamLife::State::kRetired: return Recorded::kYes;  // the last event covers the use
    default: break;
  }
  // A later event covers the same work, and so does a synchronisation after the first try.
  if (first_try != 0) node.sequence = first_try;
  return Recorded::kDeferred;
}

bool UseTracker::ask(UseNode& node) noexcept {
  StreamHeap& user = *node.user;
  if (user.life.is_finished()) return true;
  return node.has_event ? driver_.event_query(node.slot.event).is_ok() : ask_last_event(user);
}

void UseTracker::count_unrecorded(const StreamHeap& heap, const UseNode& node, bool was,
                                  bool is) noexcept {
  if (was == is) return;
  const DeviceCache& users = node.user->cache;
  UnrecordedUses& counts = heap.cache.uses().shared_.unrecorded;
  if (is) counts.add(heap.cache.id(), users.id());
  if (was) counts.drop(heap.cache.id(), users.id());
}

void UseTracker::record_uses(StreamHeap& heap, UseNode* list, Link link, unsigned phase) noexcept {
  constexpr unsigned kBatch = 32;
  std::optional<RefusedStreams> refused;  // only a retry has many uses of few streams
  if (link == Link::kNext) refused.emplace();
  while (list != nullptr) {
    UseNode* nodes[kBatch];
    Recorded recorded[kBatch];
    unsigned n = 0;
    for (; list != nullptr && n < kBatch; ++n) {
      nodes[n] = list;
      list = link == Link::kSibling ? list->sibling : list->next;
      recorded[n] = record_event_of(heap, *nodes[n], refused ? &*refused : nullptr);
    }
    // As in a poll: the call that asks is refused.
    if (!heap.cache.driver().health().is_ok())
      std::replace(recorded, recorded + n, Recorded::kComplete, Recorded::kDeferred);
    const Guard guard(heap.lock);
    for (unsigned i = 0; i < n; ++i) {
      count_unrecorded(heap, *nodes[i], link == Link::kNext, recorded[i] == Recorded::kDeferred);
      if (recorded[i] == Recorded::kYes) heap.uses.add_queued(nodes[i]);
      if (recorded[i] == Recorded::kDeferred) heap.uses.add_unrecorded(nodes[i]);
    }
    // Last, because a block's last finished use releases it, and its other uses must be filed by
    // then.
    for (unsigned i = 0; i < n; ++i) {
      if (recorded[i] == Recorded::kComplete) heap.finish_use(nodes[i]);
    }
    if (list == nullptr) heap.uses.takers().end(phase);
  }
}

void UseTracker::free_pending(StreamHeap& heap, PoolId pool, block::BlockIndex block) noexcept {
  block::BlockPool& in = heap.pool(pool);
  in.defer(block);
  UseNode* list = StreamHeap::first_use(in.user(block));
  ASHLAR_ASSERT(list != nullptr, "heap(4): pending without a use");
  const unsigned phase = heap.uses.takers().begin();
  heap.lock.unlock();
  record_uses(heap, list, Link::kSibling, phase);
}

void UseTracker::retry_unrecorded(StreamHeap& heap, std::uint64_t n) noexcept {
  UseNode* list = nullptr;
  unsigned phase = 0;
  {
    const Guard guard(heap.lock);
    list = heap.uses.take_unrecorded(n);
    if (list == nullptr) return;
    phase = heap.uses.takers().begin();
  }
  record_uses(heap, list, Link::kNext, phase);
}

void UseTracker::ask_for_unrecorded(StreamHeap& heap, std::uint64_t at_least) noexcept {
  SharedState& shared = heap.cache.uses().shared_;
  UseTracker* theirs = nullptr;
  {
    const Guard guard(heap.lock);
    const UseNode* const oldest = heap.uses.unrecorded();
    if (oldest == nullptr) return;
    DeviceCache& asked = oldest->user->cache;
    if (shared.unrecorded.count(heap.cache.id(), asked.id()) < at_least) return;
    theirs = &asked.uses();
    if (theirs->synchronizer_.is_covered(oldest->sequence)) return;
  }
  theirs->ask_whether_done();
}

void UseTracker::ask_whether_done() noexcept {
  if (met_capture_.exchange(false, std::memory_order_relaxed)) return;
  const BlockingCallScope scope(shared_);
  if (scope.is_permitted()) static_cast<void>(synchronizer_.ask());
}

Status UseTracker::poll(StreamHeap& heap, unsigned budget) noexcept {
  PollState state;
  static_cast<void>(poll_part(heap, budget, state));
  return driver_.health();
}

bool UseTracker::poll_part(StreamHeap& heap, unsigned budget, PollState& state) noexcept {
  // is_capturing() is read under the heap's lock, and the taker begins under the same lock. quiesce()
  // takes this lock after the announcement, so it sees either the taker or no poll (C9).
  while (budget > 0 && !shared_.is_capturing()) {
    UseNode* queues[kQueuesPerPoll];
    bool done[kQueuesPerPoll] = {};
    const unsigned n = heap.uses.queues().take(queues, std::min(budget, kQueuesPerPoll));
    if (n == 0) break;
    budget -= n;
    const unsigned phase = heap.uses.takers().begin();
    heap.lock.unlock();
    for (unsigned i = 0; i < n; ++i)
      done[i] = queues[i]->user->cache.uses().ask(*queues[i]) || is_over(*queues[i]->user);
    // If an answer shows this device gone, the call is refused and completes nothing (C13).
    if (!driver_.health().is_ok()) std::fill_n(done, n, false);
    unsigned finished = 0;
    for (unsigned i = 0; i < n; ++i) {
      if (!done[i]) continue;
      // Without an event of its own the slot may hold what an earlier use left, of any device.
      if (queues[i]->has_event) queues[i]->user->cache.uses().events_.give(queues[i]->slot);
      ++finished;
    }
    heap.lock.lock();
    heap.uses.takers().end(phase);
    for (unsigned i = 0; i < n; ++i) {
      UseNode* head = queues[i];
      UseNode* rest = done[i] ? UseQueues::advance(head) : head;
      if (rest != nullptr) heap.uses.queues().put(rest);
      if (done[i]) heap.finish_use(head);
    }
    state.fruitless = finished == 0 ? state.fruitless + n : 0;
    heap.uses.note_poll(finished != 0);
    // This device's loss ends the call (C26); another's, whose stream used a block of ours, only
    // ends that use.
    if (!driver_.health().is_ok() || state.fruitless >= heap.uses.queues().count()) return false;
    if (finished >= state.finishes_max) return false;
    state.finishes_max -= finished;
  }
  return budget == 0;
}

}  // namespace ashlar::inline v0::cache
