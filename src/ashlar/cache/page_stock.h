// The pages of a device: those that are at home nowhere, and where each is mapped.
//
// Purpose: a page moves in two steps, so that the one that takes it away and the one that maps it need
// not know each other: between them it is in the stock. Pages that the driver refuses to take back wait
// there as well.
// Thread safety: any thread; one lock. Under it a mapping is taken back, so that nobody maps another page
// there meanwhile; no other device call is made.
//
// Invariants:
//   (1) every page that has a record in use is charged to the device's limit (segment_ledger.h);
//   (2) a page of the stock has no home, and no work under way uses it;
//   (3) a page's list of mappings has the slots that it is mapped at, and `mapping_count` says how many.
#pragma once

#include <array>
#include <cstdint>

#include <ashlar/base/mutex.h>
#include <ashlar/cache/driver.h>
#include <ashlar/cache/page_table.h>

namespace ashlar::inline v0::cache {

class PageStock {
 public:
  explicit PageStock(Driver& driver, Bytes page) noexcept : driver_(driver), page_(page) {}
  ~PageStock();
  PageStock(const PageStock&) = delete;
  PageStock& operator=(const PageStock&) = delete;

  /// A record for a page that is to be created; nullptr if the host has no memory.
  PhysicalPage* new_record() noexcept ASHLAR_EXCLUDES(lock_);
  /// The page was not created, or is the driver's again. REQUIRES: it is mapped nowhere.
  void recycle(PhysicalPage* page) noexcept ASHLAR_EXCLUDES(lock_);

  void put(PhysicalPage* page) noexcept ASHLAR_EXCLUDES(lock_);
  /// The same behind all others: the driver refused it, and is asked for the others first.
  void put_last(PhysicalPage* page) noexcept ASHLAR_EXCLUDES(lock_);
  /// Any page of the stock; nullptr if there is none.
  PhysicalPage* take() noexcept ASHLAR_EXCLUDES(lock_);
  std::uint64_t count() const noexcept ASHLAR_EXCLUDES(lock_);

  /// `slot`, which nobody's block has, is to be the home of a page. If the page that is mapped there is in
  /// the stock, takes that and is true; else takes its mapping back and is false. `*failure` is the
  /// driver's error if it refuses that: the mapping stays.
  bool claim(PageSlot& slot, Status* failure) noexcept ASHLAR_EXCLUDES(lock_);
  /// The slot's page was mapped there. REQUIRES: the page is in the caller's hands.
  void note_mapped(PageSlot& slot) noexcept ASHLAR_EXCLUDES(lock_);
  /// The slot, where the page is mapped, is its home from now on. REQUIRES: the page is in the caller's hands.
  void settle(PageSlot& slot) noexcept ASHLAR_EXCLUDES(lock_);
  /// Takes every mapping of the page back, which is in the caller's hands; the driver's first error.
  Status unmap(PhysicalPage& page) noexcept ASHLAR_EXCLUDES(lock_);
  /// Takes the mapping at the slot back, whatever page it is of; ok if there is none.
  Status unmap(PageSlot& slot) noexcept ASHLAR_EXCLUDES(lock_);
  /// The page leaves that home: takes its mapping there back if it has more than `most`. A mapping that the
  /// driver refuses to take back stays.
  void limit_mappings(PageSlot& slot, std::uint32_t most) noexcept ASHLAR_EXCLUDES(lock_);
  /// The driver took the mapping at that home back: the page has one less.
  void note_unmapped(PageSlot& slot) noexcept ASHLAR_EXCLUDES(lock_);

  /// While it lives, the holder may read where pages are mapped and give them other homes, if it got the
  /// lock: it does not wait, because the lock's holder may be inside a device call (C18).
  class Reading {
   public:
    explicit Reading(PageStock& stock) noexcept : stock_(stock), is_open_(stock.lock_.try_lock()) {}
    ~Reading() ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
      if (is_open_) stock_.lock_.unlock();
    }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;
    bool is_open() const noexcept { return is_open_; }

   private:
    PageStock& stock_;
    const bool is_open_;
  };

 private:
  /// Records are made so many at a time.
  struct Records {
    std::array<PhysicalPage, 64> pages;
    Records* made_before = nullptr;
  };

  PhysicalPage* take_spare() noexcept ASHLAR_EXCLUDES(lock_);
  void remove(PhysicalPage& page) noexcept ASHLAR_REQUIRES(lock_);
  void unlink(PageSlot& slot) noexcept ASHLAR_REQUIRES(lock_);
  Status unmap_locked(PageSlot& slot) noexcept ASHLAR_REQUIRES(lock_);

  Driver& driver_;
  const Bytes page_;
  mutable Mutex lock_;
  PhysicalPage* newest_ ASHLAR_GUARDED_BY(lock_) = nullptr;  ///< taken first
  PhysicalPage* oldest_ ASHLAR_GUARDED_BY(lock_) = nullptr;
  std::uint64_t count_ ASHLAR_GUARDED_BY(lock_) = 0;
  PhysicalPage* spare_ ASHLAR_GUARDED_BY(lock_) = nullptr;
  Records* newest_made_ ASHLAR_GUARDED_BY(lock_) = nullptr;
};

}  // namespace ashlar::inline v0::cache
