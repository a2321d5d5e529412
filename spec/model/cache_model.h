// The caching allocator's model: a relation that judges each answer of a subject by the contract's
// clauses and follows it.
//
// Purpose: it decides by itself what is legal, when failing is allowed and what every statistic
// must be; which block is given out it learns from the subject. It keeps no free index and no queue
// of its own. This is the driver: it takes the calls in order, keeps the books, and has each clause
// judged where it applies. What it knows: cache_state.h; the clauses: cache_clauses.h and
// map_clauses.h.
// Thread safety: none; for one thread.
//
// Invariants:
//   (1) Between calls the books of a device hold exactly the subject's live and pending blocks
//       (device_books.h).
//   (2) A device's `map.view` is the snapshot after the last call on it, when `map.is_fresh`.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "spec/model/cache_state.h"
#include "spec/model/walk_schedule.h"

namespace ashlar::spec {

class CacheModel {
 public:
  struct Options {
    /// Every so many calls the whole map is walked; 1 = always.
    std::uint32_t walk_every = 1;
    /// Every so many walks the subject's own validate() runs too (C5): it costs far more than the
    /// walk.
    std::uint32_t validate_every = 256;
    /// Every so many calls the statistics are read (C15); 1 = always. They are totals, so that what
    /// one call miscounts stays wrong.
    std::uint32_t stats_every = 1;
    WalkerFactory walker = make_incremental_walker;
    /// What the subject was asked for; empty: what it says itself.
    std::optional<cache::Config> settings;
    /// How often the host has refused the subject memory so far; empty if it never does.
    HostRefusalCount host_refusals;
    /// The growth devices that memory pools of each device may have; empty: none.
    std::vector<const GrowthSource*> sources;
  };

  CacheModel(CacheSubject& subject, const std::vector<DeviceWitness*>& witnesses,
             const Options& options);

  const Verdict& verdict() const { return state_.verdict; }
  /// For the lockstep driver's own findings: the first report wins.
  template <class... Parts>
  void report(const char* clause, const Parts&... parts) {
    state_.verdict.report(clause, parts...);
  }

  // The protocol: begin, the subject's call, then the judgement of its answer.
  /// A call on that device begins.
  /// `is_quiet`: all work of every device is known to be done now; asked for by C27 and C28.
  void begin(DeviceId device, bool is_quiet = false);
  void judge_allocate(std::uint64_t tag, std::uint64_t size, const Stream& stream,
                      const Result<Address>& got, const cache::OutOfMemory& account);
  /// `stream`, if given, is free_on's. Any address: the model knows what it is.
  void judge_free(std::uint64_t address, const Stream* stream, Status got);
  void judge_use(std::uint64_t address, const Stream& stream, Status got);
  void judge_trim(Status got);
  /// `is_known`: the subject has served the stream an allocation.
  void judge_retire(const Stream& stream, bool is_known, Status got);
  /// `joined`: a stream whose capture it joins, or null.
  void judge_begin_capture(const Stream& stream, Status got, const Stream* joined = nullptr);
  /// Of a capture, or of a body.
  void judge_end_capture(const Stream& stream, Status got);
  /// A call that named a dead stream, and had to be refused as `expected`.
  void judge_named_dead(Status got, Code expected);
  void judge_reset_peaks(Status got);
  void judge_reset_totals(Status got);
  void judge_largest(const Stream& stream, const Result<Bytes>& got);

  // What the world tells.
  /// Of the device: its capacity; and how much is in use, the driver's pool included, before an allocation is judged that
  /// found no memory.
  MemoryBounds& memory(DeviceId device) { return state_.at(device).memory; }
  /// Streams that end without a word to the subject, and threads' default streams.
  StreamBook& streams() { return state_.streams; }
  /// Callbacks, observers, planned failures.
  WorldState& told() { return state_.world; }

  // Queries.
  const OwnedBlock* find_live(DeviceId device, std::uint64_t address) const {
    return state_.at(device).books.find_live(address);
  }
  bool is_live_anywhere(std::uint64_t address) const;
  std::uint64_t live_count() const;
  /// Held from the device now.
  std::uint64_t reserved_bytes(DeviceId device) const {
    return state_.at(device).ledger.witness().reserved_bytes();
  }
  /// Replaces `*addresses`, in order.
  void live_addresses(DeviceId device, std::vector<std::uint64_t>* addresses) const;
  /// What ended the device, or kOk.
  Code end_of(DeviceId device) const;
  std::uint64_t address_hash() const { return state_.address_hash.value(); }
  /// Calls judged and walks made.
  const WalkSchedule& schedule() const { return schedule_; }
  /// All that is known of a device: for reports and other checkers.
  const JudgedDevice& device(DeviceId id) const { return state_.at(id); }

  // Beside the calls.
  /// After everything was freed, drained and trimmed: C14's last part, per device.
  void judge_empty(DeviceId id);
  /// The subject's own walk over all its structures, now (C5).
  void judge_structure();
  /// Every device's whole map and statistics, now, except where the last call had them judged.
  void judge_maps();
  /// From here to resume_walks() calls are judged by their answers alone: for the frees that end a
  /// world.
  void defer_walks() { schedule_.set_deferring(true); }
  /// judge_maps(). From then on peaks are not judged, since no walk saw them change.
  void resume_walks();

 private:
  friend class PinAnswers;
  friend class BodyAnswers;
  friend class PoolAnswers;
  friend class CheckpointAnswers;
  friend class ReserveAnswers;
  friend class ProcessAnswers;
  friend class HistoryAnswers;
  JudgedDevice& current() { return state_.at(current_); }
  void end(JudgedDevice& device, JudgedCall call);
  void walk(JudgedDevice& device, bool is_whole = false);
  void refresh_map(JudgedDevice& device);
  void judge_served(JudgedDevice& device, std::uint64_t tag, std::uint64_t size,
                    const Stream& named, const Stream& stream, const Result<Address>& got,
                    const cache::OutOfMemory& account, JudgedCall call);
  void judge_refused(JudgedDevice& device, Status got, Code first, Code second, const char* what);
  void note_use(OwnedBlock* block, const Stream& stream) const;
  OwnedBlock* find_owned(std::uint64_t address, JudgedDevice** device);

  CacheState state_;
  WalkSchedule schedule_;
  DeviceId current_;  ///< of the call that is judged
};

}  // namespace ashlar::spec
