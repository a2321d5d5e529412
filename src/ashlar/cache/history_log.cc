#include <ashlar/cache/history_log.h>

#include <algorithm>
#include <chrono>
#include <new>

#include <ashlar/base/exceptions.h>
#include <ashlar/base/step_count.h>
#include <ashlar/cache/host_refusals.h>

namespace ashlar::inline v0::cache {
namespace {

/// The most events that are copied in one hold of the lock (C31).
constexpr std::uint64_t kHistoryPerHold = 32;
/// No history has more events than this: 88 GiB of them.
constexpr std::uint64_t kEventsMax = std::uint64_t{1} << 30;

std::uint64_t microseconds_now() noexcept {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(since_1970).count();
  return static_cast<std::uint64_t>(std::max<decltype(us)>(us, 0));
}

/// False if the host has no memory.
template <class Texts>
bool append_text(std::string_view text, Texts* to) noexcept {
  return with_host_memory([&] { to->emplace_back(0, text); });
}

}  // namespace

Status HistoryLog::begin(const HistoryOptions& options) noexcept {
  ASHLAR_REQUIRE(options.events_max > 0 && options.events_max <= kEventsMax, Code::kInvalidArgument,
                 "a history keeps between 1 and 2^30 events");
  ASHLAR_REQUIRE(options.live_contexts_max <= kEventsMax, Code::kInvalidArgument,
                 "a history keeps at most 2^30 contexts");
  ASHLAR_REQUIRE(!is_on(), Code::kBusy, "the history is on already");
  std::unique_ptr<HistoryEvent[]> ring(new (std::nothrow) HistoryEvent[options.events_max]);
  if (!ring) return kShortOfHostMemory;
  LiveContexts contexts;
  if (options.recorder != nullptr && !contexts.make(options.live_contexts_max))
    return kShortOfHostMemory;
  {
    const MutexGuard texts(texts_lock_);
    texts_.clear();
    const Guard guard(lock_);
    ring_.swap(ring);
    contexts_.swap(contexts);
    capacity_ = options.events_max;
    next_ = 0;
    ++run_;
    is_whole_ = false;
  }
  recorder_.store(options.recorder, std::memory_order_release);
  free_recorder_.store(options.has_free_contexts ? options.recorder : nullptr,
                       std::memory_order_release);
  is_on_.store(true);
  return Status::ok();
}

void HistoryLog::restart() noexcept {
  const MutexGuard texts(texts_lock_);
  texts_.clear();
  const Guard guard(lock_);
  next_ = 0;
  ++run_;
  is_whole_ = true;
}

void HistoryLog::end() noexcept {
  {
    // Before the flag: who sees a change that is not noted sees the end of the run (place()).
    const Guard guard(lock_);
    ++run_;
    is_whole_ = false;
  }
  is_on_.store(false);
  recorder_.store(nullptr, std::memory_order_release);
  free_recorder_.store(nullptr, std::memory_order_release);
}

std::uint64_t HistoryLog::note(HistoryEvent event) noexcept {
  const std::uint64_t now_us = microseconds_now();
  const Guard guard(lock_);
  return append(event, now_us);
}

void HistoryLog::note_passing(std::span<const HistoryEvent> events, const StreamHeap* holder,
                              std::atomic<const StreamHeap*>* shown_in) noexcept {
  const std::uint64_t now_us = microseconds_now();
  const Guard guard(lock_);
  for (const HistoryEvent& event : events) append(event, now_us);
  shown_in->store(holder);
}

std::uint64_t HistoryLog::append(HistoryEvent event, std::uint64_t now_us) noexcept {
  if (event.context == ContextId{}) event.context = ContextScope::current();
  count_steps(1);
  time_us_ = event.time_us = std::max(time_us_, now_us);
  event.sequence = next_;
  if (event.action == HistoryAction::kAllocate) contexts_.put(event.address, event.context);
  if (event.action == HistoryAction::kFreeCompleted) contexts_.put(event.address, ContextId{});
  ring_[next_ % capacity_] = event;
  return next_++;
}

Status HistoryLog::annotate(std::string_view text) noexcept {
  const MutexGuard texts(texts_lock_);
  ASHLAR_REQUIRE(is_on(), Code::kNotFound, "the history is off");
  if (!append_text(text, &texts_)) return kShortOfHostMemory;
  HistoryEvent event;
  event.action = HistoryAction::kUserDefined;
  texts_.back().first = note(event);
  std::uint64_t oldest_kept = 0;
  {
    const Guard guard(lock_);
    oldest_kept = oldest();
  }
  while (texts_.front().first < oldest_kept) texts_.pop_front();
  return Status::ok();
}

HistoryLog::Place HistoryLog::place() const noexcept {
  const Guard guard(lock_);
  return {run_, next_, is_whole_};
}

void HistoryLog::read(std::uint64_t first, std::uint64_t end, History* out) const {
  std::uint64_t begin = 0;
  {
    const Guard guard(lock_);
    end = std::min(end, next_);
    begin = std::min(std::max(first, oldest()), end);
  }
  out->events.resize(static_cast<std::size_t>(end - begin));
  std::uint64_t copied = end;
  while (copied > begin) {
    const Guard guard(lock_);
    begin = std::min(std::max(begin, oldest()), copied);
    for (std::uint64_t n = 0; n < kHistoryPerHold && copied > begin; ++n) {
      --copied;
      count_steps(1);
      out->events[out->events.size() - static_cast<std::size_t>(end - copied)] =
          ring_[copied % capacity_];
    }
  }
  out->events.erase(out->events.begin(),
                    out->events.end() - static_cast<std::ptrdiff_t>(end - begin));
  out->lost = begin - std::min(first, begin);
  read_texts(out);
}

void HistoryLog::read_texts(History* out) const {
  out->texts.clear();
  const MutexGuard texts(texts_lock_);
  auto at = texts_.begin();
  for (HistoryEvent& event : out->events) {
    if (event.action != HistoryAction::kUserDefined) continue;
    while (at != texts_.end() && at->first < event.sequence) ++at;
    // One that was overwritten since, and its text with it, has an empty text.
    const bool is_kept = at != texts_.end() && at->first == event.sequence;
    out->texts.push_back(is_kept ? at->second : std::string());
    event.context = ContextId{out->texts.size()};
  }
}

ContextId HistoryLog::context_of(Address address) const noexcept {
  const Guard guard(lock_);
  count_steps(1);
  return contexts_.of(address);
}

}  // namespace ashlar::inline v0::cache
