// The caching allocator's model: a relation that judges each answer of a subject by the contract's
// clauses and follows it.
//
// Purpose: it decides by itself what is legal, when failing is allowed and what every statistic
// must be; which block is given out it learns from the subject. It knows: the live allocations and
// the frees that wait; the segments and events that the device witness saw change hands; limits and
// captures. It keeps no free index and no queue of its own.
// Thread safety: none; for one thread.
//
// Clauses (files): C1 C2 C24 C26 and rows DEV-1..4 (cache_model.cc); C16 and the other calls
// (cache_answers.cc); C3 C4 C14 C18 and the recount (cache_walk.cc);
// C5 by the subject's validate(); C12 C13 C17 (cache_judge.cc); C15 (cache_stats.cc,
// cache_ladder.cc). C6, C7 are the happens-before detector's of spec/gpu; C10 is the address hash.
//
// Invariants:
//   (1) Between calls `owned` holds exactly the subject's live and pending blocks; at a walk the
//       snapshot must say the same, and a block may vanish from `owned` only by going from pending
//       to free.
//   (2) `Device::view` is the snapshot after the last call on that device, when `is_fresh`.
//   (3) A walk judges a segment anew unless its blocks are byte for byte as at the last walk and no
//       owned block of it was touched since: then it would see what it saw. Every
//       kWholeWalkEvery-th walk judges all of them all the same.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "spec/model/cache_rules.h"
#include "spec/model/cache_subject.h"
#include "spec/model/device_witness.h"
#include "spec/model/divergence.h"
#include "spec/model/owned_blocks.h"
#include "spec/model/stat_figures.h"
#include "spec/ops/word_hash.h"

namespace ashlar::spec {

/// Some of the figures of all, small and large: bit `figure * cache::kStatPools + pool`.
using FigureSet = std::uint32_t;

/// One heap's figures at a walk: [figure][all, small, large].
struct HeapFigures {
  std::uint64_t heap = 0;  ///< identity of its stream
  std::uint64_t now[kFigures][cache::kStatPools] = {};
  /// at the walk before, of those in `changed`
  std::uint64_t before[kFigures][cache::kStatPools] = {};
  /// the peak is at least this, by what was seen after calls
  std::uint64_t peak_least[kFigures][cache::kStatPools] = {};
  /// and at most this, by what a call added
  std::uint64_t peak_most[kFigures][cache::kStatPools] = {};
  FigureSet changed = 0;     ///< between the two walks, some segment's share did
  FigureSet risen = 0;       ///< likewise, upwards
  bool has_changed = false;  ///< something came or went between the two walks
};

/// What a walk counted in one segment.
struct SegmentFigures {
  std::uint64_t count[kFigures] = {};
  std::size_t heap = 0;  ///< index into the device's heaps
};

class CacheModel {
 public:
  struct Options {
    /// Every so many calls the whole map is walked; 1 = always.
    std::uint32_t walk_every = 1;
    /// Every so many walks the subject's own validate() runs too (C5): it costs far more than the
    /// walk.
    std::uint32_t validate_every = 256;
    /// Every so many calls the statistics are read (C15); 1 = always. They are totals: what one
    /// call miscounts stays wrong.
    std::uint32_t stats_every = 1;
  };

  CacheModel(CacheSubject& subject, std::vector<DeviceWitness*> witnesses, Options options);

  const Verdict& verdict() const { return verdict_; }
  /// For the driver's own findings: the first report wins.
  template <class... Parts>
  void report(const char* clause, Parts... parts) {
    verdict_.report(clause, parts...);
  }

  // The protocol: begin, the subject's call, then the judgement of its answer.
  /// A call on that device begins.
  void begin(DeviceId device);
  void judge_allocate(std::uint64_t tag, std::uint64_t size, const Stream& stream,
                      const Result<Address>& got, const cache::OutOfMemory& account);
  /// `stream`, if given, is free_on's. Any address: the model knows what it is.
  void judge_free(std::uint64_t address, const Stream* stream, Status got);
  void judge_use(std::uint64_t address, const Stream& stream, Status got);
  void judge_trim(Status got);
  void judge_retire(const Stream& stream, Status got);
  void judge_begin_capture(const Stream& stream, Status got);
  void judge_end_capture(const Stream& stream, Status got);
  void judge_limit(std::uint64_t limit, Status got);
  void judge_reset_peaks(Status got);

