// CacheState: everything the judge of a caching allocator knows. Plain records: the clauses
// (cache_clauses.h) read them, the driver (cache_model.h) keeps them.
//
// Thread safety: none; for one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "spec/model/cache_rules.h"
#include "spec/model/cache_subject.h"
#include "spec/model/call_ledger.h"
#include "spec/model/device_books.h"
#include "spec/model/divergence.h"
#include "spec/model/graph_book.h"
#include "spec/model/history_book.h"
#include "spec/model/map_walker.h"
#include "spec/model/memory_pool_book.h"
#include "spec/model/pin_book.h"
#include "spec/model/stat_bounds.h"
#include "spec/model/stream_book.h"
#include "spec/ops/word_hash.h"

namespace ashlar::spec {

/// The snapshots of a device.
struct MapView {
  cache::Snapshot view;   ///< of the last walk
  cache::Snapshot next;   ///< between walks, the one before `view`
  bool is_fresh = false;  ///< `view` is the map after the last call on the device
};

/// What the device may hold, in bytes.
struct MemoryBounds {
  std::uint64_t capacity = 0;  ///< of the device; 0 = unlimited
  std::uint64_t limit = ~std::uint64_t{0};
  bool has_limit = false;  ///< `limit` is in force: set, or worked out from memory_fraction
  std::uint64_t in_use =
      0;  ///< as an allocation ends that found no memory: segments and pages, the driver's pool included
};

/// Did a call count something?
enum class Happened : std::uint8_t { kNo, kPerhaps, kYes };

/// A counter of the statistics, known within bounds.
struct BoundedCount {
  std::uint64_t least = 0;
  std::uint64_t most = 0;
  void add(Happened happened) {
    least += happened == Happened::kYes;
    most += happened != Happened::kNo;
  }
};

/// What calls did on the miss ladder, for C15.
struct LadderCounts {
  bool was_short = false;                ///< an allocation may have climbed to the reclaim
  bool was_surely_short_before = false;  ///< one did before the last call
  std::uint64_t ooms = 0;
  BoundedCount retries;
  BoundedCount steals;
};

/// What the plain totals were when they were last reset.
struct TotalsStart {
  DeviceWitness::Counts device_calls{};
  std::uint64_t waits = 0;     ///< of every device
  std::uint64_t segments = 0;  ///< granted and kept
  std::uint64_t oversize_allocations = 0;
  std::uint64_t oversize_segments = 0;
};

/// A call that surely made a collection (DEV-11).
struct SureCollection {
  std::uint64_t walk = 0;  ///< the one after it
  bool was_quiet = false;  ///< all work was done, and could be known so
};

/// The numbers of the walks that tell what is known of releases.
struct ReleaseWalks {
  std::vector<std::uint64_t> found_in;  ///< by a segment's ordinal: JudgedDevice::released_in()
  /// The walk after the last out-of-memory whose reclaim could mark every alive stream, or, without a cache, after
  /// the last allocation or free that could: an event that covers all releases found by earlier walks was
  /// recorded then, or before. 0 for none.
  std::uint64_t marked_in = 0;
};

struct JudgedDevice {
  JudgedDevice(DeviceId judged, DeviceWitness& witness, std::unique_ptr<MapWalker> walks)
      : id(judged), ledger(witness), walker(std::move(walks)) {}

  /// The walk that found the segment's last release; 0 for none.
  std::uint64_t released_in(std::uint64_t ordinal) const {
    return ordinal < releases.found_in.size() ? releases.found_in[ordinal] : 0;
  }

