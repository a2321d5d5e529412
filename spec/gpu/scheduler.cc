#include "spec/gpu/scheduler.h"

namespace ashlar::spec {
namespace {

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
      rng_(options.seed ^ 0x5eed),
      queue_depth_(options.queue_depth),
      hardware_queues_(options.hardware_queues) {
  lanes_.reserve(8);
  active_.reserve(8);
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
  entry.sequence = sequence_++;
  entry.due = lag_ == kNoLag ? kNoLag : now_ + lag_;
  at.queue.push(entry, touches);
  if (!at.active) {
    at.active = true;
    active_.push_back(lane);
  }
}

// The lane that may run next in this lane's hardware queue: streams that share one issue in the
// order of their enqueues, so it is the lane with the oldest head.
std::uint32_t Scheduler::hardware_blocker(std::uint32_t lane) const {
  std::uint32_t oldest = lane;
  for (const std::uint32_t other : active_) {
    if (pending(other) == 0 || other % hardware_queues_ != lane % hardware_queues_) continue;
    if (lanes_[other].device != lanes_[lane].device) continue;
    if (head(other).sequence < head(oldest).sequence) oldest = other;
  }
  return oldest;
}

std::uint32_t Scheduler::members_ready(const Entry& entry) const {
  std::uint32_t ready = 0;
  for (const std::uint32_t lane : active_) {
    if (pending(lane) == 0) continue;
    const Entry& at = head(lane);
    if (at.kind != EntryKind::kCollective || at.a != entry.a) continue;
    if (hardware_queues_ > 0 && hardware_blocker(lane) != lane) continue;
    ++ready;
  }
  return ready;
}

bool Scheduler::runnable(std::uint32_t lane) const {
  if (pending(lane) == 0) return false;
  const Entry& entry = head(lane);
  if (hardware_queues_ > 0 && hardware_blocker(lane) != lane) return false;
  switch (entry.kind) {
    case EntryKind::kWait: return is_done(entry.a, entry.b);
    case EntryKind::kHost: return host_functions_.is_raised(entry.a);
    case EntryKind::kWaitValue:
      return words_.passes(memory_.byte_at(Address{entry.b}), entry.rule, entry.c);
    case EntryKind::kCollective: return members_ready(entry) >= entry.members;
    case EntryKind::kKernel:
    case EntryKind::kRecord:
    case EntryKind::kWriteValue:
    case EntryKind::kFaulty: return true;
  }
  return false;
}

void Scheduler::check_touch(const Touch& touch, std::uint32_t lane) {
  const std::uint32_t device =
      touch.by_device < 0 ? lanes_[lane].device : static_cast<std::uint32_t>(touch.by_device);
  const Memory::Reach reach = memory_.reach(device, touch.at, touch.size);
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

void Scheduler::pop(std::uint32_t lane) {
  lanes_[lane].queue.pop();
  ++entries_run_;
  clocks_.finish(lane, lanes_[lane].queue.done());
}

// All members of the group that are at their lanes' heads finish together, at most as many as the
// group has.
void Scheduler::finish_collective(std::uint32_t lane) {
  const Entry entry = head(lane);
  pop(lane);
  std::uint32_t left = entry.members - 1;
  for (const std::uint32_t other : active_) {
    if (left == 0) break;
    if (other == lane || pending(other) == 0) continue;
    if (head(other).kind != EntryKind::kCollective || head(other).a != entry.a) continue;
    pop(other);
    --left;
  }
}

// REQUIRES: runnable(lane).
void Scheduler::finish(std::uint32_t lane) {
  const Entry entry = head(lane);
  switch (entry.kind) {
    case EntryKind::kKernel:
      for (std::uint32_t i = 0; i < entry.touches; ++i)
        check_touch(lanes_[lane].queue.touch(i), lane);
      break;
    case EntryKind::kHost: host_functions_.run(entry.b); break;
    case EntryKind::kWriteValue: words_.at(memory_.byte_at(Address{entry.b})) = entry.c; break;
    case EntryKind::kCollective: finish_collective(lane); return;
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

void Scheduler::step_each(std::uint64_t n) {
  for (; n > 0; --n) {
    bool ran = false;
    for (std::size_t i = 0; i < active_.size(); ++i) {
      if (!runnable(active_[i])) continue;
      finish(active_[i]);
      ran = true;
    }
    if (!ran) break;
  }
  drop_idle();
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
    const Entry& entry = head(lane);
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
      while (pending(lane) > 0 && head(lane).due <= now_ && runnable(lane)) {
        finish(lane);
        ran = true;
      }
    }
  }
  drop_idle();
}

void Scheduler::lose(std::uint32_t device) {
  lost_[device] = 1;
  for (const std::uint32_t lane : active_) {
    if (lanes_[lane].device != device) continue;
    lanes_[lane].queue.drop_all();
    clocks_.finish(lane, lanes_[lane].queue.done());
  }
}

bool Scheduler::in_flight(Address at, Bytes size) const {
  for (const std::uint32_t lane : active_) {
    if (lanes_[lane].queue.touches(at, size)) return true;
  }
  return false;
}

std::string Scheduler::describe() const {
  std::string text;
  for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    if (pending(lane) == 0) continue;
    text += "stream #" + std::to_string(lane + 1) + " (device " +
            std::to_string(lanes_[lane].device) + ", " + std::to_string(pending(lane)) +
            " pending): next is " + entry_name(head(lane).kind) + " at " +
            std::to_string(lanes_[lane].queue.done() + 1) + (runnable(lane) ? "\n" : ", blocked\n");
  }
  return text;
}

void Scheduler::queue_contents(std::vector<std::uint64_t>* out) const {
  for (const Lane& lane : lanes_) lane.queue.append_contents(out);
}

}  // namespace ashlar::spec