  // What the world tells.
  /// The device's capacity; 0 = unlimited.
  void set_capacity(DeviceId device, std::uint64_t bytes) { at(device).capacity = bytes; }
  /// Are failures of the device planned, or may one still be in force?
  void plan_failures(bool planned) { has_planned_failures_ = planned; }
  /// A stream was destroyed without a word to the subject.
  void lost_stream(std::uint64_t stream) { lost_streams_.push_back(stream); }
  /// A user's callback begins or ends, inside a call of the subject.
  void enter_callback() {
    ++callbacks_;
    callback_ran_ = true;
  }
  void leave_callback() { --callbacks_; }
  void saw_shortage_observer() { ++shortages_observed_; }

  // Queries.
  const OwnedBlock* find_live(DeviceId device, std::uint64_t address) const;
  bool is_live_anywhere(std::uint64_t address) const;
  std::uint64_t live_count() const;
  /// Held from the device now.
  std::uint64_t reserved_bytes(DeviceId device) const {
    return devices_[index(device)].witness->segment_bytes();
  }
  /// Replaces `*addresses`, in order.
  void live_addresses(DeviceId device, std::vector<std::uint64_t>* addresses) const;
  /// What ended the device: its own loss, or the driver's unloading, which any device may have
  /// answered (D8); else kOk.
  Code end_of(DeviceId device) const;
  /// A capture on any device forbids its calls to all (CUDA's global capture mode).
  bool is_capturing() const;
  std::uint64_t address_hash() const { return address_hash_.value(); }
  std::uint64_t walks() const { return walks_; }
  std::uint64_t checks() const { return checks_; }
  /// After everything was freed, drained and trimmed: C14's last part, per device.
  void judge_empty(DeviceId device);
  /// The subject's own walk over all its structures, now (C5).
  void judge_structure();
  /// Every device's whole map and statistics, now, but where they have just been judged.
  void judge_maps();
  /// From here to resume_walks() calls are judged by their answers alone, as in a run of frees that
  /// ends a world.
  void defer_walks() { is_deferring_ = true; }
  /// Makes up for it: judge_maps(). Peaks are not judged from then on: what they did was not seen.
  void resume_walks();
  /// Live and pending blocks by address.
  const OwnedBlocks& owned(DeviceId device) const { return devices_[index(device)].owned; }
  const cache::Snapshot& view(DeviceId device) const { return devices_[index(device)].view; }