  DeviceId id;
  CallLedger ledger;
  DeviceBooks books;
  MapView map;
  Recount recount;
  std::unique_ptr<MapWalker> walker;
  StatBounds bounds;
  LadderCounts ladder;
  TotalsStart totals_start;
  MemoryBounds memory;
  PinBook pins;
  cache::DeviceStats stats;  ///< as last read
  bool was_gone = false;     ///< lost, or its driver unloaded, before the call began
  std::vector<SureCollection> collections;
  ReleaseWalks releases;
};

/// The call that is judged.
struct JudgedCall {
  bool allocates = false;
  /// An error: nothing may have changed.
  bool fails = false;
  /// It failed because the device or the host did; what it completed before that stays so (C13).
  bool is_broken_off = false;
  bool lacks_addresses = false;  ///< it answered so
  bool frees = false;            ///< it ended a live allocation
  bool is_query = false;         ///< nothing may change, whatever it answers
  /// C17, of a call that is no allocation: how many calls of all devices it may make.
  std::uint64_t device_calls_max = ~std::uint64_t{0};
  bool is_allocation = false;    ///< whatever it answered
  bool is_capture_edge = false;  ///< it begins or ends a capture
  bool is_hit = false;           ///< its heap had a fitting block before
  bool takes_own_fit = false;    ///< it was given the best of those
  std::uint64_t stream = 0;      ///< of an allocation: its heap's number (heap_of)
  /// Of an allocation: the stream that it named; of one in a body, the outermost parent.
  StreamId named;
  std::uint64_t capture =
      0;              ///< of an allocation: StreamBook::capture_of() the stream that it named
  MemoryPoolId pool;  ///< of an allocation: where it comes from
  std::uint64_t address = 0;
  std::uint64_t requested = 0;
};

/// How often the host has refused the subject memory so far.
using HostRefusalCount = std::function<std::uint64_t()>;

/// What the world tells, and what is counted over all calls.
struct WorldState {
  /// A user's callback begins or ends, inside a call of the subject.
  void enter_callback() {
    ++callbacks;
    callback_ran = true;
  }
  void leave_callback() { --callbacks; }
  /// The subject called its free-memory callback, in an allocation on that device, whether or not
  /// there was anything to do.
  void saw_callback(DeviceId device) {
    ++calls_back;
    called_back_for = device;
  }
  void saw_shortage_observer(const cache::OutOfMemory& account) {
    ++shortages_observed;
    observed = account;
  }
  /// Are failures of the device planned, or may one still be in force?
  void plan_failures(bool planned) { has_planned_failures = planned; }

  HostRefusalCount host_refusals;          ///< empty: the host never refuses
  std::uint64_t host_refusals_before = 0;  ///< when the call began
  unsigned callbacks = 0;                  ///< running, inside the call that is judged
  bool callback_ran = false;               ///< during this call, and did something
  bool observes_mappings = false;          ///< the subject has an observer of mappings
  bool has_callback = false;               ///< the subject has a free-memory callback
  unsigned calls_back = 0;                 ///< how often it called it during this call
  DeviceId called_back_for;                ///< the device that it named then
  /// Was all work of every device done when the call began?
  bool is_quiet = false;
  bool has_planned_failures = false;
  /// Some pending block may have an event that could not be recorded at its free.
  bool may_be_unrecorded = false;
  std::uint64_t shortages = 0;  ///< out-of-memory answers
  std::uint64_t shortages_observed = 0;
  cache::OutOfMemory observed;  ///< what an observer was told last
  WordHash step_addresses;      ///< C20: of the allocations since its reader began anew
};

/// The memory pool that the allocation that is judged goes to.
struct AskedPool {
  bool is_pool = false;  ///< it goes to one
  MemoryPoolId pool;
  bool is_unsplit = false;  ///< one without splits
  bool has_source = false;  ///< one with a growth device
  /// Does it go to a heap that has segments, whatever others have?
  bool has_segments() const { return is_unsplit || has_source; }
};

struct CacheState {
  CacheState(CacheSubject& judged, const cache::Config& settings)
      : subject(judged), rules(settings) {}

  CacheSubject& subject;
  CacheRules rules;
  std::vector<JudgedDevice> devices;
  std::vector<HistoryBook> histories;  ///< by device
  StreamBook streams;
  MemoryPoolBook pools;
  GraphBook graphs;
  AskedPool asked;
  WorldState world;
  Verdict verdict;
  WordHash address_hash;  ///< C10
  /// Is the map walked at every call, and was it so far? Otherwise peaks are known less well.
  bool walks_every_call = true;
  /// Are the statistics read at every call?
  bool reads_every_call = true;
  /// Calls were not walked: what the peaks did then is not known.
  bool has_lost_peaks = false;

  JudgedDevice& at(DeviceId device) { return devices[static_cast<std::size_t>(device.value())]; }
  const JudgedDevice& at(DeviceId device) const {
    return devices[static_cast<std::size_t>(device.value())];
  }
};

}  // namespace ashlar::spec
