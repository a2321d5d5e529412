// Memory: the simulated machine's segments, pinned and registered ranges, reservations, pages and mappings, with
// CUDA's rules.
//
// Purpose: the memory half of the machine. It knows no streams; MemoryCalls asks whether work is in
// flight.
// Thread safety: none (the machine's lock). Cost: O(log n) to find, O(n) moves to insert or erase
// (flat vectors).
// Invariants:
//   (1) regions_ and mappings_ are sorted by address; regions are disjoint, and a mapping lies in
//       one reservation.
//   (2) A device's bytes in use are its segments and its pages; a page is returned when its handle
//       is released and it is mapped nowhere.
//   (3) A new mapping has no access, from any device. A page may be mapped at several addresses.
//   (4) Registered ranges are regions too; their addresses are not this machine's to hand out.
//   (5) No two pages ever have the same bytes (memory_pieces.h).
//   (6) A page of another machine (memory_sharing.cc), and a segment of one, uses none of a device's capacity.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spec/gpu/address_space.h"
#include "spec/gpu/fault.h"
#include "spec/gpu/handle_table.h"
#include "spec/gpu/ledger.h"
#include "spec/gpu/memory_pieces.h"
#include "spec/gpu/shared_files.h"
#include "spec/gpu/sim_slots.h"
#include "spec/gpu/sim_types.h"

namespace ashlar::spec {

class Memory {
 public:
  /// The total memory that an unlimited device reports.
  static constexpr Bytes kUnlimitedTotal = Bytes{std::uint64_t{1} << 46};
  static constexpr std::uint32_t kDevicesMax = 64;

  Memory(const SimGpuOptions& options, FaultLog& faults);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void set_capacity(std::uint32_t device, Bytes capacity) { devices_[device].capacity = capacity; }
  void set_addresses(std::uint32_t device, Bytes most) { devices_[device].addresses_max = most; }
  device::MemoryInfo info(std::uint32_t device) const;
  const Ledger& ledger(std::uint32_t device) const { return devices_[device].ledger; }
  Ledger& ledger(std::uint32_t device) { return devices_[device].ledger; }

  Result<Address> segment_alloc(std::uint32_t device, Bytes size) {
    return allocate(device, size, HeldKind::kSegment);
  }
  Result<Address> pinned_alloc(std::uint32_t device, Bytes size) {
    return allocate(device, size, HeldKind::kPinned);
  }
  /// Memory that this machine did not hand out is reached like pinned memory from now on.
  Status register_range(std::uint32_t device, Address base, Bytes size);
  /// The size of the segment, pinned or registered range that starts there on that device; nullopt, and a
  /// fault, when there is none.
  std::optional<Bytes> size_to_free(std::uint32_t device, Address base, HeldKind kind);
  /// REQUIRES: size_to_free gave its size.
  void free(std::uint32_t device, Address base, HeldKind kind);

  Result<Address> reserve(std::uint32_t device, Bytes size, Bytes alignment);
  Status release_reservation(std::uint32_t device, Address base, Bytes size);
  Result<PageHandle> create_page(std::uint32_t device, Bytes size,
                                 device::ShareKind kind = device::ShareKind::kNone);
  Status release_page(std::uint32_t device, PageHandle handle);
  Status map(std::uint32_t device, Address at, Bytes size, PageHandle handle);
  /// kUnsupported, without a fault, if some of it is another device's and the two are no peers.
  Status set_access(std::uint32_t device, Address at, Bytes size, const SimGpuOptions& options);
  /// ok if the range is a run of whole mappings; else the error, and a fault.
  Status can_unmap(std::uint32_t device, Address at, Bytes size);
  /// REQUIRES: can_unmap.
  void unmap(Address at, Bytes size);

  /// From now on that device's kernels reach the segments of `owner`.
  void reach_segments(std::uint32_t device, std::uint32_t owner) {
    devices_[device].reaches |= std::uint64_t{1} << owner;
  }