 private:
  using Blocks = OwnedBlocks;
  /// What the calls since the last walk can have raised: the peaks' upper bounds.
  struct Added {
    std::uint64_t calls = 0;
    std::uint64_t blocks[cache::kStatPools] = {};  ///< given out
    std::uint64_t bytes[cache::kStatPools] = {};
    std::uint64_t requested[cache::kStatPools] = {};
    std::uint64_t completed = 0;
    std::uint64_t completed_bytes = 0;
    std::uint64_t grants = 0;  ///< segments
    std::uint64_t granted_bytes = 0;
  };
  /// Did a call count something?
  enum class Happened : std::uint8_t { kNo, kPerhaps, kYes };
  /// A count known within bounds.
  struct Bounded {
    std::uint64_t least = 0;
    std::uint64_t most = 0;
    void add(Happened happened) {
      least += happened == Happened::kYes;
      most += happened != Happened::kNo;
    }
  };
  struct Device {
    DeviceId id;
    DeviceWitness* witness = nullptr;
    Blocks owned;
    std::uint64_t capacity = 0;
    std::uint64_t limit = ~std::uint64_t{0};
    bool has_limit = false;  ///< `limit` is in force: set, or worked out from memory_fraction
    std::vector<std::uint64_t> capturing;  ///< identities of streams whose capture was announced
    // The walk.
    cache::Snapshot view;
    cache::Snapshot next;
    std::vector<SegmentFigures> figures;  ///< of the view's segments
    /// addresses of owned blocks made, changed or dropped since the last walk
    std::vector<std::uint64_t> touched;
    bool is_fresh = false;
    std::vector<HeapFigures> heaps;
    std::uint64_t sum[kFigures][cache::kStatPools] = {};
    /// at the walk before; of segments only
    std::uint64_t sum_before[kFigures][cache::kStatPools] = {};
    bool has_segment_change = false;  ///< between the two walks
    Added added;
    std::uint64_t completed = 0;  ///< pending blocks found free during this call
    std::uint64_t completed_bytes = 0;
    // History, for C15.
    cache::DeviceStats stats;  ///< as last read
    std::uint64_t raised[kFigures][cache::kStatPools] = {};
    /// sums over the heaps; of segments, the device's own
    std::uint64_t peaks_least[kFigures][cache::kStatPools] = {};
    std::uint64_t peaks_most[kFigures][cache::kStatPools] = {};
    std::uint64_t ooms = 0;
    Bounded retries;
    Bounded steals;
    std::uint64_t live[cache::kStatPools] = {};
    std::uint64_t live_bytes[cache::kStatPools] = {};
    // At begin().
    std::uint64_t calls_in_all_before = 0;
    std::uint64_t failures_in_all_before = 0;
    DeviceWitness::Counts calls_before{};
    DeviceWitness::Counts failures_before{};
    std::uint64_t timeouts_before = 0;
    std::uint64_t reserved_before = 0;
    bool was_dead = false;
  };
  /// What the last call was, for the statistics' bounds.
  struct Call {
    bool allocates = false;
    bool fails = false;  ///< typed error: nothing may have changed
    /// an allocation, by a failing device: what it completed before that stays so (C13)
    bool is_broken_off = false;
    bool is_hit = false;
    bool takes_own_fit = false;  ///< what it was given is what its own heap had for it before
    std::uint64_t stream = 0;    ///< identity, of an allocation
    std::uint64_t address = 0;
    unsigned pool = 0;
    std::uint64_t size = 0;
    std::uint64_t requested = 0;
  };

  static constexpr std::uint64_t kWholeWalkEvery = 16;

  static std::size_t index(DeviceId device) { return static_cast<std::size_t>(device.value()); }
  Device& at(DeviceId device) { return devices_[index(device)]; }
  std::uint64_t delta(const Device& device, device::CallKind kind) const {
    return device.witness->calls_of(kind) - device.calls_before[static_cast<unsigned>(kind)];
  }
  std::uint64_t failed(const Device& device, device::CallKind kind) const {
    return device.witness->failures_of(kind) - device.failures_before[static_cast<unsigned>(kind)];
  }
  static bool is_among(const std::vector<std::uint64_t>& streams, std::uint64_t stream) {
    return std::find(streams.begin(), streams.end(), stream) != streams.end();
  }
  std::uint64_t calls_made(const Device& device) const;
  bool any_failure(const Device& device) const;
  bool any_failure_but_growth() const;
  bool is_dead_answer(Device& device, Code code);

  // cache_model.cc
  void end(Device& device, const Call& call);
  void follow(Device& device, std::uint64_t tag, std::uint64_t size, const Stream& stream,
              std::uint64_t address, Call* call);
  Result<CacheInfo> info_of(Device& device, std::uint64_t address);
  [[gnu::noinline]] void expect_misuse(Device& device, Status got, Code first, Code second,
                                       const char* what);
  void start_pending(Device& device, OwnedBlock& block);
  bool find_owned(std::uint64_t address, Device** device, Blocks::iterator* block);
  OwnedBlock& insert_owned(Device& device, std::uint64_t address);
  Blocks::iterator complete(Device& device, Blocks::iterator block);

