// The clauses that one call of a caching allocator is judged by, one function for each.
//
//   clause_usable.cc     C1 C2 C10 C21 DEV-1 DEV-4  what an allocation was given
//   clause_complete.cc   C12 DEV-3 C10           may it fail; is it the best fit
//   clause_account.cc    DEV-14                  the account of an out-of-memory
//   clause_room.cc       DEV-13                  what went back to make room
//   clause_host.cc       C13 C16 DEV-14          a call that the host had no memory for
//   clause_paged.cc      C1 C14 DEV-10           pages
//   clause_backing.cc    C21 DEV-24              which memory is under addresses, and stays there
//   clause_reserved.cc   DEV-11 DEV-12 DEV-23    how much may be reserved, and what goes back for it
//   clause_bounded.cc    C13 C17 C26 DEV-2       what the device was asked meanwhile
//   clause_conduct.cc    C9 C17 DEV-13 DEV-22   what no call may do, on whatever device
//   clause_uncached.cc   DEV-22                  without a cache
//   clause_returns.cc    C27 C28 C30 C32         what is complete comes back; waits end; no trace
//   clause_accounted.cc  C15 DEV-13              statistics
//   clause_ladder.cc     C15                     what an allocation did on the miss ladder
//   map_clauses.h        C3 C4 C7 C14 C18        the map
//   checkpoint_answers.h C11 DEV-9               checkpoints of memory pools
// C5 is the subject's validate(); C6 is the happens-before detector's of spec/gpu; C16 and C24 are
// judged where the answers are: cache_model.cc, cache_answers.cc.
// Thread safety: none.
#pragma once

#include <cstdint>

#include "spec/model/cache_state.h"

