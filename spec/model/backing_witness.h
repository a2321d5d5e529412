// BackingWitness: which memory is under a subject's addresses, as its device was asked: segments, and mappings
// of pages.
//
// Purpose: what is under a pinned range stays (C21); a backing generation changes when other memory comes under
// an address, and only then; observers are told of both (DEV-24). Each piece of memory that comes under
// addresses has a number of its own.
// Thread safety: none; for one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <vector>

#include "spec/model/range_set.h"

namespace ashlar::spec {

class BackingWitness {
 public:
  /// A segment or a page is under the addresses.
  void on_backed(std::uint64_t at, std::uint64_t size) { pieces_[at] = {at + size, ++numbers_}; }
  /// Kernels may use what is under the addresses: of a segment at once. Of another device's memory nothing is.
  void on_usable(std::uint64_t at, std::uint64_t size) {
    for (auto i = pieces_.lower_bound(at); i != pieces_.end() && i->first < at + size; ++i)
      usable_.add({i->first, i->second.end});
  }
  /// It is gone.
  void on_gone(std::uint64_t at, std::uint64_t size) {
    const AddressRange gone{at, at + size};
    pieces_.erase(pieces_.lower_bound(gone.begin), pieces_.lower_bound(gone.end));
    usable_.cut(gone);
    lost_.push_back(gone);
  }

  void begin_call() { lost_.clear(); }
  /// What lost its memory since begin_call().
  const std::vector<AddressRange>& lost() const { return lost_; }
  /// All memory that kernels may use.
  const RangeSet& usable() const { return usable_; }
  /// The number of the newest piece under the range; 0 if there is none.
  std::uint64_t newest(const AddressRange& in) const {
    std::uint64_t newest = 0;
    auto at = pieces_.upper_bound(in.begin);
    if (at != pieces_.begin()) --at;
    for (; at != pieces_.end() && at->first < in.end; ++at) {
      if (at->second.end > in.begin) newest = std::max(newest, at->second.number);
    }
    return newest;
  }

 private:
  struct Piece {
    std::uint64_t end = 0;
    std::uint64_t number = 0;
  };
  std::map<std::uint64_t, Piece> pieces_;  // by their first address
  RangeSet usable_;
  std::vector<AddressRange> lost_;
  std::uint64_t numbers_ = 0;
};

}  // namespace ashlar::spec
