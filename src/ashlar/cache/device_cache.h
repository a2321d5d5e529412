// One device's cache: its streams' heaps, the way of a hit, the ladder of a miss.
//
// Thread safety: any thread. Locks, in the order they may be taken: reclaim -> streams -> one
// heap's (never two at once) -> reserve / event pool. No device call and no callback under a heap's
// lock or the streams lock (C18).
//
// The files: hit_inl.h the hit and the free; device_cache.cc heaps and uses; pending.cc what waits
// for other streams; ladder.cc the miss; reclaim.cc its slow rungs (epochs, stealing, giving
// segments back); waiting.cc the bounded wait; ends.cc the ends of streams and of the allocator;
// queries.cc statistics, snapshot, validate.
//
// Invariants:
//   (1) reserved_bytes() <= the memory limit at every moment a segment is charged (row DEV-12);
//   (2) a segment is in the page map exactly while the device considers it ours and no reclaim
//       holds it;
//   (3) a block of a heap is handed to another stream only with its stamp complete, or behind a
//       wait (C6).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include <ashlar/cache/caching_allocator.h>
#include <ashlar/cache/event_pool.h>
#include <ashlar/cache/rounding.h>
#include <ashlar/cache/stream_table.h>

namespace ashlar::inline v0::cache {

/// What the devices of one allocator share.
struct SharedState {
  explicit SharedState(const Config& with) : config(with) {}
  const Config config;
  PageMap pages;
  /// of all devices: the driver's unloading is told to all at once
  Driver* drivers = nullptr;
  /// streams that capture now, over all devices: D6 is about threads
  std::atomic<unsigned> captures{0};
  std::atomic<unsigned> observers_running{0};  ///< so that only then a thread-local is read (C24)
  std::vector<CachingAllocator::FreeMemoryCallback> callbacks;
  std::vector<CachingAllocator::OutOfMemoryObserver> observers;
};

/// A request after rounding.
struct Request {
  Bytes requested;
  Bytes size;     ///< rounded
  Bytes fit_end;  ///< blocks of this size or more may not serve it
  bool is_small;
};

class DeviceCache {
 public:
  DeviceCache(device::Device& device, SharedState& shared) noexcept;
  ~DeviceCache();
  DeviceCache(const DeviceCache&) = delete;
  DeviceCache& operator=(const DeviceCache&) = delete;

  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) noexcept;
  /// `found` is what the page map says of `address`.
  static Status free(const PageMap::Found& found, Address address) noexcept;
  static Status free_used_on(const PageMap::Found& found, Address address,
                             StreamHeap& user) noexcept;
  static Status record_use(const PageMap::Found& found, Address address, StreamHeap& user) noexcept;
  static Result<AllocationInfo> info(const PageMap::Found& found, Address address) noexcept;

  /// The heap of a stream, made if it is new; nullptr when the host has no memory. Only for an
  /// allocation (`may_ask`) may that ask the device whether a dead stream is done: other calls that
  /// are refused make no device call (C13). Cost: as
  /// StreamTable::find.
  StreamHeap* heap_of(const Stream& stream, bool may_ask) noexcept {
    // Most allocate on one stream, the first: its heap is at hand before the stream's identity has
    // been hashed.
    StreamHeap* heap = first_heap_.load(std::memory_order_acquire);
    if (heap != nullptr && heap->id.load(std::memory_order_acquire) == stream.id.value())
      return heap;
    heap = streams_.find(stream.id);
    return heap != nullptr ? heap : make_heap(stream, may_ask);
  }
  Status retire(Stream stream) noexcept;
  /// Waits until no slow path and no poll that began before a capture was announced is still
  /// running (C9).
  void quiesce() noexcept;
  /// After the last capture: records the events that had to wait for it.
  void record_deferred() noexcept;
  Status trim() noexcept;
  Status set_limit(Bytes limit) noexcept;
  Status set_fraction(double fraction) noexcept;
  /// Waits for everything and gives everything idle back; the destructor's work, all devices' first
  /// halves before any second half, because uses cross devices.
  void settle(bool synchronize) noexcept;
  /// Is anything of this device's heaps not known complete?
  bool has_unfinished() const noexcept;
  void give_everything_back() noexcept;

  Driver& driver() noexcept { return driver_; }
  EventPool& events() noexcept { return events_; }
  void stats(DeviceStats* out) const noexcept;
  void reset_peaks() noexcept;
  void reset_accumulated() noexcept;
  Status snapshot(Snapshot* out) const;
  Bytes largest_free(Stream stream) const noexcept;
  const char* validate() const noexcept;

 private:
  using BlockIndex = block::BlockIndex;
  struct PollTally {
    unsigned completed = 0;
    Status status;
  };