  // cache_walk.cc
  bool walk_is_due() const {
    return !is_deferring_ &&
           (calls_judged_ % walk_every_ == 0 || (calls_judged_ + 1) % walk_every_ == 0);
  }
  bool stats_are_due() const { return !is_deferring_ && calls_judged_ % stats_every_ == 0; }
  /// How far a walk has come in the owned blocks.
  struct Place {
    Blocks::iterator owned;
    /// if not 0, `owned` is to be looked up again: all before this address are judged
    std::uint64_t passed = 0;
  };
  void walk(Device& device, bool is_whole = false);
  void walk_segments(Device& device, bool is_whole);
  void begin_recount(Device& device, bool is_whole);
  static void make_room(Device& device);
  static void recount(Device& device, PoolId pool, const std::uint64_t* counts,
                      SegmentFigures* figures);
  static void forget_segment(Device& device, const cache::SnapshotSegment& old, bool is_whole,
                             SegmentFigures* figures);
  bool is_as_before(const Device& device, std::size_t old_index,
                    const cache::SnapshotSegment& segment) const;
  Blocks::iterator& owned_at(Device& device, Place* place) const;
  void pass_owned(Device& device, std::uint64_t end, Place* place);
  void walk_segment(Device& device, const cache::SnapshotSegment& segment, Blocks::iterator* owned,
                    SegmentFigures* figures);
  void match_owned(Device& device, const cache::SnapshotSegment& segment,
                   const cache::SnapshotBlock& block, Blocks::iterator* owned);
  static std::size_t heap_of(Device& device, std::uint64_t stream);

  // cache_judge.cc
  const cache::SnapshotBlock* best_fit(const cache::Snapshot& view, std::uint64_t stream,
                                       std::uint64_t rounded) const;
  bool is_in_reach(std::uint64_t heap, const Stream& stream, bool may_wait) const;
  void judge_shortage(Device& device, std::uint64_t size, const Stream& stream,
                      const cache::OutOfMemory& account);
  void judge_calls(Device& device, std::uint64_t rounded, bool is_hit);
  std::uint64_t miss_calls_max(const Device& device, std::uint64_t segment) const;

  // cache_ladder.cc
  Happened steal_in(const Device& device, const Call& call, bool had_view) const;
  Happened retry_in(const Device& device, const Call& call) const;
  void note_ladder(Device& device, const Call& call, bool had_view);
  void settle_count(const char* name, std::uint64_t is, Bounded* count);

  // cache_stats.cc
  void judge_stats(Device& device);
  void judge_counters(Device& device, const cache::DeviceStats& stats);
  void judge_oversize(Device& device, const cache::DeviceStats& stats);
  void note_added(Device& device, const Call& call);
  void raise_bounds(Device& device);
  /// What some figures of a heap can have risen by before something left again.
  struct Rises {
    FigureSet set = 0;
    std::uint64_t by[kFigures * cache::kStatPools];  ///< of those in the set
  };
  static void note_rises(const Added& added, Rises* rises);
  static void raise_heap_bounds(Device& device, HeapFigures& heap, FigureSet figures,
                                const Rises& rises);
  void raise_segment_bounds(Device& device);
  static bool has_wrong_figure(const Device& device, const cache::DeviceStats& stats);
  void explain_figures(const Device& device, const cache::DeviceStats& stats);
  void explain_peaks(const Device& device, const cache::DeviceStats& stats);
  void expect_stat(const char* name, std::uint64_t is, std::uint64_t must);

  CacheSubject& subject_;
  CacheRules rules_;
  std::vector<Device> devices_;
  std::uint32_t walk_every_;
  std::uint32_t validate_every_;
  bool is_deferring_ = false;
  bool has_lost_peaks_ = false;  ///< calls were deferred: what the peaks did was not seen
  std::uint32_t stats_every_;
  std::vector<std::uint64_t> lost_streams_;
  /// retired while no event could be recorded: their last work is unknown
  std::vector<std::uint64_t> unmarked_streams_;
  Verdict verdict_;
  /// of the walk being made: kept, since a sanitizer prepares a place on the stack anew each time
  Rises rises_;
  DeviceId current_;
  unsigned callbacks_ = 0;     ///< running
  bool callback_ran_ = false;  ///< during this call
  bool has_planned_failures_ = false;
  /// some pending block's events could not be recorded at its free
  bool may_be_unrecorded_ = false;
  std::uint64_t shortages_ = 0;
  std::uint64_t shortages_observed_ = 0;
  std::uint64_t calls_judged_ = 0;
  std::uint64_t walks_ = 0;
  std::uint64_t checks_ = 0;
  WordHash address_hash_;
};

}  // namespace ashlar::spec
