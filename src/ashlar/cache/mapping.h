// Which memory is under an address, for whoever caches what depends on it: registrations of ranges with
// a network card, handles for other processes.
//
// Purpose: with moving pages other memory may come under an address (docs/moving-pages.md). A user pins a
// range so that its memory stays, or compares generations, or is told of every change.
// Thread safety: plain values.
#pragma once

#include <cstdint>

#include <ashlar/base/types.h>

namespace ashlar::inline v0::cache {

/// Memory that stays under its addresses: CachingAllocator::pin() makes it, unpin() ends it.
struct PinnedRange {
  Address base;  ///< of the allocation
  Bytes size;    ///< usable bytes of the allocation
  /// CachingAllocator::backing_generation() of the range while it is pinned
  std::uint64_t generation = 0;
  /// The same range, with the same memory under it.
  friend bool operator==(const PinnedRange&, const PinnedRange&) = default;
};

/// What happens to memory.
enum class MappingChange : std::uint8_t {
  kMapped,     ///< it is under the addresses now
  kUnmapping,  ///< it is about to go away, unless the driver refuses; then kMapped follows
};

/// A range of addresses that gets memory, or loses it.
struct MappingEvent {
  DeviceId device;                                ///< whose memory it is
  MappingChange change = MappingChange::kMapped;  ///< what happens
  Address address;                                ///< where the range begins
  Bytes size;                                     ///< of the range
  /// the newest backing generation in the range. If the driver refuses to take memory away, kMapped has
  /// that of kUnmapping before it: the memory is the same.
  std::uint64_t generation = 0;
};

}  // namespace ashlar::inline v0::cache
