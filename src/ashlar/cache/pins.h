// Ranges whose memory stays where it is: pinned by the user, for a network card or another process (C21).
//
// Purpose: a pin outlives the free of its allocation. The bytes are used again as ever, by whatever heap;
// but until the last pin on them ends, no page under the range leaves its home, and no segment that it lies in
// goes back to the driver.
// Thread safety: any thread. Nothing here waits for a device call.
//
// How a pin and a release keep out of each other's way. A release takes memory from free blocks alone, which
// it lifts under the heap's lock, and there it looks at the counts. A pin needs a live block: under the same
// lock it raises DeviceSegment::holds, and while the block is live, it raises the counts of its pages without
// a lock. So when the block is free, whoever takes the lock after its free sees the counts. A count falls at
// any time; then a release may miss a page that it could have had, until the next one looks.
//
// Invariants:
//   (1) a page's count is the number of pins noted here that touch the page; one that is counted is at home there;
//   (2) DeviceSegment::holds is the number of pins noted here in that segment, and of calls under way;
//   (3) while it is noted, the backing generation of a range does not change.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include <ashlar/base/mutex.h>
#include <ashlar/base/status.h>
#include <ashlar/cache/mapping.h>
#include <ashlar/cache/page_map.h>
#include <ashlar/cache/physical_ranges.h>

namespace ashlar::inline v0::cache {

class Pins;

/// A live allocation whose segment was told to stay (DeviceSegment::holds). Whoever is given one hands it to
/// Pins::pin() or Pins::read(), once.
struct HeldAllocation {
  Pins* pins = nullptr;  ///< of its device
  DeviceSegment* segment = nullptr;
  Address base;
  Bytes size;
};

class Pins {
 public:
  /// `page` is the size of a page of a paged segment.
  explicit Pins(Bytes page) noexcept : page_(page) {}

  /// Pins the memory of the allocation. kHostOutOfMemory. Cost: its pages, and a search among the pins.
  Result<PinnedRange> pin(const HeldAllocation& held) noexcept ASHLAR_EXCLUDES(lock_);
  /// Ends one pin of that range; kNotFound if there is none. If the device is not well, that is the answer,
  /// and nothing changes. Never allocates. Cost: as pin().
  Status unpin(const PinnedRange& range, Status health) noexcept ASHLAR_EXCLUDES(lock_);
  /// The newest backing generation under the allocation. Cost: its pages.
  std::uint64_t read(const HeldAllocation& held) const noexcept;
  /// Adds the physical ranges under that range to `*out`; kNotFound if it is not pinned. `device` is whose pages they are.
  /// Cost: its pages.
  Status find_physical(const PinnedRange& range, device::Device& device,
                       std::vector<PhysicalRange>* out) const noexcept ASHLAR_EXCLUDES(lock_);
  /// Bytes that are pinned, in whole pages and segments. Cost: the pins.
  Bytes bytes() const noexcept ASHLAR_EXCLUDES(lock_);

  /// nullptr, or the broken invariant. Quiescent.
  const char* validate() const noexcept ASHLAR_EXCLUDES(lock_);

 private:
  /// What pins of one range have in common.
  struct Pinned {
    DeviceSegment* segment = nullptr;
    std::uint64_t count = 0;
  };
  struct IsBefore {
    bool operator()(const PinnedRange& a, const PinnedRange& b) const noexcept {
      return std::tuple(a.base, a.size, a.generation) < std::tuple(b.base, b.size, b.generation);
    }
  };
  using Ranges = std::map<PinnedRange, Pinned, IsBefore>;

  PageTable::Run pages_of(const DeviceSegment& segment, Address base, Bytes size) const noexcept {
    return {(base - segment.base) / page_, (base + (size - Bytes{1}) - segment.base) / page_ + 1};
  }
  std::uint64_t generation_of(const DeviceSegment& segment, Address base,
                              Bytes size) const noexcept {
    return segment.page_table.is_made()
               ? segment.page_table.newest_generation(pages_of(segment, base, size))
               : segment.generation;
  }
  const Bytes page_;
  mutable Mutex lock_;
  Ranges ranges_ ASHLAR_GUARDED_BY(lock_);
};

}  // namespace ashlar::inline v0::cache
