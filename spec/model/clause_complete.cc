// C12, C22, C23, DEV-3, C10: may an allocation fail for want of memory or of addresses? Was it given the best fit?
// See cache_clauses.h.
#include <algorithm>

#include "spec/model/cache_clauses.h"

namespace ashlar::spec {

namespace {

bool may_wait(const CacheState& state) {
  return state.rules.config().wait_ms != 0 && !state.streams.is_capturing();
}

/// The number under which the book of streams keeps the end of the segment's heap: its stream's, if the heap is that
/// of a memory pool in use, because such a heap ends with its stream; else the heap's own.
std::uint64_t ends_with(const CacheState& state, const cache::SnapshotSegment& segment) {
  const std::uint64_t heap = heap_of(segment);
  return state.pools.is_reserved(heap) ? segment.stream.value() : heap;
}

/// Was all of the segment released so long ago that the call knew, without a wait, that its stream
/// is done? An earlier call recorded an event behind the release, and all work is done.
bool is_known_done(const CacheState& state, const JudgedDevice& device,
                   const cache::SnapshotSegment& segment) {
  return state.world.is_quiet && !state.streams.is_capturing() &&
         !state.streams.may_be_unmarked(ends_with(state, segment)) &&
         device.released_in(segment.ordinal) < device.releases.marked_in;
}

/// May free memory of that segment be given to `stream` now? If a memory pool is asked: its own.
bool is_in_reach(const CacheState& state, const JudgedDevice& device,
                 const cache::SnapshotSegment& segment, const Stream& stream) {
  const std::uint64_t heap = heap_of(segment);
  const cache::Reuse reuse = state.rules.config().reuse;
  if (heap == stream.id.value()) return true;
  if (state.asked.is_pool)  // the rest is judge_take_over()'s
    return segment.memory_pool == state.asked.pool && state.pools.is_reserved(heap) &&
           state.streams.is_dead(ends_with(state, segment)) && !state.streams.is_capturing() &&
           (may_wait(state) || is_known_done(state, device, segment));
  const bool overflows = state.pools.overflows(heap);
  if (overflows && segment.stream == stream.id) return !state.streams.is_capturing();
  if (state.pools.is_reserved(heap) && !overflows) return false;  // C8
  const bool is_dead = state.streams.is_retired(heap) || state.streams.is_last_work_unknown(heap);
  if ((reuse == cache::Reuse::kOwn && !is_dead) || state.streams.is_capturing()) return false;
  // Without a wait nobody can know that a heap's stream is done: an event recorded now is not done
  // at once. Nor can a dead stream be waited for whose last event was never recorded.
  return may_wait(state) || is_known_done(state, device, segment) ||
         // Another thread's default stream can neither be marked nor made to wait. What a memory pool
         // lends is complete.
         (reuse == cache::Reuse::kOrdered && !overflows && !state.streams.may_be_unmarked(heap) &&
          !state.streams.may_be_unmarked(stream.id.value()));
}

/// Which blocks the call could have taken: those that were free; and the pending ones, if it was
/// allowed to wait, or had only to ask.
struct Obtainable {
  bool pending_too = false;
  bool operator()(const cache::SnapshotBlock& block) const {
    return block.state == BlockState::kFree || (pending_too && block.state == BlockState::kPending);
  }
};

bool is_all_obtainable(const cache::Snapshot& map, const cache::SnapshotSegment& segment,
                       Obtainable is_obtainable) {
  const cache::SnapshotBlock* const blocks = map.blocks.data() + segment.block_first;
  return std::all_of(blocks, blocks + segment.block_count, is_obtainable);
}

/// The first run of obtainable blocks in the segment that fits, in bytes; 0 when none does.
std::uint64_t fitting_run(const CacheState& state, const cache::Snapshot& map,
                          const cache::SnapshotSegment& segment, std::uint64_t rounded,
                          Obtainable is_obtainable) {
  std::uint64_t run = 0;
  for (std::uint32_t i = 0; i < segment.block_count; ++i) {
    const cache::SnapshotBlock* const block = &map.blocks[segment.block_first + i];
    run = is_obtainable(*block) ? run + block->size.count() : 0;
    const bool is_end = i + 1 == segment.block_count || !is_obtainable(block[1]);
    if (is_end && state.rules.fits(run, rounded)) return run;
  }
  return 0;
}

/// C12 (a), of a memory pool that is asked: no whole segment that it may take over fits.
bool judge_take_over(CacheState& state, const JudgedDevice& device, std::uint64_t rounded) {
  if (!state.asked.is_pool || state.streams.is_capturing()) return true;
  const Obtainable is_obtainable{.pending_too = may_wait(state)};
  for (const cache::SnapshotSegment& segment : device.map.view.segments) {
    if (!may_take_over(state, segment, rounded) ||
        !is_all_obtainable(device.map.view, segment, is_obtainable) ||
        (!may_wait(state) && !is_known_done(state, device, segment)))
      continue;
    state.verdict.report("C12", "a memory pool is out of memory for ", rounded,
                         " bytes, but segment ", segment.ordinal,
                         " of a dead stream is idle, or could be waited for");
    return false;
  }
  return true;
}

/// C12 (a): no free block in reach fits.
bool judge_pools(CacheState& state, const JudgedDevice& device, std::uint64_t rounded,
                 const Stream& stream) {
  // Of other streams' heaps what has just come back carries the newest stamp: only a wait tells that
  // they are done with it.
  const Obtainable of_others{.pending_too = may_wait(state)};
  const Obtainable of_own{.pending_too = may_wait(state) || is_all_knowable(state)};
  for (const cache::SnapshotSegment& segment : device.map.view.segments) {
    if (segment.pool != state.rules.pool_of(rounded) ||
        !is_in_reach(state, device, segment, stream))
      continue;
    const bool is_own = heap_of(segment) == stream.id.value();
    const std::uint64_t run =
        fitting_run(state, device.map.view, segment, rounded, is_own ? of_own : of_others);
    if (run == 0) continue;
    state.verdict.report(is_own ? "C12" : "C23", "out of memory for ", rounded, " bytes, but ", run,
                         " are free or could be waited for in segment ", segment.ordinal,
                         is_own ? "" : " of another stream");
    return false;
  }
  return true;
}

/// Bytes of idle segments and pages that the call was allowed to give back.
std::uint64_t releasable_bytes(const CacheState& state, const JudgedDevice& device) {
  if (state.streams.is_capturing()) return 0;
  const Obtainable is_obtainable{.pending_too = may_wait(state)};
  std::uint64_t bytes = 0;
  for (const cache::SnapshotSegment& segment : device.map.view.segments) {
    if (state.pools.is_reserved(heap_of(segment))) continue;  // C8
    if (!may_wait(state) && !is_known_done(state, device, segment)) continue;
    if (is_paged(device, segment) && segment.block_count > 1) {
      bytes += whole_page_bytes(device, segment, is_obtainable.pending_too);
    } else if (may_go_back(state, device, segment) &&
               is_all_obtainable(device.map.view, segment, is_obtainable)) {
      bytes += segment.size.count();
    }
  }
  return bytes;
}

/// Bytes of the segment, as pages where it has them, that live and pending blocks keep, or that nobody may take.
std::uint64_t kept_bytes(const CacheState& state, const JudgedDevice& device,
                         const cache::SnapshotSegment& segment) {
  const cache::SnapshotBlock* const blocks = device.map.view.blocks.data() + segment.block_first;
  if (!is_paged(device, segment)) {
    const bool is_idle = is_all_obtainable(device.map.view, segment, Obtainable{}) &&
                         may_go_back(state, device, segment);
    return is_idle ? 0 : segment.size.count();
  }
  std::uint64_t mapped = 0;
  for (std::uint32_t i = 0; i < segment.block_count; ++i)
    mapped += blocks[i].state == BlockState::kUnmapped ? 0 : blocks[i].size.count();
  if (state.pools.is_reserved(heap_of(segment))) return mapped;  // C8
  return mapped - whole_page_bytes(device, segment, false);
}

/// C22: pages of free bytes are in nobody's way, where a wait for their work is permitted.
bool judge_waste(CacheState& state, const JudgedDevice& device, std::uint64_t rounded) {
  if (!state.rules.is_paged() || !may_wait(state) || state.world.has_planned_failures ||
      state.asked.has_source)
    return true;
  std::uint64_t kept = growth_size(state, rounded);
  for (const cache::SnapshotSegment& segment : device.map.view.segments)
    kept += kept_bytes(state, device, segment);
  const std::uint64_t cap = ceiling_of(state, device);
  if (kept > cap) return true;
  state.verdict.report("C22", "out of memory, but live and pending bytes keep pages of ", kept,
                       " bytes with the request's, of ", cap);
  return false;
}

/// C12 (a) of what no device can hide: the free blocks of the stream's own heap.
bool judge_own_blocks(CacheState& state, const JudgedDevice& device, std::uint64_t rounded,
                      const Stream& stream) {
  const cache::SnapshotBlock* const fit =
      best_fit(state.rules, device.map.view, stream.id.value(), rounded);
  if (fit == nullptr) return true;
  state.verdict.report("C12", "out of memory for ", rounded,
                       " bytes, but the stream's own block at ", hex(fit->address.value()),
                       " is free");
  return false;
}

/// Did the device fail in another way than by having no memory, or no addresses?
bool any_failure_but_shortage(const CacheState& state) {
  return std::any_of(state.devices.begin(), state.devices.end(), [](const JudgedDevice& each) {
    return each.ledger.failures() !=
           each.ledger.refused_growths() + each.ledger.failed(device::CallKind::kAddressReserve);
  });
}

}  // namespace

const cache::SnapshotBlock* best_fit(const CacheRules& rules, const cache::Snapshot& map,
                                     std::uint64_t stream, std::uint64_t rounded) {
  const cache::SnapshotBlock* best = nullptr;
  std::uint64_t best_ordinal = 0;
  const PoolId pool = rules.pool_of(rounded);
  for (const cache::SnapshotSegment& segment : map.segments) {
    if (heap_of(segment) != stream || segment.pool != pool) continue;
    const cache::SnapshotBlock* block = map.blocks.data() + segment.block_first;
    for (const cache::SnapshotBlock* const end = block + segment.block_count; block != end;
         ++block) {
      if (block->state != BlockState::kFree || !rules.fits(block->size.count(), rounded)) continue;
      // of equal blocks of one segment the first has the lowest offset
      const bool is_better = best == nullptr || block->size < best->size ||
                             (block->size == best->size && segment.ordinal < best_ordinal);
      if (!is_better) continue;
      best = block;
      best_ordinal = segment.ordinal;
    }
  }
  return best;
}

void judge_fit(CacheState& state, const JudgedDevice& device, const GivenPlace& given,
               std::uint64_t best_address) {
  if (best_address == 0 || given.address == best_address) return;
  const bool may_be_remembered = state.rules.is_paged() && device.ladder.was_short;
  if (may_be_remembered && device.books.was_given(given)) return;
  state.verdict.report("DEV-3", hex(best_address), " was the best fit, ", hex(given.address),
                       " was given");
}

bool may_take_over(const CacheState& state, const cache::SnapshotSegment& segment,
                   std::uint64_t rounded) {
  constexpr std::uint64_t kSegmentsKeptMax = 2;  // a pool keeps what it takes
  const std::uint64_t size = segment.size.count();
  const bool is_of_pool = state.pools.is_reserved(heap_of(segment));
  if (!is_of_pool && state.asked.has_source) return false;
  return segment.pool == state.rules.pool_of(rounded) && state.rules.fits(size, rounded) &&
         state.streams.is_dead(ends_with(state, segment)) &&
         (is_of_pool ? segment.memory_pool == state.asked.pool
                     : size <= kSegmentsKeptMax * growth_size(state, rounded));
}

std::uint64_t bytes_in_driver_pool(const CacheState& state, const JudgedDevice& device) {
  if (!state.rules.has_driver_pool()) return 0;
  const std::uint64_t in_use = device.memory.in_use;
  return in_use - std::min(in_use, device.ledger.witness().taken_bytes());
}

void judge_complete(CacheState& state, const JudgedDevice& device, std::uint64_t size,
                    const Stream& stream, bool says_wait_ran_out) {
  const std::uint64_t rounded = state.rules.rounded(size);
  if (!judge_own_blocks(state, device, rounded, stream)) return;
  // Where the device failed in another way than by having no memory, the ladder cannot be held to
  // its other rungs.
  if (any_failure_but_growth(state)) return;
  // The permitted wait ran out, and the error says so: what it might have freed in more time is
  // excused.
  const std::uint32_t permitted_ms = state.rules.config().wait_ms;
  if (permitted_ms != 0 && says_wait_ran_out && device.ledger.elapsed_ms() >= permitted_ms) return;
  if (!judge_pools(state, device, rounded, stream)) return;
  if (!judge_take_over(state, device, rounded)) return;
  if (!judge_waste(state, device, rounded)) return;
  const std::uint64_t releasable = releasable_bytes(state, device);
  // A planned failure looks like a full device, and so does a full growth device: then every idle segment must
  // have been given back.
  const bool may_look_full = state.world.has_planned_failures || state.asked.has_source;
  if (may_look_full && device.ledger.refused_growths() != 0) {
    if (releasable != 0) {
      state.verdict.report("C12", "out of memory, with ", releasable, " idle bytes not tried");
    }
    return;
  }
  const std::uint64_t need = growth_size(state, rounded);
  const std::uint64_t cap = ceiling_of(state, device);
  const DeviceWitness& witness = device.ledger.witness();
  std::uint64_t kept = witness.reserved_bytes() - releasable;
  // Pages that the device refused to take back serve pages alone, and stay with us in a capture (C9).
  if (state.streams.is_capturing() && state.asked.has_segments())
    kept += witness.taken_bytes() - witness.reserved_bytes();
  // What the driver's pool still has once it was to give back waits for work, which the call may wait for.
  const std::uint64_t in_pool = bytes_in_driver_pool(state, device);
  // A planned failure of the pool's own calls nobody sees.
  const bool may_wait =
      permitted_ms != 0 && !state.streams.is_capturing() && !state.world.has_planned_failures;
  if (in_pool != 0 && device.ledger.calls(device::CallKind::kStreamTrim) != 0 && !may_wait)
    kept += in_pool;
  if (need <= cap && kept <= cap - need) {
    state.verdict.report("C12", "out of memory, but ", need, " bytes fit: ", kept,
                         " held for good of ", cap);
  }
}

void judge_addresses(CacheState& state, const JudgedDevice& device) {
  if (state.streams.is_capturing() || any_failure_but_shortage(state)) return;
  // Where a range was to be had, another call said so.
  if (device.ledger.failed(device::CallKind::kAddressReserve) == 0 ||
      device.ledger.done(device::CallKind::kAddressReserve) != 0)
    return;
  // Or a page's creation did, by a planned failure, in a range that was taken over.
  if (state.world.has_planned_failures && device.ledger.failed(device::CallKind::kPageCreate) != 0)
    return;
  const std::uint32_t permitted_ms = state.rules.config().wait_ms;
  if (permitted_ms != 0 && device.ledger.elapsed_ms() >= permitted_ms) return;
  for (const cache::SnapshotSegment& segment : device.map.view.segments) {
    if (!is_paged(device, segment) || !may_go_back(state, device, segment)) continue;
    // Of a memory pool that was given no memory, the judge knows no heap.
    if (segment.heap != 0 && !state.pools.is_released(heap_of(segment))) continue;
    const cache::SnapshotBlock* const blocks = device.map.view.blocks.data() + segment.block_first;
    const bool is_unmapped = segment.block_count == 1 && blocks->state == BlockState::kUnmapped;
    const bool is_idle =
        std::all_of(blocks, blocks + segment.block_count, [&](const cache::SnapshotBlock& block) {
          return block.state == BlockState::kFree || block.state == BlockState::kUnmapped ||
                 (may_wait(state) && block.state == BlockState::kPending);
        });
    if (!is_unmapped && !(is_idle && (may_wait(state) || is_known_done(state, device, segment))))
      continue;
    state.verdict.report("C12", "out of addresses, but the range at ", hex(segment.base.value()),
                         " is idle, or could be waited for");
    return;
  }
}

}  // namespace ashlar::spec
