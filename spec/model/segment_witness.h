// SegmentWitness: the segments and ranges of addresses that a subject has from its device.
//
// Purpose: what a snapshot shows must have been granted, and what a call gave back is judged by its size and its place (C14,
// DEV-11, DEV-13).
// Thread safety: none; for one thread. Cost: O(log n) to find, O(n) moves to insert or erase.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <ashlar/base/types.h>

namespace ashlar::spec {

class SegmentWitness {
 public:
  struct Held {
    std::uint64_t base;
    std::uint64_t size;
    std::uint64_t ordinal;  ///< the n-th segment granted, from 0
    bool is_paged = false;  ///< a range of addresses; its memory comes page by page
  };

  void begin_call() {
    returned_.clear();
    before_call_ = granted_;
  }
  void grant(Address base, Bytes size, bool is_paged) {
    if (segments_.capacity() == 0) segments_.reserve(16);
    segments_.insert(place_of(base), Held{base.value(), size.count(), granted_++, is_paged});
    if (!is_paged) bytes_ += size.count();
  }
  /// The segment or range at that address is held no more; its size, 0 if there is none.
  std::uint64_t take_back(Address base) {
    const auto at = place_of(base);
    if (at == segments_.end() || at->base != base.value()) return 0;
    const std::uint64_t size = at->size;
    if (!at->is_paged) returned_.push_back(*at);
    if (!at->is_paged) bytes_ -= size;
    undone_ += is_new(at->ordinal) ? 1 : 0;
    segments_.erase(at);
    return size;
  }

  /// Those held, by address.
  const std::vector<Held>& all() const { return segments_; }
  /// Of segments, without ranges of addresses.
  std::uint64_t bytes() const { return bytes_; }
  /// The segments given back since begin_call(), in that order.
  const std::vector<Held>& returned() const { return returned_; }
  /// Was the segment of that ordinal granted since begin_call()?
  bool is_new(std::uint64_t ordinal) const { return ordinal >= before_call_; }
  /// Segments given back in the call that was granted them, so far.
  std::uint64_t undone() const { return undone_; }

 private:
  std::vector<Held>::iterator place_of(Address base) {
    return std::lower_bound(segments_.begin(), segments_.end(), base.value(),
                            [](const Held& a, std::uint64_t at) { return a.base < at; });
  }

  std::vector<Held> segments_;
  std::vector<Held> returned_;
  std::uint64_t bytes_ = 0;
  std::uint64_t granted_ = 0;
  std::uint64_t before_call_ = 0;
  std::uint64_t undone_ = 0;
};

}  // namespace ashlar::spec
