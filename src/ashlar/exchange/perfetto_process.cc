#include <ashlar/exchange/perfetto_process.h>

#include <algorithm>

namespace ashlar::inline v0::exchange {
namespace {

using cache::HistoryAction;
using cache::HistoryEvent;

std::string hexadecimal(std::uint64_t number) {
  std::string digits;
  do {
    digits.insert(digits.begin(), "0123456789abcdef"[number % 16]);
    number /= 16;
  } while (number != 0);
  return "0x" + digits;
}

}  // namespace

void PerfettoProcess::write() {
  name_process();
  const auto& events = device_.history->events;
  const WindowedEvents& part = device_.events;
  take_start(part.first < part.last ? events[part.first].time_us : 0);
  for (std::size_t i = part.first; i < part.last; ++i) take(events[i]);
}

void PerfettoProcess::name_process() {
  begin_event("M", "process_name", 0, {});
  sink_.text("args");
  sink_.begin_dict();
  sink_.text("name", "device " + std::to_string(device_.device.value()));
  sink_.end_dict();
  sink_.end_dict();
}

// What is there already begins at the first event's time.
void PerfettoProcess::take_start(std::uint64_t time_us) {
  for (const auto& [base, segment] : device_.at_start.segments()) reserved_ += segment.size;
  HistoryEvent older;
  older.time_us = time_us;
  older.action = HistoryAction::kFreeRequested;  // of those that are pending
  for (const auto& [address, block] : device_.at_start.blocks()) {
    older.address = address;
    older.size = block.requested;
    older.stream = block.stream;
    older.memory_pool = block.memory_pool;
    older.context = block.context;
    allocate(older);
    if (block.is_pending) free(older);
  }
  write_memory(time_us);
  for (const auto& [pool, held] : pools_) write_pool(time_us, pool);
}

void PerfettoProcess::take(const HistoryEvent& event) {
  PoolKey pool{event.memory_pool.first, event.memory_pool.second};
  switch (event.action) {
    case HistoryAction::kAllocate: allocate(event); break;
    case HistoryAction::kFreeRequested:
    case HistoryAction::kFreeCompleted: pool = free(event); break;
    case HistoryAction::kSegmentAllocate:
    case HistoryAction::kSegmentMap: reserved_ += event.size; break;
    case HistoryAction::kSegmentFree:
    case HistoryAction::kSegmentUnmap: reserved_ -= event.size; break;
    case HistoryAction::kSnapshot: return write_instant("snapshot", event);
    case HistoryAction::kOutOfMemory: return write_instant("out of memory", event);
    case HistoryAction::kUserDefined: return write_instant(text_of(*device_.history, event), event);
  }
  write_memory(event.time_us);
  write_pool(event.time_us, pool);
}

std::string PerfettoProcess::name_of(const HistoryEvent& event) {
  const std::vector<Frame>& frames = frames_.of(event.context);
  return frames.empty() ? std::to_string(event.size.count()) + " bytes" : frames.front().name;
}

void PerfettoProcess::allocate(const HistoryEvent& event) {
  const PoolKey pool{event.memory_pool.first, event.memory_pool.second};
  Allocation allocation{next_id_++, event.size, event.stream, pool, name_of(event)};
  write_edge("b", allocation, event.address, event.time_us);
  all_.allocated += event.size;
  pools_[pool].allocated += event.size;
  allocations_.emplace(event.address, std::move(allocation));
}

// A block counts for the pool that it was allocated from, whatever pool has it later. A record that was rewound has a block for
// each free.
PerfettoProcess::PoolKey PerfettoProcess::free(const HistoryEvent& event) {
  const auto at = allocations_.find(event.address);
  const Allocation& allocation = at->second;
  const PoolKey pool = allocation.pool;
  Held& held = pools_[pool];
  if (event.action == HistoryAction::kFreeRequested) {
    write_edge("e", allocation, event.address, event.time_us);
    for (Held* counts : {&all_, &held}) {
      counts->allocated -= allocation.size;
      counts->pending += allocation.size;
    }
    return pool;
  }
  for (Held* counts : {&all_, &held}) counts->pending -= allocation.size;
  allocations_.erase(at);
  return pool;
}

void PerfettoProcess::write_memory(std::uint64_t time_us) {
  const Bytes used = all_.allocated + all_.pending;
  const std::uint64_t idle = reserved_ > used ? (reserved_ - used).count() : 0;
  write_counter("memory", time_us, all_, &idle);
}

void PerfettoProcess::write_pool(std::uint64_t time_us, PoolKey pool) {
  if (pool == PoolKey{}) return;
  write_counter("pool " + std::to_string(pool.first) + "," + std::to_string(pool.second), time_us,
                pools_[pool], nullptr);
}

void PerfettoProcess::write_counter(std::string_view name, std::uint64_t time_us, const Held& held,
                                    const std::uint64_t* idle) {
  begin_event("C", name, time_us, {});
  sink_.text("args");
  sink_.begin_dict();
  sink_.integer("allocated", held.allocated.count());
  sink_.integer("pending", held.pending.count());
  if (idle != nullptr) sink_.integer("idle", *idle);
  sink_.end_dict();
  sink_.end_dict();
}

void PerfettoProcess::write_edge(const char* phase, const Allocation& allocation, Address address,
                                 std::uint64_t time_us) {
  begin_event(phase, allocation.name, time_us, allocation.stream);
  sink_.text("cat", "allocation");
  // Of a device apart: some viewers match ids of all processes.
  sink_.text("id", std::to_string(device_.device.value()) + "." + std::to_string(allocation.id));
  if (*phase == 'b') {
    sink_.text("args");
    sink_.begin_dict();
    sink_.text("address", hexadecimal(address.value()));
    sink_.integer("bytes", allocation.size.count());
    sink_.end_dict();
  }
  sink_.end_dict();
}

void PerfettoProcess::write_instant(std::string_view name, const HistoryEvent& event) {
  begin_event("i", name, event.time_us, event.stream);
  sink_.text("s", "p");  // for the whole process
  sink_.text("args");
  sink_.begin_dict();
  sink_.integer("bytes", event.size.count());
  if (event.action == HistoryAction::kOutOfMemory)
    sink_.integer("device_free", event.device_free.count());
  sink_.end_dict();
  sink_.end_dict();
}

// The caller adds more, and ends it.
void PerfettoProcess::begin_event(const char* phase, std::string_view name, std::uint64_t time_us,
                                  StreamId stream) {
  sink_.begin_dict();
  sink_.text("ph", phase);
  sink_.text("name", name);
  sink_.integer("ts", time_us);
  sink_.integer("pid", static_cast<std::uint64_t>(device_.device.value()));
  sink_.integer("tid", stream.value());
}

}  // namespace ashlar::inline v0::exchange
