// DEV-14: the account of an out-of-memory, judged by a recount of the snapshot taken after the call
// and by a rule of its own for the advice. See cache_clauses.h.
#include <algorithm>
#include <array>

#include "spec/model/cache_clauses.h"
#include "spec/model/settings.h"

namespace ashlar::spec {

namespace {

using cache::Advice;
using cache::OutOfMemory;

/// What the snapshot holds, as the stream that asked sees it.
struct HeldRecount {
  std::uint64_t live = 0;
  std::uint64_t pending = 0;
  std::uint64_t free = 0;
  std::uint64_t splits = 0;   ///< free, in segments of more than one block
  std::uint64_t pools = 0;    ///< free, in other heaps of memory pools in use
  std::uint64_t largest = 0;  ///< free, of any stream
  std::uint64_t largest_shared =
      0;                          ///< the same, but of others' memory only what is no memory pool's
  std::uint64_t largest_own = 0;  ///< free, in the segments of the stream that asked
  std::uint64_t least_other = 0;  ///< the smallest fit in another stream's segments; 0 = none
};

void count_free(const CacheState& state, const cache::SnapshotSegment& segment, std::uint64_t size,
                std::uint64_t rounded, bool is_own, HeldRecount* held) {
  const bool is_apart = state.asked.is_pool || state.pools.is_reserved(heap_of(segment));
  held->free += size;
  if (!is_own && state.pools.is_reserved(heap_of(segment))) held->pools += size;
  if (segment.block_count > 1) held->splits += size;
  held->largest = std::max(held->largest, size);
  if (is_own || !is_apart) held->largest_shared = std::max(held->largest_shared, size);
  if (is_own) {
    held->largest_own = std::max(held->largest_own, size);
    return;
  }
  if (is_apart || segment.pool != state.rules.pool_of(rounded) || !state.rules.fits(size, rounded))
    return;
  if (held->least_other == 0 || size < held->least_other) held->least_other = size;
}

HeldRecount recount(const CacheState& state, const cache::Snapshot& map, std::uint64_t rounded,
                    const Stream& stream) {
  HeldRecount held;
  for (const cache::SnapshotSegment& segment : map.segments) {
    for (std::uint32_t i = 0; i < segment.block_count; ++i) {
      const cache::SnapshotBlock& block = map.blocks[segment.block_first + i];
      const std::uint64_t size = block.size.count();
      if (block.state == BlockState::kLive) held.live += size;
      if (block.state == BlockState::kPending) held.pending += size;
      if (block.state == BlockState::kFree)
        count_free(state, segment, size, rounded, heap_of(segment) == stream.id.value(), &held);
    }
  }
  return held;
}

/// The least and the most that the account may say is within the stream's reach. Which work is
/// known complete only the subject knows; after a wait that did not run out it is all work.
struct Reach {
  std::uint64_t least;
  std::uint64_t most;
};
Reach reach_of(const CacheState& state, const HeldRecount& held, bool is_all_known) {
  if (!state.rules.caches()) return {0, 0};
  const cache::Reuse reuse = state.rules.config().reuse;
  if (state.streams.is_capturing()) return {held.largest_own, held.largest_own};
  // A dead stream keeps nothing to itself.
  if (reuse == cache::Reuse::kOwn)
    return {held.largest_own, state.streams.any_dead() ? held.largest_shared : held.largest_own};
  if (reuse == cache::Reuse::kOrdered || is_all_known)
    return {held.largest_shared, held.largest_shared};
  return {held.largest_own, held.largest_shared};
}

/// What the driver said of the device's memory last, if it was asked during the call.
device::MemoryInfo told_in_call(const JudgedDevice& device) {
  const bool was_asked = device.ledger.calls(device::CallKind::kMemoryInfo) != 0;
  return was_asked ? device.ledger.witness().told() : device::MemoryInfo{};
}

/// The advice that is right, as bits of Advice.
unsigned right_advice(const CacheState& state, const JudgedDevice& device, const HeldRecount& held,
                      std::uint64_t rounded, const OutOfMemory& account) {
  const cache::Config& config = state.rules.config();
  unsigned right = 0;
  // What the whole device cannot hold no setting makes room for.
  const std::uint64_t whole = told_in_call(device).total.count();
  if (whole != 0 && rounded > whole) return right;
  const auto advise = [&right](Advice what) { right |= 1u << static_cast<unsigned>(what); };
  // The limit is in the way when it leaves no room and the device does.
  const std::uint64_t segment = growth_size(state, rounded);
  // Pages that the device refused are judged as figures.
  const std::uint64_t reserved = has_refused_pages(state, device)
                                     ? account.reserved.count()
                                     : device.ledger.witness().reserved_bytes();
  const std::uint64_t limit = account.limit.count();
  const bool is_at_limit =
      limit != ~std::uint64_t{0} && (reserved > limit || limit - reserved < segment);
  if (is_at_limit && told_in_call(device).free.count() >= segment) advise(Advice::kRaiseLimit);
  const std::uint64_t free = told_in_call(device).free.count();
  if (!is_at_limit && free >= segment && free - segment < config.headroom.count())
    advise(Advice::kLowerHeadroom);
  if (state.streams.is_capturing()) {
    advise(Advice::kWarmUp);
    return right;
  }
  if (config.wait_ms == 0) {
    if (held.pending != 0 || account.wait_ran_out) advise(Advice::kAllowWait);
  } else if (account.wait_ran_out && config.wait_ms != device::kWaitForever) {
    advise(Advice::kWaitLonger);
  }
  // Somebody else's block would do: the setting in the way is `reuse`.
  if (held.least_other != 0 && config.reuse == cache::Reuse::kOwn) advise(Advice::kShareComplete);
  if (held.least_other != 0 && config.reuse == cache::Reuse::kCompleted)
    advise(Advice::kShareOrdered);
  // Pieces of segments that are partly in use add up to the request, no block is as large, and the
  // largest is at most half of what is free. Small requests are cut from segments of one size.
  if (!state.rules.is_paged() && state.rules.pool_of(rounded) == PoolId::kLarge &&
      held.splits >= rounded && held.largest < rounded && held.largest <= held.free / 2) {
    const bool repeats =
        std::any_of(config.roundup_divisions.begin(), config.roundup_divisions.end(),
                    [](std::uint32_t steps) { return steps > 1; });
    if (!state.rules.has_max_split_size()) advise(Advice::kKeepWhole);
    else if (!repeats) advise(Advice::kRepeatSizes);
  }
  return right;
}

void judge_request(CacheState& state, const JudgedDevice& device, std::uint64_t size,
                   const OutOfMemory& account) {
  const std::uint64_t rounded = state.rules.rounded(size);
  if (account.requested.count() != size || account.rounded.count() != rounded ||
      account.segment.count() != growth_size(state, rounded)) {
    state.verdict.report("DEV-14", "the account misstates what was asked for");
  }
  if (account.device != device.id ||
      differing_field(account.config, state.rules.config()) != nullptr)
    state.verdict.report("DEV-14", "the account misstates the device or the configuration");
  if (device.ledger.calls(device::CallKind::kMemoryInfo) == 0 && !any_failure_but_growth(state))
    state.verdict.report("DEV-14",
                         "the account was made without a question for the device's memory");
  if (account.capturing != state.streams.is_capturing())
    state.verdict.report("DEV-14", "the account misstates whether a capture is underway");
}

/// The observers are told what the caller is told.
void judge_observed(CacheState& state, const OutOfMemory& account) {
  const OutOfMemory& told = state.world.observed;
  const auto figures = [](const OutOfMemory& of) {
    return std::array{
        of.requested,          of.rounded,      of.segment,           of.reserved, of.allocated,
        of.free_cached,        of.largest_free, of.largest_reachable, of.pending,  of.limit,
        of.device_memory.free, of.pinned};
  };
  if (state.world.shortages_observed == 0) return;  // DEV-13's to say
  if (told.device != account.device || figures(told) != figures(account) ||
      told.advice != account.advice || told.wait_ran_out != account.wait_ran_out)
    state.verdict.report("DEV-14", "an observer was told another account than the caller");
}

void judge_figure(CacheState& state, const char* what, std::uint64_t said, std::uint64_t least,
                  std::uint64_t most) {
  if (said >= least && said <= most) return;
  state.verdict.report("DEV-14", "the account says that ", what, " is ", said, ", not ", least,
                       least == most ? "" : " or more");
}

void judge_held_memory(CacheState& state, const JudgedDevice& device, const HeldRecount& held,
                       const OutOfMemory& account) {
  const auto judge = [&state](const char* what, Bytes said, std::uint64_t is) {
    judge_figure(state, what, said.count(), is, is);
  };
  // A page that the device refused, or that a capture keeps, may be mapped though no block has it.
  const std::uint64_t reserved = device.ledger.witness().reserved_bytes();
  const bool may_keep = has_refused_pages(state, device) || state.streams.is_capturing();
  judge_figure(state, "reserved", account.reserved.count(),
               may_keep && state.rules.is_paged() ? held.live + held.pending + held.free : reserved,
               reserved);
  judge("allocated", account.allocated, held.live);
  judge("pending", account.pending, held.pending);
  judge("in transfer", account.in_transfer, 0);
  judge("free", account.free_cached, held.free);
  judge("free in splits", account.free_splits, held.splits);
  judge("free in memory pools", account.free_in_pools, held.pools);
  judge("pinned", account.pinned, device.pins.memory().bytes());
  judge("the largest free block", account.largest_free, held.largest);
  judge("the fit elsewhere", account.fits_elsewhere, held.least_other);
  const bool is_all_known =
      state.rules.config().wait_ms != 0 && !account.wait_ran_out && !any_failure_but_growth(state);
  const Reach reach = reach_of(state, held, is_all_known);
  judge_figure(state, "the largest reachable block", account.largest_reachable.count(), reach.least,
               reach.most);
  const device::MemoryInfo told = told_in_call(device);
  judge("the device's free memory", account.device_memory.free, told.free.count());
  judge("the device's memory", account.device_memory.total, told.total.count());
  if (device.memory.has_limit || state.rules.config().memory_fraction >= 1)
    judge("the limit", account.limit, device.memory.limit);
}

}  // namespace

void judge_largest_free(CacheState& state, const JudgedDevice& device, const Stream& stream,
                        Bytes got) {
  const HeldRecount held = recount(state, device.map.view, 0, stream);
  const Reach reach = reach_of(state, held, false);
  if (got.count() < reach.least || got.count() > reach.most) {
    state.verdict.report("DEV-19", "the largest free block is said to be ", got.count(),
                         " bytes, must be in ", reach.least, " .. ", reach.most);
  }
}

void judge_account(CacheState& state, const JudgedDevice& device, std::uint64_t size,
                   const Stream& stream, const OutOfMemory& account) {
  judge_request(state, device, size, account);
  judge_observed(state, account);
  const std::uint32_t permitted_ms = state.rules.config().wait_ms;
  const bool ran_out = device.ledger.any_timeout() || device.ledger.elapsed_ms() >= permitted_ms;
  if (account.wait_ran_out && !ran_out && !any_failure_but_growth(state))
    state.verdict.report("C12", "the account says that a wait ran out, but none did");
  // The map is the one after the call: nothing has changed since the account was made.
  if (!device.map.is_fresh) return;
  const std::uint64_t rounded = state.rules.rounded(size);
  const HeldRecount held = recount(state, device.map.view, rounded, stream);
  judge_held_memory(state, device, held, account);
  const unsigned right = right_advice(state, device, held, rounded, account);
  if (account.advice != right) {
    state.verdict.report("DEV-14", "the account's advice is ", hex(account.advice), ", not ",
                         hex(right));
  }
}

}  // namespace ashlar::spec