  // device_cache.cc
  StreamHeap* make_heap(const Stream& stream, bool may_ask) noexcept;
  StreamHeap* add_heap(const Stream& stream) noexcept;
  /// Reclaiming. A dead stream's heap that may serve another, or nullptr.
  StreamHeap* find_forgotten(bool may_ask) noexcept;
  /// Reclaiming, under the streams lock. False where the heap is not to be had any more.
  bool reuse_heap(StreamHeap& heap, const Stream& stream) noexcept;
  Status make_request(Bytes size, Request& request) const noexcept;
  /// Locked. Serves the request from the heap's own free blocks; the null address when none fits.
  Address take_fit(StreamHeap& heap, const Request& request) noexcept;
  Address search_locked(StreamHeap& heap, const Request& request) noexcept;
  /// Locked. Hands out `block`, which is free and large enough; the null address when the host has
  /// no memory.
  Address take_block(StreamHeap& heap, const Request& request, BlockIndex block,
                     UseNode* owner) noexcept;
  Address take_now(StreamHeap& heap, block::BlockPool& pool, const Request& request,
                   BlockIndex block, UseNode* owner) noexcept;
  template <class F>
  static Status with_live_block(const PageMap::Found& found, Address address, F&& f) noexcept;
  static Status free_block(StreamHeap& heap, bool is_small, BlockIndex block,
                           Guard& guard) noexcept;
  void count_oversize(int change) noexcept;

  // pending.cc
  /// Locked, and still locked when it returns: polls at most `budget` events, unlocking around the
  /// device calls.
  PollTally poll(StreamHeap& heap, Guard& guard, unsigned budget) noexcept;
  /// Locked, returns unlocked: the block's uses get their events, and it waits for them.
  static void free_pending(StreamHeap& heap, Guard guard, bool is_small, BlockIndex block) noexcept;
  enum class UseState { kRecorded, kComplete, kDeferred };
  /// Records the node's event on its stream, where that is allowed now.
  static UseState record_event(const StreamHeap& heap, UseNode& node) noexcept;
  bool is_lost() const noexcept { return driver_.health().code() == Code::kDeviceLost; }
  /// Is the use of a block of ours by `user` over because its device is lost, so that its work
  /// touches nothing any more
  /// (D8)? Where our own is, every call fails and nothing needs to come back.
  bool is_over(const StreamHeap& user) const noexcept {
    return &user.cache != this && user.cache.is_lost();
  }
  /// Records the slot's event on the stream's handle; any error when that may not or cannot be done
  /// now.
  static Status record_on(StreamHeap& user, EventSlot& slot) noexcept;
  static void settle_nodes(StreamHeap& heap, UseNode* list, bool by_sibling) noexcept;
  void retry_unrecorded(StreamHeap& heap) noexcept;
  bool may_record(StreamHeap& stream) noexcept;
  void lose_stream(StreamHeap& heap) noexcept;

  // ladder.cc
  /// REQUIRES: the heap is pinned for it; it is not when this returns.
  Result<Address> allocate_slow(StreamHeap& heap, const Request& request,
                                OutOfMemory* account) noexcept;
  Address search(StreamHeap& heap, const Request& request) noexcept;
  Address drain_and_search(StreamHeap& heap, const Request& request) noexcept;
  Address call_back_and_search(StreamHeap& heap, const Request& request) noexcept;
  Result<Address> grow(StreamHeap& heap, const Request& request) noexcept;
  Address enter_segment(StreamHeap& heap, const Request& request, DeviceSegment* record) noexcept;
  Result<Address> reclaim_and_retry(StreamHeap& heap, const Request& request,
                                    bool& wait_ran_out) noexcept;
  void fill_account(OutOfMemory* account) const noexcept;
  Result<Address> fail_out_of_memory(StreamHeap& heap, const Request& request, bool wait_ran_out,
                                     OutOfMemory* account) noexcept;
  DeviceSegment* new_segment_record() noexcept;
  void recycle_segment_record(DeviceSegment* segment) noexcept;
  /// kOutOfMemory at the limit; the driver's error where a fraction of the device's memory was to
  /// be the limit.
  Status charge(Bytes size) noexcept;
  void uncharge(Bytes size, bool is_small) noexcept;
  void commit_segment(Bytes size, bool is_small) noexcept;