namespace ashlar::spec {

/// What a device without a capacity may hold.
inline constexpr std::uint64_t kAddressSpace = std::uint64_t{1} << 46;

/// The sum over all devices of what `count` says of each one's ledger.
template <class F>
std::uint64_t sum_over_devices(const CacheState& state, F&& count) {
  std::uint64_t sum = 0;
  for (const JudgedDevice& each : state.devices) sum += count(each.ledger);
  return sum;
}

/// Is the segment one free block?
inline bool is_idle(const cache::Snapshot& map, const cache::SnapshotSegment& segment) {
  return segment.block_count == 1 && map.blocks[segment.block_first].state == BlockState::kFree;
}

// Pages.

/// Did the device ever refuse to take pages back, or was it found ended (end_of()), when pages may have been on their
/// way? Then the subject may hold more than it uses.
bool has_refused_pages(const CacheState& state, const JudgedDevice& device);
/// The memory of paged segments as the map shows it. REQUIRES: a fresh map.
RangeSet shown_pages(const JudgedDevice& device);
/// C1, C14: what the map shows as memory of paged segments has pages, none of them twice, and every page
/// held is shown. REQUIRES: a fresh map.
void judge_pages(CacheState& state, const JudgedDevice& device);
/// Does its memory come page by page? With Backing::kPages a memory pool may have others.
bool is_paged(const JudgedDevice& device, const cache::SnapshotSegment& segment);
/// Bytes of whole pages in the paged segment that hold free blocks alone, and that nobody pins;
/// `pending_too`: or pending ones.
std::uint64_t whole_page_bytes(const JudgedDevice& device, const cache::SnapshotSegment& segment,
                               bool pending_too);

// Memory that stays.

/// C21, DEV-24: no call takes pinned memory away, on any device; observers of mappings
/// know of all memory that is held, where it is.
void judge_backing(CacheState& state);
/// C21: no page that is pinned at other addresses is under the range, which an allocation was given.
void judge_given_memory(CacheState& state, const JudgedDevice& device, const AddressRange& given);
/// C21, DEV-24: what is pinned is shown as memory, where blocks may have it; and what is shown is what observers
/// know of. A page that is mapped and not shown is at home elsewhere, or nowhere. REQUIRES: a fresh map.
void judge_shown_backing(CacheState& state, const JudgedDevice& device);
/// May a segment go back once it is idle: is it of no memory pool in use (C8), and nothing in it pinned (C21)?
bool may_go_back(const CacheState& state, const JudgedDevice& device,
                 const cache::SnapshotSegment& segment);

/// The most that the call that is judged asks the device for: a memory pool without splits, or with a growth
/// device, has segments.
inline std::uint64_t growth_size(const CacheState& state, std::uint64_t rounded) {
  return state.asked.has_segments() ? state.rules.plain_segment_size(rounded)
                                    : state.rules.segment_size(rounded);
}

/// DEV-10: the segment that an allocation asked for, though its heap has pages, was a first growth, or the budget
/// of pages is used up.
void judge_segment_of_pages(CacheState& state, const JudgedDevice& device, std::uint64_t rounded);
/// DEV-10: no more pages exist than the budget permits.
void judge_page_budget(CacheState& state, const JudgedDevice& device);

// What ended a device, and what failed.

/// What ended the device: its own loss, or the driver's unloading, which any device may have
/// answered (D8); else kOk.
Code end_of(const CacheState& state, const JudgedDevice& device);
/// Did a device fail a call, other than by having no memory for a segment or a page?
bool any_failure_but_growth(const CacheState& state);
/// C26: is `code` what a device that is gone answers? Reports any other answer of one that was gone
/// before the call. `user`: the stream that the call names for a use, which may be of another device
/// that is gone.
bool is_gone_answer(CacheState& state, const JudgedDevice& device, Code code,
                    const Stream* user = nullptr);

// A call that the host had no memory for.

/// Did the host refuse the subject memory during the call?
bool was_refused_by_host(const CacheState& state);
/// Is that the answer to it? Reports it (C16) where the host refused nothing.
bool is_host_refusal(CacheState& state, Code code);
/// C13, DEV-14: an allocation that answered so gave nothing back, waited for nothing, and left the
/// account as it was.
void judge_host_refusal(CacheState& state, const JudgedDevice& device, std::uint64_t rounded,
                        const cache::OutOfMemory& account);

// Memory pools.

/// C8: an allocation came from where it had to. Learns the heap that serves its stream in its pool, and
/// notes it in `call.stream`.
void follow_pool_heap(CacheState& state, const JudgedDevice& device, JudgedCall& call);
/// C8: no call takes memory from a pool in use, or from a released one before the launches of its graphs are
/// known done.
void judge_isolated(CacheState& state, const JudgedDevice& device, const JudgedCall& call,
                    bool had_view);
/// DEV-8: a memory pool with a growth device has memory of that alone, no other growth is from there, and what
/// came from there goes back there.
void judge_source(CacheState& state, const JudgedDevice& device, const JudgedCall& call);

// An allocation that succeeded.

/// C1, C2, C10, C21, DEV-1, DEV-4: follows the subject to the address it chose. The block is in the
/// books then, unless the verdict says why not.
void follow_allocation(CacheState& state, JudgedDevice& device, std::uint64_t tag,
                       std::uint64_t size, const Stream& stream, std::uint64_t address);
/// DEV-4: what was cut off a block was worth a block of its own, and all that was left. Judged where
/// the maps before and after the call are at hand.
void judge_cut(CacheState& state, const JudgedDevice& device, const JudgedCall& call,
               bool had_view);
/// DEV-3: was the allocation given the best fit, if there was one (else 0)? A heap of pages that was out of
/// memory once remembers where its blocks lay.
void judge_fit(CacheState& state, const JudgedDevice& device, const GivenPlace& given,
               std::uint64_t best_address);
/// DEV-3, C10: the smallest free block of the stream's own heap that fits, then that of the lowest
/// (segment ordinal, offset); nullptr when there is none.
const cache::SnapshotBlock* best_fit(const CacheRules& rules, const cache::Snapshot& map,
                                     std::uint64_t stream, std::uint64_t rounded);

// An allocation that failed for want of memory.

/// DEV-14: the account says what was asked for, whether a capture or a wait was in the way, and what
/// the snapshot and the device's ledger say; its advice is right.
void judge_account(CacheState& state, const JudgedDevice& device, std::uint64_t size,
                   const Stream& stream, const cache::OutOfMemory& account);
/// DEV-19: the stream could be given a free block of that size, and none larger. REQUIRES: a fresh
/// map.
void judge_largest_free(CacheState& state, const JudgedDevice& device, const Stream& stream,
                        Bytes got);
/// C12: nothing that the call was allowed to reach would have served it. The map is the one after
/// the call; blocks that a permitted wait would have completed count as free, unless the wait ran out
/// and the account says so.
void judge_complete(CacheState& state, const JudgedDevice& device, std::uint64_t size,
                    const Stream& stream, bool says_wait_ran_out);
/// C12: a call that answered out-of-addresses left no range of addresses that it was allowed to give back.
void judge_addresses(CacheState& state, const JudgedDevice& device);
/// May the memory pool that is asked take the segment over once it is idle: one that fits, of a dead stream,
/// of the same pool, or of none and not far too large?
bool may_take_over(const CacheState& state, const cache::SnapshotSegment& segment,
                   std::uint64_t rounded);

/// DEV-13: to make room no segment went back while a smaller one of that heap, idle and complete,
/// would have done. Judged where the maps before and after the call are at hand.
void judge_room(CacheState& state, const JudgedDevice& device, const JudgedCall& call,
                bool had_view);

/// DEV-13: the free-memory callbacks were called, for that device, before the device was asked for
/// memory or the call failed.
void judge_called_back(CacheState& state, const JudgedDevice& device, bool is_shortage);

// How much may be reserved.

/// The bytes that may be reserved: by the limit, and by what the headroom leaves of the device.
std::uint64_t ceiling_of(const CacheState& state, const JudgedDevice& device);
/// How much more could be reserved when the call began, for all that the judge knows: by the limit, and,
/// where there is a headroom, or pages, by what the device has. Otherwise the device says how much it has.
struct Room {
  bool is_known = false;
  std::uint64_t bytes = 0;
};
Room room_before(const CacheState& state, const JudgedDevice& device);
/// DEV-11: may an allocation collect idle segments before it grows?
bool may_collect(const CacheState& state, const JudgedDevice& device);
/// May an allocation give idle segments back before it grows: in a collection, or because nothing is cached?
bool may_give_back_first(const CacheState& state, const JudgedDevice& device);
/// DEV-11: a collection gave back enough, no more, and the oldest first. `walk`: the number of the last.
void judge_collected(CacheState& state, JudgedDevice& device, const JudgedCall& call, bool had_view,
                     std::uint64_t walk);
/// DEV-12, DEV-23: growth stays below the memory limit, and leaves the headroom.
void judge_limit(CacheState& state, JudgedDevice& device);
/// By that clause the call gave idle segments back until no more than `ceiling` bytes were reserved,
/// and no more than that. The map is fresh; `has_map_before`: so was that of before the call.
void judge_given_back(CacheState& state, const JudgedDevice& device, const char* clause,
                      std::uint64_t ceiling, bool has_map_before);

/// DEV-22, without a cache: an allocation is memory that the device gave in the call, as long as the request; and
/// after an allocation or a free nothing is kept whose work is known to be done.
void judge_uncached(CacheState& state, const JudgedDevice& device, const JudgedCall& call);

// What the device was asked.

/// C9, C17, DEV-13, DEV-22: what no call may do, on any device: see clause_conduct.cc.
void judge_conduct(CacheState& state, const JudgedDevice& device, const JudgedCall& call,
                   bool had_view);
/// C26: no device call once the device is gone.
void judge_silence(CacheState& state);
/// C13: a call that was refused made no device call, on any device, and completed nothing.
void judge_atomic(CacheState& state, const JudgedDevice& device, const JudgedCall& call,
                  bool had_view);
/// C17, DEV-2: how much an allocation asked of the device.
void judge_bounded(CacheState& state, const JudgedDevice& device, std::uint64_t rounded,
                   bool is_hit);
/// C17: how often a miss asked whether work is done.
void judge_questions(CacheState& state, const JudgedDevice& device, const JudgedCall& call);
/// C17: a call that is no allocation asks for no memory, gives none back, does not wait, and makes no
/// more device calls than it says.
void judge_short_call(CacheState& state, const JudgedCall& call);
/// C17: the device calls that a call with so many uses to record may make; `names_stream`: and it may
/// be the first call that names a stream.
std::uint64_t calls_max_of_uses(std::uint64_t uses, bool names_stream);

// Progress.

/// Can the subject know of every use and every dead stream that its work is done?
bool is_all_knowable(const CacheState& state);

/// C27: the allocation took new memory only if nothing known to be complete would have done. Judged
/// before the map is walked again.
void judge_returns(CacheState& state, const JudgedDevice& device, std::uint64_t rounded,
                   const Stream& stream);
/// C28: a trim recognises that all work is done, and says what the device refused.
void judge_recovers(CacheState& state, const JudgedDevice& device, Status got);
/// C30: an allocation waits for no longer than is permitted.
void judge_time(CacheState& state, const JudgedDevice& device);

/// C32: a call that was refused left no record of a stream. `streams_known`: as the statistics said
/// before it, where they are read at every call.
void judge_no_trace(CacheState& state, const JudgedDevice& device, const JudgedCall& call,
                    std::uint64_t streams_known);

// Statistics.

/// Did the segment change hands during the call? REQUIRES: the maps before and after it are at hand.
bool is_adopted(const JudgedDevice& device, const cache::SnapshotSegment& now);
/// Did the allocation get as far as the reclaim (a retry, in the statistics)?
Happened retry_in(const CacheState& state, const JudgedDevice& device, const JudgedCall& call);
/// What an allocation did on the miss ladder.
void count_ladder(const CacheState& state, JudgedDevice& device, const JudgedCall& call,
                  bool had_view);
/// C15, DEV-13: reads the statistics and judges them.
void judge_accounted(CacheState& state, JudgedDevice& device);
/// Totals start again, from what is held. REQUIRES: a fresh map.
void restart_totals(CacheState& state, JudgedDevice& device);

}  // namespace ashlar::spec
