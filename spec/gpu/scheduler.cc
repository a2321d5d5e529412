#include "spec/gpu/scheduler.h"

#include <algorithm>
#include <utility>

namespace ashlar::spec {
namespace {

// Doubles a ring that holds the items numbered from..to, keeping each at its number modulo the
// size.
template <class T>
void grow_ring(std::vector<T>& ring, std::uint64_t from, std::uint64_t to) {
  std::vector<T> larger(ring.empty() ? 16 : ring.size() * 2);
  for (std::uint64_t i = from; i < to; ++i)
    larger[i & (larger.size() - 1)] = ring[i & (ring.size() - 1)];
  ring.swap(larger);
}

const char* entry_name(EntryKind kind) {
  switch (kind) {
    case EntryKind::kKernel: return "kernel";
    case EntryKind::kRecord: return "record";
    case EntryKind::kWait: return "wait";
    case EntryKind::kHost: return "host-function";
    case EntryKind::kWriteValue: return "write-value";
    case EntryKind::kWaitValue: return "wait-value";
    case EntryKind::kCollective: return "collective";
    case EntryKind::kFaulty: return "faulty";
  }
  return "unknown";
}

}  // namespace

Scheduler::Scheduler(const SimGpuOptions& options, const Memory& memory, Clocks& clocks,
                     FaultLog& faults)
    : memory_(memory),
      clocks_(clocks),
      faults_(faults),
      lost_(options.capacities.size(), 0),
      flags_(1, 1),
      rng_(options.seed ^ 0x5eed),
      queue_depth_(options.queue_depth),
      hardware_queues_(options.hardware_queues) {
  lanes_.reserve(8);
  active_.reserve(8);
}

const Scheduler*& Scheduler::in_host_function() {
  static thread_local const Scheduler* running = nullptr;
  return running;
}

std::uint32_t Scheduler::add_lane(std::uint32_t device) {
  lanes_.emplace_back().device = device;
  clocks_.add_lane();
  return static_cast<std::uint32_t>(lanes_.size() - 1);
}

std::uint64_t Scheduler::pending_on_device(std::uint32_t device) const {
  std::uint64_t sum = 0;
  for (const std::uint32_t lane : active_) {
    if (lanes_[lane].device == device) sum += pending(lane);
  }
  return sum;
}

void Scheduler::push(std::uint32_t lane, Entry entry, std::span<const Touch> touches) {
  Lane& at = lanes_[lane];
  if (at.enqueued - at.done == at.entries.size()) grow_ring(at.entries, at.done, at.enqueued);
  while (at.touches_in - at.touches_out + touches.size() > at.touches.size()) {
    grow_ring(at.touches, at.touches_out, at.touches_in);
  }
  for (const Touch& touch : touches) at.touches[at.touches_in++ & (at.touches.size() - 1)] = touch;
  entry.touches = static_cast<std::uint32_t>(touches.size());
  entry.sequence = sequence_++;
  entry.due = lag_ == SimGpu::kNoLag ? SimGpu::kNoLag : now_ + lag_;
  at.entries[at.enqueued & (at.entries.size() - 1)] = entry;
  ++at.enqueued;
  if (!at.active) {
    at.active = true;
    active_.push_back(lane);
  }
}

std::uint64_t& Scheduler::word(Address at) {
  for (Word& found : words_) {
    if (found.at == at.value()) return found.value;
  }
  words_.push_back(Word{at.value(), 0});
  return words_.back().value;
}

bool Scheduler::passes(const Entry& entry) const {
  std::uint64_t value = 0;
  for (const Word& found : words_) {
    if (found.at == entry.b) value = found.value;
  }
  switch (entry.rule) {
    // CUDA compares cyclically: (signed)(word - value) >= 0.
    case WaitRule::kGreaterOrEqual: return static_cast<std::int64_t>(value - entry.c) >= 0;
    case WaitRule::kEqual: return value == entry.c;
    case WaitRule::kAnd: return (value & entry.c) != 0;
  }
  return false;
}

// Streams that share a hardware queue issue in the order of their enqueues: the lane whose head is
// oldest.
std::uint32_t Scheduler::hardware_blocker(std::uint32_t lane) const {
  std::uint32_t oldest = lane;
  for (const std::uint32_t other : active_) {
    if (pending(other) == 0 || other % hardware_queues_ != lane % hardware_queues_) continue;
    if (lanes_[other].device != lanes_[lane].device) continue;
    if (head(lanes_[other]).sequence < head(lanes_[oldest]).sequence) oldest = other;
  }
  return oldest;
}

std::uint32_t Scheduler::members_ready(const Entry& entry) const {
  std::uint32_t ready = 0;
  for (const std::uint32_t lane : active_) {
    if (pending(lane) == 0) continue;
    const Entry& at = head(lanes_[lane]);
    if (at.kind != EntryKind::kCollective || at.a != entry.a) continue;
    if (hardware_queues_ > 0 && hardware_blocker(lane) != lane) continue;
    ++ready;
  }
  return ready;
}

bool Scheduler::runnable(std::uint32_t lane) const {
  if (pending(lane) == 0) return false;
  const Entry& entry = head(lanes_[lane]);
  if (hardware_queues_ > 0 && hardware_blocker(lane) != lane) return false;
  switch (entry.kind) {
    case EntryKind::kWait: return is_done(entry.a, entry.b);
    case EntryKind::kHost: return flags_[entry.a] != 0;
    case EntryKind::kWaitValue: return passes(entry);
    case EntryKind::kCollective: return members_ready(entry) >= entry.members;
    case EntryKind::kKernel:
    case EntryKind::kRecord:
    case EntryKind::kWriteValue:
    case EntryKind::kFaulty: return true;
  }
  return false;
}

void Scheduler::check_touch(const Touch& touch, std::uint32_t lane) {
  const Memory::Reach reach = memory_.reach(lanes_[lane].device, touch.at, touch.size);
  if (reach == Memory::Reach::kAccessible) return;
  const bool is_others = reach == Memory::Reach::kOtherDevice;
  const char* why = is_others                           ? ": memory of another device"
                    : reach == Memory::Reach::kUnmapped ? ": not mapped"
                                                        : ": mapped without access";
  faults_.report(is_others ? FaultKind::kWrongDevice : FaultKind::kTouchUnmapped,
                 is_others || touch.tag == kNoTag ? Blame::kCaller : Blame::kAllocator,
                 "a kernel of stream #", lane + 1, " touched ", touch.at.value(), " + ",
                 touch.size.count(), why);
}

void Scheduler::run_body(std::uint64_t body) {
  if (body == 0) return;
  const std::function<void()> call = std::exchange(bodies_[body - 1], {});
  in_host_function() = this;
  if (call) call();
  in_host_function() = nullptr;
}

void Scheduler::pop(std::uint32_t lane) {
  Lane& at = lanes_[lane];
  at.touches_out += head(at).touches;
  ++at.done;
  ++entries_run_;
  clocks_.finish(lane, at.done);
}

// REQUIRES: runnable(lane).
void Scheduler::finish(std::uint32_t lane) {
  const Entry entry = head(lanes_[lane]);
  switch (entry.kind) {
    case EntryKind::kKernel:
      for (std::uint32_t i = 0; i < entry.touches; ++i) {
        const Lane& at = lanes_[lane];
        check_touch(at.touches[(at.touches_out + i) & (at.touches.size() - 1)], lane);
      }
      break;
    case EntryKind::kHost: run_body(entry.b); break;
    case EntryKind::kWriteValue: word(Address{entry.b}) = entry.c; break;
    case EntryKind::kCollective: {
      // All members of the group that are at it finish together, at most as many as it has.
      std::uint32_t left = entry.members;
      pop(lane);
      --left;
      for (const std::uint32_t other : active_) {
        if (left == 0) break;
        if (other == lane || pending(other) == 0) continue;
        const Entry& at = head(lanes_[other]);
        if (at.kind != EntryKind::kCollective || at.a != entry.a) continue;
        pop(other);
        --left;
      }
      return;
    }
    case EntryKind::kFaulty: lose(lanes_[lane].device); return;
    case EntryKind::kRecord:
    case EntryKind::kWait:
    case EntryKind::kWaitValue: break;
  }
  pop(lane);
}

void Scheduler::drop_idle() {
  for (std::size_t i = 0; i < active_.size();) {
    if (pending(active_[i]) > 0) {
      ++i;
      continue;
    }
    lanes_[active_[i]].active = false;
    active_[i] = active_.back();
    active_.pop_back();
  }
}

std::uint64_t Scheduler::step(std::uint32_t lane, std::uint64_t n) {
  std::uint64_t finished = 0;
  while (finished < n && runnable(lane)) {
    finish(lane);
    ++finished;
  }
  drop_idle();
  return finished;
}

bool Scheduler::run_any() {
  drop_idle();
  if (active_.empty()) return false;
  const std::size_t start = active_.size() == 1 ? 0 : rng_.below(active_.size());
  for (std::size_t i = 0; i < active_.size(); ++i) {
    const std::uint32_t lane = active_[(start + i) % active_.size()];
    if (!runnable(lane)) continue;
    finish(lane);
    return true;
  }
  return false;
}

bool Scheduler::help(std::uint32_t lane) {
  for (std::size_t hops = 0; hops <= active_.size(); ++hops) {
    if (pending(lane) == 0) break;
    if (runnable(lane)) {
      finish(lane);
      return true;
    }
    const std::uint32_t blocker = hardware_queues_ > 0 ? hardware_blocker(lane) : lane;
    const Entry& entry = head(lanes_[lane]);
    if (blocker != lane) {
      lane = blocker;
    } else if (entry.kind == EntryKind::kWait) {
      lane = entry.a;
    } else {
      break;
    }
  }
  return run_any();
}

bool Scheduler::drain(std::uint32_t device) {
  for (;;) {
    drop_idle();
    std::uint32_t left = 0;
    bool any_left = false;
    bool ran = false;
    for (std::size_t i = 0; i < active_.size(); ++i) {
      const std::uint32_t lane = active_[i];
      if (lanes_[lane].device != device) continue;
      while (runnable(lane)) {
        finish(lane);
        ran = true;
      }
      if (pending(lane) == 0) continue;
      left = lane;
      any_left = true;
    }
    if (!any_left) break;
    if (!ran && !help(left)) return false;
  }
  drop_idle();
  return true;
}

void Scheduler::tick() {
  ++now_;
  for (bool ran = true; ran;) {
    ran = false;
    for (std::size_t i = 0; i < active_.size(); ++i) {
      const std::uint32_t lane = active_[i];
      while (pending(lane) > 0 && head(lanes_[lane]).due <= now_ && runnable(lane)) {
        finish(lane);
        ran = true;
      }
    }
  }
  drop_idle();
}

void Scheduler::drop_work(std::uint32_t device) {
  for (const std::uint32_t lane : active_) {
    Lane& at = lanes_[lane];
    if (at.device != device) continue;
    at.done = at.enqueued;
    at.touches_out = at.touches_in;
    clocks_.finish(lane, at.done);
  }
}

void Scheduler::lose(std::uint32_t device) {
  lost_[device] = 1;
  drop_work(device);
}

HostFlag Scheduler::new_flag() {
  flags_.push_back(0);
  return static_cast<HostFlag>(flags_.size() - 1);
}

void Scheduler::raise(HostFlag flag) {
  if (flag < flags_.size()) flags_[flag] = 1;
}

std::uint32_t Scheduler::add_body(std::function<void()> body) {
  bodies_.push_back(std::move(body));
  return static_cast<std::uint32_t>(bodies_.size());
}

bool Scheduler::in_flight(Address at, Bytes size) const {
  for (const std::uint32_t lane : active_) {
    const Lane& from = lanes_[lane];
    for (std::uint64_t i = from.touches_out; i < from.touches_in; ++i) {
      const Touch& touch = from.touches[i & (from.touches.size() - 1)];
      if (touch.at < at + size && at < touch.at + touch.size) return true;
    }
  }
  return false;
}

std::string Scheduler::describe() const {
  std::string text;
  for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    if (pending(lane) == 0) continue;
    text += "stream #" + std::to_string(lane + 1) + " (device " +
            std::to_string(lanes_[lane].device) + ", " + std::to_string(pending(lane)) +
            " pending): next is " + entry_name(head(lanes_[lane]).kind) + " at " +
            std::to_string(lanes_[lane].done + 1) + (runnable(lane) ? "\n" : ", blocked\n");
  }
  return text;
}

void Scheduler::queue_contents(std::vector<std::uint64_t>* out) const {
  for (const Lane& lane : lanes_) {
    out->push_back(lane.enqueued - lane.done);
    std::uint64_t touch = lane.touches_out;
    for (std::uint64_t place = lane.done; place < lane.enqueued; ++place) {
      const Entry& entry = lane.entries[place & (lane.entries.size() - 1)];
      out->push_back(static_cast<std::uint64_t>(entry.kind));
      out->push_back(entry.a);
      for (std::uint32_t i = 0; i < entry.touches; ++i, ++touch) {
        const Touch& at = lane.touches[touch & (lane.touches.size() - 1)];
        out->push_back(at.at.value());
        out->push_back(at.size.count());
      }
    }
  }
}

}  // namespace ashlar::spec
