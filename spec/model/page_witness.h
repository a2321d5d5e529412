// PageWitness: the pages that a subject has from its device: handles, and where they are mapped.
//
// Purpose: what a snapshot shows as memory must be mapped with access, each page at one address, and no page
// may be held for nothing (C1, C14). A page may be mapped at several addresses. Pages of one size are assumed
// nowhere.
// Thread safety: none; for one thread. Cost: O(log n) to find, O(n) moves to insert or erase a mapping.
// Invariants:
//   (1) mappings_ is sorted by address and disjoint.
//   (2) A page is held until its handle is released and it is mapped nowhere; its index names no other page
//       before.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include <ashlar/base/types.h>

#include "spec/model/range_set.h"

namespace ashlar::spec {

/// Bytes of memory, by numbers that a page's keep wherever it is mapped. Where no page is mapped they are the
/// addresses; those of pages are above every address, and never used again.
struct ByteRange {
  std::uint64_t begin;
  std::uint64_t end;
};

inline bool share_bytes(const std::vector<ByteRange>& ranges, const ByteRange& other) {
  return std::any_of(ranges.begin(), ranges.end(), [&other](const ByteRange& each) {
    return each.begin < other.end && other.begin < each.end;
  });
}

class PageWitness {
 public:
  struct Mapping {
    std::uint64_t begin;
    std::uint64_t end;
    std::uint32_t page;  ///< its index
    bool has_access = false;
  };

  // What the device granted.
  void on_create(PageHandle page, std::uint64_t size);
  void on_release(PageHandle page);
  void on_map(std::uint64_t at, std::uint64_t size, PageHandle page);
  /// The subject's device may use what is mapped there of its pages.
  void on_access(std::uint64_t at, std::uint64_t size);
  void on_unmap(std::uint64_t at, std::uint64_t size);

  /// Bytes of the pages held.
  std::uint64_t held_bytes() const { return held_bytes_; }
  /// The most that were held at a time.
  std::uint64_t held_bytes_max() const { return held_bytes_max_; }
  /// Bytes of the pages that are mapped with access; a page at several addresses counts once.
  std::uint64_t usable_bytes() const { return gained_bytes_ - lost_bytes_; }
  /// Bytes of pages that ever came to have an address with access, and ceased to have any.
  std::uint64_t gained_bytes() const { return gained_bytes_; }
  std::uint64_t lost_bytes() const { return lost_bytes_; }

  /// Bytes of addresses with access; a page at several addresses counts at each.
  std::uint64_t address_bytes() const { return address_bytes_; }

  /// By address.
  const std::vector<Mapping>& mappings() const { return mappings_; }
  /// The first mapping that ends after that address.
  std::vector<Mapping>::const_iterator mapping_after(std::uint64_t address) const;
  /// Is a page that is mapped in the range also mapped outside of it, at addresses of the set?
  bool any_alias_in(const AddressRange& range, const RangeSet& set) const;
  /// The bytes at those addresses.
  std::vector<ByteRange> bytes_at(std::uint64_t begin, std::uint64_t end) const;
  /// Indices of pages are below this.
  std::size_t page_indices() const { return pages_.size(); }
  /// At how many addresses the page is mapped.
  std::uint32_t addresses_of(std::uint32_t page) const { return pages_[page].mappings; }
  /// Was the page's handle released? It is held while it is mapped.
  bool is_released(std::uint32_t page) const { return pages_[page].is_released; }

 private:
  struct Page {
    std::uint64_t size = 0;
    std::uint32_t mappings = 0;
    std::uint32_t accesses = 0;  ///< mappings with access
    bool is_released = false;
    std::uint64_t first_byte = 0;  ///< its number (ByteRange)
  };

  void drop_if_unused(std::uint32_t index);

  std::unordered_map<std::uint64_t, std::uint32_t> index_of_;  // by handle
  std::vector<Page> pages_;
  std::vector<std::uint32_t> unused_;  // indices
  std::vector<Mapping> mappings_;
  std::uint64_t held_bytes_ = 0;
  std::uint64_t held_bytes_max_ = 0;
  std::uint64_t next_byte_ = std::uint64_t{1} << 63;
  std::uint64_t gained_bytes_ = 0;
  std::uint64_t lost_bytes_ = 0;
  std::uint64_t address_bytes_ = 0;
};

}  // namespace ashlar::spec
