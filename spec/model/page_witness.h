// PageWitness: the pages that a subject has from its device: handles, and where they are mapped.
//
// Purpose: what a snapshot shows as memory must be mapped with access, and nothing else may be (C1,
// C14). Pages of one size are assumed nowhere.
// Thread safety: none; for one thread.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include <ashlar/base/types.h>

namespace ashlar::spec {

class PageWitness {
 public:
  struct Range {
    std::uint64_t begin;
    std::uint64_t end;
    friend bool operator==(const Range&, const Range&) = default;
  };

  // What the device granted.
  void on_create(PageHandle page, std::uint64_t size);
  void on_release(PageHandle page);
  void on_access(std::uint64_t at, std::uint64_t size);
  void on_unmap(std::uint64_t at, std::uint64_t size);

  /// Bytes of the handles held.
  std::uint64_t held_bytes() const { return held_bytes_; }
  /// Bytes that are mapped with access, and where: by address, neighbours joined.
  std::uint64_t usable_bytes() const { return usable_bytes_; }
  const std::vector<Range>& usable() const { return usable_; }
  /// Bytes that ever became usable, and ceased to be.
  std::uint64_t gained_bytes() const { return gained_bytes_; }
  std::uint64_t lost_bytes() const { return lost_bytes_; }

 private:
  /// Takes [begin, end) out of the usable ranges.
  void cut(std::uint64_t begin, std::uint64_t end);

  std::unordered_map<std::uint64_t, std::uint64_t> size_of_;
  std::vector<Range> usable_;
  std::uint64_t held_bytes_ = 0;
  std::uint64_t usable_bytes_ = 0;
  std::uint64_t gained_bytes_ = 0;
  std::uint64_t lost_bytes_ = 0;
};

}  // namespace ashlar::spec