  // reclaim.cc; "reclaiming" means the caller holds reclaim_.
  bool is_capturing() const noexcept {
    return shared_.captures.load(std::memory_order_acquire) != 0;
  }
  /// Reclaiming. Makes sure an event covers everything the heap has released so far.
  void mark_epoch(StreamHeap& heap) noexcept;
  /// Reclaiming. Asks the heap's marks, oldest first, and moves `completed`.
  void query_marks(StreamHeap& heap) noexcept;
  /// Not reclaiming here, perhaps on another device: asks a retired stream's last event, where
  /// nobody reclaims.
  void ask_last_event(StreamHeap& heap) noexcept;
  /// Reclaiming. Drops marks [0, n) as complete.
  void complete_marks(StreamHeap& heap, unsigned n) noexcept;
  Address steal(StreamHeap& heap, const Request& request, unsigned sweeps_max) noexcept;
  Address find_to_steal(StreamHeap& heap, const Request& request, unsigned sweeps_max) noexcept;
  bool has_fit(StreamHeap& heap, const Request& request) noexcept;
  Address steal_from(StreamHeap& from, StreamHeap& to, const Request& request) noexcept;
  Address steal_ordered(StreamHeap& from, StreamHeap& to, const Request& request) noexcept;
  /// Locked `from`. A block of its lent to `to`: it stays in `from`'s segment and comes back when
  /// `to`'s work is done.
  Address lend(StreamHeap& from, StreamHeap& to, const Request& request, BlockIndex block) noexcept;
  /// A whole idle segment changes heaps. Locked `from`, and again when it returns.
  Address adopt(StreamHeap& from, StreamHeap& to, const Request& request, Guard& guard,
                BlockIndex block) noexcept;
  /// Reclaiming. Gives back idle, complete segments of at least `at_least` bytes each until `need`
  /// bytes are back.
  Bytes release_idle(Bytes need, Bytes at_least) noexcept;
  DeviceSegment* lift_idle(StreamHeap& heap, Bytes need, Bytes at_least, bool whole_need) noexcept;
  bool give_segment_back(DeviceSegment* segment) noexcept;
  void sweep_all() noexcept;
  enum class Waited {
    kProgress,
    kNotDone,  ///< the slice is over
    kRefused,  ///< by the device: waiting on is of no use
  };
  static Waited outcome_of_wait(const Status& status) noexcept;
  /// How long a reclaim or a trim may still wait.
  struct Patience {
    std::uint32_t budget_ms;
    std::uint64_t waits_left;
    // Before the last search, by note_unfinished(): what other threads finish after it, the search
    // has missed.
    bool was_pending = false;  ///< was any use not complete,
    bool was_in_hand = false;  ///< or in the hands of another thread?
    bool has_looked_again = false;
    bool ran_out = false;
  };
  struct Oldest {
    StreamHeap* heap = nullptr;  ///< null: no event is waited for
    bool is_mark = false;
    bool in_hand = false;  ///< do other threads hold uses that no queue shows?
  };
  void note_unfinished(Patience& patience) const noexcept;
  Oldest find_oldest() const noexcept;
  /// Reclaiming. Blocks on the oldest event that anything waits for; false when there is no point
  /// in searching again.
  bool wait_for_oldest(Patience& patience) noexcept;
  void wait_a_slice(const Oldest& oldest, Patience& patience) noexcept;
  /// Locks each heap. A dead stream of another device that left its last event behind, and that a
  /// use waits for.
  StreamHeap* retired_elsewhere() const noexcept;
  Waited wait_for_use(StreamHeap& heap, std::uint32_t timeout_ms) noexcept;
  Waited wait_for_mark(StreamHeap& heap, std::uint32_t timeout_ms) noexcept;
  /// Reclaiming. What no event can tell (lost streams, uses that could not be recorded) a device
  /// synchronisation does.
  bool synchronize_untold() noexcept;
  bool has_untold() noexcept;
  /// Reclaiming. Most waits one call may make.
  std::uint64_t waits_max() noexcept;

  // ends.cc
  static void finish_if_settled(StreamHeap& heap, UseNode* use) noexcept;

  // queries.cc
  /// What that part of the device's memory is in bytes.
  Result<Bytes> limit_for(double fraction) noexcept;
  template <class F>
  void for_reserve_stats(F&& f) noexcept;
  static void append_pool(const StreamHeap& heap, bool is_small, Snapshot* out);

  SharedState& shared_;
  const Config& config_;
  const bool has_divisions_;  ///< is roundup_power2_divisions set at all?
  const DeviceId id_;
  Driver driver_;
  EventPool events_;
  StreamTable streams_;
  // a list that only grows: walked without a lock
  alignas(64) std::atomic<StreamHeap*> first_heap_{nullptr};
  alignas(64) std::atomic<std::uint64_t> sequence_{0};  // written at every recorded event

  mutable std::mutex streams_lock_;
  StreamHeap* last_heap_ = nullptr;  // streams_lock_
  std::mutex reclaim_;

  mutable SpinLock reserve_lock_;
  StatByPool reserved_bytes_{};  // reserve_lock_, as the three below
  StatByPool segments_{};
  Stat oversize_segments_;
  Stat oversize_allocations_;
  Bytes charged_;  // reserved, and being reserved
  Bytes limit_ = Bytes::max();
  // config's fraction not yet turned into a limit; written as those
  std::atomic<bool> fraction_pending_{false};
  std::uint64_t next_ordinal_ = 0;
  DeviceSegment* spare_segments_ = nullptr;
  DeviceSegment* segment_records_ = nullptr;

  // the destructor's: all work is known complete
  bool settled_ = false;

  // growths that may be under way: quiesce() waits for them
  std::atomic<unsigned> growing_{0};
  std::atomic<std::uint64_t> retries_{0};
  std::atomic<std::uint64_t> ooms_{0};
  std::atomic<std::uint64_t> waits_{0};
  std::atomic<std::uint64_t> steals_{0};
};

}  // namespace ashlar::inline v0::cache