  enum class Reach : std::uint8_t { kAccessible, kUnmapped, kNoAccess, kOtherDevice };
  /// May a kernel of that device touch all of the range?
  Reach reach(std::uint32_t device, Address at, Bytes size) const;
  /// The bytes that are at those addresses now.
  void find_pieces(Address at, Bytes size, MemoryPieces* out) const;
  /// The number of the byte that is at that address now.
  std::uint64_t byte_at(Address at) const;

  /// visit(HeldHandle) for everything held here: all kinds but events and streams.
  template <class Visit>
  void for_each_held(Visit visit) const;

 private:
  friend class MemorySharing;  // pages and segments that several processes have
  struct Region {
    std::uint64_t begin;
    std::uint64_t size;
    std::uint32_t device;
    HeldKind kind;
  };
  struct Mapping {
    std::uint64_t begin;
    std::uint64_t size;
    std::uint32_t page;    // index in pages_
    std::uint64_t access;  // bit per device
  };
  struct Page {
    std::uint64_t size = 0;
    std::uint64_t first_byte = 0;
    std::uint32_t device = 0;
    std::uint32_t mappings = 0;
    std::uint32_t handles = 0;
    device::ShareKind kind = device::ShareKind::kNone;
    int opened_file = -1;             // of a page of another machine: this page's own descriptor
    std::uint64_t opened_number = 0;  // of that file
    bool is_live() const { return handles + mappings > 0; }
    HeldKind held_as() const { return opened_file < 0 ? HeldKind::kPage : HeldKind::kOpened; }
  };
  struct DeviceMemory {
    Bytes capacity;
    Ledger ledger;
    Bytes addresses_max = Bytes::max();  // of reservations
    std::uint64_t reaches = 0;           // bit per device whose segments it may use
  };

  Result<Address> allocate(std::uint32_t device, Bytes size, HeldKind kind);
  Status refuse(const char* why, Address at, Bytes size);
  bool fits(std::uint32_t device, Bytes size) const;
  bool is_paged(Bytes size) const { return size > Bytes{0} && size % granularity_ == 0; }
  const Region* region_of(std::uint64_t address) const;
  std::size_t mapping_at_or_after(std::uint64_t address) const;
  void insert_region(const Region& region);
  void erase_region(const Region* region);
  void count(std::uint32_t device, HeldKind kind, Bytes size);
  void uncount(std::uint32_t device, HeldKind kind, Bytes size);
  /// The page's index; an error and a fault if `call` may not use that handle on that device.
  Result<std::uint32_t> find_page(std::uint32_t device, PageHandle handle, const char* call);
  void drop_page_if_unused(std::uint32_t index);
  /// The page's file, in this machine, is not needed any more.
  void drop_file(std::uint32_t index);
  PageHandle add_handle(std::uint32_t index);

  AddressSpace space_;
  Random rng_;
  FaultLog& faults_;
  Bytes granularity_;
  std::vector<DeviceMemory> devices_;
  std::vector<Region> regions_;
  std::vector<Mapping> mappings_;
  HandleTable<std::uint32_t> handles_;  // of pages: index in pages_
  SimSlots<Page> pages_;
  SharedFiles files_;
  std::uint64_t next_byte_;  // of the next page
};

template <class Visit>
void Memory::for_each_held(Visit visit) const {
  for (const Region& region : regions_) {
    const DeviceId device{static_cast<std::int32_t>(region.device)};
    visit(HeldHandle{region.kind, device, region.begin, Bytes{region.size}});
  }
  for (const Mapping& mapping : mappings_) {
    const Page& page = pages_[mapping.page];
    visit(HeldHandle{HeldKind::kMapping, DeviceId{static_cast<std::int32_t>(page.device)},
                     mapping.begin, Bytes{mapping.size}});
  }
  handles_.for_each([&](std::uint64_t value, std::uint32_t index) {
    const Page& page = pages_[index];
    visit(HeldHandle{HeldKind::kPage, DeviceId{static_cast<std::int32_t>(page.device)}, value,
                     Bytes{page.size}});
  });
}

}  // namespace ashlar::spec
