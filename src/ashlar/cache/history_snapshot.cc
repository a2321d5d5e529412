#include <ashlar/cache/history_snapshot.h>

#include <algorithm>
#include <span>
#include <unordered_map>
#include <utility>

#include <ashlar/cache/noted_memory.h>
#include <ashlar/cache/queries.h>

namespace ashlar::inline v0::cache {
namespace {

/// How often a snapshot whose events were overwritten is tried again.
constexpr unsigned kTriesMax = 16;
/// Contexts by address: of the blocks as they were copied, and of the allocations in the history.
class Contexts {
 public:
  void read(const HistoryLog& log, const Snapshot& copied) {
    for (const SnapshotBlock& block : copied.blocks) {
      if (is_taken(block.state)) of_[block.address] = log.context_of(block.address);
    }
  }
  void write(const HistorySnapshot& from, std::vector<ContextId>* out) {
    for (const HistoryEvent& event : from.history.events) {
      if (event.action == HistoryAction::kAllocate) of_[event.address] = event.context;
    }
    out->clear();
    out->reserve(from.snapshot.blocks.size());
    for (const SnapshotBlock& block : from.snapshot.blocks) {
      const auto known = is_taken(block.state) ? of_.find(block.address) : of_.end();
      out->push_back(known == of_.end() ? ContextId{} : known->second);
    }
  }

 private:
  std::unordered_map<Address, ContextId> of_;
};

Bytes reserved_bytes(DeviceCache& cache) noexcept {
  DeviceStats stats;
  cache.ledger().write(&stats);
  return Bytes{stats.reserved_bytes[static_cast<unsigned>(StatPool::kAll)].current};
}

}  // namespace

void apply_events(std::span<const HistoryEvent> events, Snapshot* snapshot) {
  if (events.empty()) return;
  NotedMemory memory(*snapshot);
  for (const HistoryEvent& event : events) memory.apply(event);
  memory.write(snapshot);
}

Status write_history_snapshot(DeviceCache& cache, HistorySnapshot* out) {
  HistoryLog& log = cache.heaps().history();
  out->history = {};
  out->block_contexts.clear();
  for (unsigned tries = 0; tries < kTriesMax; ++tries) {
    const HistoryLog::Place begin = log.place();
    const Status copied = write_snapshot(cache, &out->snapshot, InTransfer::kAsNoted);
    if (!copied.is_ok() || !begin.is_whole) return copied;
    Contexts contexts;
    if (log.has_contexts()) contexts.read(log, out->snapshot);
    HistoryEvent taken;
    taken.size = reserved_bytes(cache);
    const std::uint64_t end = log.note(taken) + 1;
    log.read(0, end, &out->history);
    const std::vector<HistoryEvent>& events = out->history.events;
    // Another thread ended the history, or began another one: what was read may be of both.
    const bool is_broken_off = log.place().run != begin.run;
    if (is_broken_off) out->history = {};
    if (is_broken_off || events.empty() || events.front().sequence > begin.next) continue;
    const auto since = static_cast<std::size_t>(begin.next - events.front().sequence);
    apply_events(std::span(events).subspan(since, events.size() - since - 1), &out->snapshot);
    if (log.has_contexts()) contexts.write(*out, &out->block_contexts);
    return Status::ok();
  }
  return {Code::kBusy, "events are overwritten before a snapshot has read them; keep more"};
}

}  // namespace ashlar::inline v0::cache
