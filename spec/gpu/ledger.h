// Ledger: everything that a simulated machine has handed out and that was not returned.
//
// Thread safety: plain values.
#pragma once

#include <cstdint>
#include <string>

#include <ashlar/device/device.h>

namespace ashlar::spec {

enum class HeldKind : std::uint8_t {
  kSegment,
  kReservation,
  kPage,
  kMapping,
  kEvent,
  kStream,
  kPinned,
  kRegistered,
  kOpened
};
inline constexpr unsigned kHeldKinds = 9;

/// "segment", "reservation", ...: static storage.
const char* held_name(HeldKind kind) noexcept;

/// How many of one kind are held, and how large they are together.
struct HeldCount {
  std::uint64_t count = 0;
  Bytes bytes;
  friend bool operator==(const HeldCount&, const HeldCount&) = default;
};

/// Counts of everything held. A released page counts as held while it is mapped.
struct Ledger {
  HeldCount segments;
  HeldCount reservations;
  HeldCount pages;
  HeldCount mappings;
  HeldCount events;
  HeldCount streams;  ///< created by create_stream and not destroyed
  HeldCount pinned;
  HeldCount registered;     ///< memory of the host that was registered
  HeldCount opened;         ///< pages and segments of other machines
  Bytes device_bytes_peak;  ///< highest sum of segments and pages so far

  /// Physical memory in use: segments and pages.
  Bytes device_bytes() const { return segments.bytes + pages.bytes; }
  HeldCount& of(HeldKind kind);
  const HeldCount& of(HeldKind kind) const { return const_cast<Ledger*>(this)->of(kind); }
  /// Is nothing held? Streams do not count: they are the caller's.
  bool nothing_held() const;
};

/// One thing held. `value` is its address (segment, reservation, mapping, pinned,
/// registered) or handle.
struct HeldHandle {
  HeldKind kind = HeldKind::kSegment;
  DeviceId device;
  std::uint64_t value = 0;
  Bytes size;
};

}  // namespace ashlar::spec
