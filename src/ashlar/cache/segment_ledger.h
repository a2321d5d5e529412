// What a device's cache holds of the driver's memory: the limit, what is charged against it, the
// records of segments with their ordinals and positions, and the statistics of both.
//
// Positions (position.h): a new segment gets the bytes behind the newest one that there is. So what
// lay behind that and went back to the driver is given out again, and with no segment left positions
// begin at 0. They still rise in a process that always gets a new segment before it gives back the
// newest. Then a pool's window of positions becomes longer than what lies in it (free_index.h), and
// 2^64 is reached after 270 years of 2 GiB of new segments each second.
// Thread safety: any thread; one short lock, under which no device call is made.
//
// Invariants:
//   (1) bytes charged <= the limit at every moment a segment is charged (row DEV-12);
//   (2) bytes charged = bytes reserved + bytes of pages that no address has + bytes of growths under way;
//   (3) a record is in use by one segment, or spare; records are freed with the ledger;
//   (4) C10 of the records in use, one with a higher ordinal has a higher position, behind all bytes
//       of the other.
#pragma once

#include <atomic>
#include <optional>

#include <ashlar/cache/driver.h>
#include <ashlar/cache/out_of_memory.h>
#include <ashlar/cache/page_map.h>
#include <ashlar/cache/stats.h>

namespace ashlar::inline v0::cache {

class SegmentLedger {
 public:
  SegmentLedger(Driver& driver, const Config& config) noexcept;
  ~SegmentLedger();
  SegmentLedger(const SegmentLedger&) = delete;
  SegmentLedger& operator=(const SegmentLedger&) = delete;

  // A segment's way through the ledger: charge, new_record, commit; at the end uncharge, recycle.
  /// Works out the limit, if it is a fraction of the device's memory and was not worked out yet. The driver's
  /// error if it does not say how much that is.
  Status settle_limit() noexcept ASHLAR_EXCLUDES(lock_);
  /// Reserves room under the limit for a growth. kOutOfMemory at the limit; the driver's error if
  /// the limit is a fraction of the device's memory and the driver does not say how much that is.
  Status charge(Bytes size) noexcept ASHLAR_EXCLUDES(lock_);
  /// The growth failed.
  void refund(Bytes size) noexcept ASHLAR_EXCLUDES(lock_);
  /// The growth succeeded: the segment counts as reserved.
  void commit(Bytes size, PoolId pool) noexcept ASHLAR_EXCLUDES(lock_);
  /// A committed segment went back to the driver.
  void uncharge(Bytes size, PoolId pool) noexcept ASHLAR_EXCLUDES(lock_);
  /// Pages that were charged are mapped into a paged segment: they count as reserved.
  void commit_pages(Bytes size, PoolId pool) noexcept ASHLAR_EXCLUDES(lock_);
  /// They are not mapped any more, and still charged.
  void uncommit_pages(Bytes size, PoolId pool) noexcept ASHLAR_EXCLUDES(lock_);
  /// A record with the next ordinal and position, for a segment of that size; nullptr if the host has
  /// no memory, or the segment would end behind position 2^64.
  DeviceSegment* new_record(Bytes size) noexcept ASHLAR_EXCLUDES(lock_);
  void recycle(DeviceSegment* segment) noexcept ASHLAR_EXCLUDES(lock_);

  void set_limit(Bytes limit) noexcept ASHLAR_EXCLUDES(lock_);
  /// A limit of that part of the device's memory. REQUIRES: 0 < fraction <= 1.
  Status set_fraction(double fraction) noexcept ASHLAR_EXCLUDES(lock_);

  /// With so much more, is no more charged than a quarter of the limit, and of the device's memory?
  bool is_early(Bytes more, Bytes device_memory) const noexcept ASHLAR_EXCLUDES(lock_);
  /// How much more is charged than that part of the limit; 0 if there is no limit.
  Bytes over_share(double share) const noexcept ASHLAR_EXCLUDES(lock_);
  /// How much more is charged than the limit permits: it was set when more was reserved.
  Bytes over_limit() const noexcept ASHLAR_EXCLUDES(lock_) {
    const Guard guard(lock_);
    return charged_ - std::min(charged_, limit_);
  }

  /// An allocation of max_split_size or more began (+1) or ended (-1).
  void count_oversize(int change) noexcept ASHLAR_EXCLUDES(lock_);
  /// Writes the fields of the statistics and of the account that the ledger knows.
  void write(DeviceStats* out) const noexcept ASHLAR_EXCLUDES(lock_);
  void write(OutOfMemory* out) const noexcept ASHLAR_EXCLUDES(lock_);
  void reset_peak_stats() noexcept ASHLAR_EXCLUDES(lock_);
  void reset_accumulated_stats() noexcept ASHLAR_EXCLUDES(lock_);
  /// Compares with a recount over the pools, and with the pages held that no address has: nullptr, or the clause that broke. Quiescent.
  const char* validate(Bytes in_segments, std::uint64_t segments, Bytes held) const noexcept
      ASHLAR_EXCLUDES(lock_);

 private:
  friend struct CachePeer;
  /// That part of the device's memory in bytes.
  Result<Bytes> limit_for(double fraction) noexcept;
  template <class F>
  void for_each_stat(F&& f) noexcept ASHLAR_REQUIRES(lock_);
  /// Where a segment of that size lies, behind the newest; nothing if it ends behind 2^64.
  std::optional<block::Position> next_position(Bytes size) const noexcept ASHLAR_REQUIRES(lock_);
  void raise_reserved(Bytes size, PoolId pool) noexcept ASHLAR_REQUIRES(lock_);
  void lower_reserved(Bytes size, PoolId pool) noexcept ASHLAR_REQUIRES(lock_);
  /// A spare record, or nullptr.
  DeviceSegment* take_spare() noexcept ASHLAR_EXCLUDES(lock_);

  Driver& driver_;
  const Config& config_;
  mutable SpinLock lock_;
  StatByPool reserved_bytes_ ASHLAR_GUARDED_BY(lock_){};
  StatByPool segments_ ASHLAR_GUARDED_BY(lock_){};
  Stat oversize_segments_ ASHLAR_GUARDED_BY(lock_);
  Stat oversize_allocations_ ASHLAR_GUARDED_BY(lock_);
  Bytes charged_ ASHLAR_GUARDED_BY(lock_);
  Bytes limit_ ASHLAR_GUARDED_BY(lock_) = Bytes::max();
  /// Is the configuration's fraction not yet turned into a limit? Written under the lock.
  std::atomic<bool> fraction_pending_{false};
  std::uint64_t next_ordinal_ ASHLAR_GUARDED_BY(lock_) = 0;
  DeviceSegment* newest_ ASHLAR_GUARDED_BY(lock_) = nullptr;  ///< of those in use
  DeviceSegment* spare_ ASHLAR_GUARDED_BY(lock_) = nullptr;
  DeviceSegment* newest_made_ ASHLAR_GUARDED_BY(lock_) = nullptr;
};

}  // namespace ashlar::inline v0::cache
