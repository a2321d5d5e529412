// Distinct types for bytes, addresses and identities.
//
// Purpose: quantities that must not be confused have different types (bug H30: an alignment in bits
// used as bytes).
// Thread safety: plain values.
//
// Invariants:
//   (1) Arithmetic on Bytes and Address asserts that it neither wraps nor goes below zero. For
//       numbers that come from a caller use the functions of base/checked.h, which report an error
//       instead.
//   (2) Ids are opaque: they can be compared and hashed, and have no arithmetic.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>

#include <ashlar/base/assert.h>

namespace ashlar::inline v0 {

/// A count of bytes.
class Bytes {
 public:
  /// Zero bytes.
  constexpr Bytes() = default;
  /// `count` bytes.
  constexpr explicit Bytes(std::uint64_t count) : count_(count) {}
  /// The plain number, in bytes.
  constexpr std::uint64_t count() const { return count_; }
  /// The largest count, 2^64 - 1. As a limit it means "no limit".
  static constexpr Bytes max() { return Bytes{std::numeric_limits<std::uint64_t>::max()}; }

  friend constexpr bool operator==(Bytes, Bytes) = default;
  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) {
    ASHLAR_ASSERT(a.count_ <= max().count_ - b.count_, "base(1): Bytes wrapped");
    return Bytes{a.count_ + b.count_};
  }
  friend constexpr Bytes operator-(Bytes a, Bytes b) {
    ASHLAR_ASSERT(a.count_ >= b.count_, "base(1): Bytes below zero");
    return Bytes{a.count_ - b.count_};
  }
  friend constexpr Bytes operator*(Bytes a, std::uint64_t k) {
    ASHLAR_ASSERT(k == 0 || a.count_ <= max().count_ / k, "base(1): Bytes wrapped");
    return Bytes{a.count_ * k};
  }
  friend constexpr std::uint64_t operator/(Bytes a, Bytes b) { return a.count_ / b.count_; }
  friend constexpr std::uint64_t operator%(Bytes a, Bytes b) { return a.count_ % b.count_; }
  /// Adds in place. REQUIRES: the sum does not wrap.
  constexpr Bytes& operator+=(Bytes b) { return *this = *this + b; }
  /// Subtracts in place. REQUIRES: `b` is at most this.
  constexpr Bytes& operator-=(Bytes b) { return *this = *this - b; }

 private:
  std::uint64_t count_ = 0;
};

/// `512_B`: bytes.
constexpr Bytes operator""_B(unsigned long long n) { return Bytes{n}; }
/// `64_KiB`: units of 2^10 bytes.
constexpr Bytes operator""_KiB(unsigned long long n) { return Bytes{n << 10}; }
/// `20_MiB`: units of 2^20 bytes.
constexpr Bytes operator""_MiB(unsigned long long n) { return Bytes{n << 20}; }
/// `1_GiB`: units of 2^30 bytes.
constexpr Bytes operator""_GiB(unsigned long long n) { return Bytes{n << 30}; }

/// An address on a device or the host. Address 0 is null; no memory lies there.
class Address {
 public:
  /// The null address.
  constexpr Address() = default;
  /// The address with that number.
  constexpr explicit Address(std::uint64_t value) : value_(value) {}
  /// The plain number.
  constexpr std::uint64_t value() const { return value_; }
  /// True for address 0.
  constexpr bool is_null() const { return value_ == 0; }
  /// The address as a pointer, for callers who may dereference it.
  void* pointer() const { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(value_)); }
  /// The address that a host pointer holds.
  static Address of(const void* p) {
    return Address{static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(p))};
  }

  friend constexpr bool operator==(Address, Address) = default;
  friend constexpr auto operator<=>(Address, Address) = default;
  friend constexpr Address operator+(Address a, Bytes b) {
    return Address{(Bytes{a.value_} + b).count()};
  }
  friend constexpr Bytes operator-(Address a, Address b) {
    return Bytes{a.value_} - Bytes{b.value_};
  }
  friend constexpr Address operator-(Address a, Bytes b) {
    return Address{(Bytes{a.value_} - b).count()};
  }

 private:
  std::uint64_t value_ = 0;
};

/// An opaque number that names one object of the kind `Tag`.
template <class Tag, class Rep>
class Id {
 public:
  /// The plain number's type.
  using rep = Rep;
  /// The id 0.
  constexpr Id() = default;
  /// The id with that number.
  constexpr explicit Id(Rep value) : value_(value) {}
  /// The plain number.
  constexpr Rep value() const { return value_; }
  friend constexpr bool operator==(Id, Id) = default;
  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  Rep value_ = 0;
};

/// Ordinal of a device, 0..n-1.
using DeviceId = Id<struct DeviceIdTag, std::int32_t>;
/// A stream's identity: unique in the process and never reused (as cuStreamGetId guarantees).
using StreamId = Id<struct StreamIdTag, std::uint64_t>;
/// The driver's handle of a stream; the driver may reuse it once the stream is destroyed.
using StreamHandle = Id<struct StreamHandleTag, std::uint64_t>;
/// A driver event.
using EventHandle = Id<struct EventHandleTag, std::uint64_t>;
/// A handle of physical memory (cuMemCreate).
using PageHandle = Id<struct PageHandleTag, std::uint64_t>;

/// A stream as the allocator needs it: the handle to pass to the driver, the identity to use as a
/// key, and its device.
/// Obtain one from Device::identify (one driver call); it is valid until the stream is destroyed.
/// Do not assemble one from parts: the allocator attributes what the driver reports about `handle`
/// to the stream named by `id`. A handle paired with another stream's id can make that other stream
/// unusable while it is still alive.
struct Stream {
  StreamHandle handle;  ///< what the driver's calls take
  StreamId id;          ///< the stream's identity, which no other stream ever has
  DeviceId device;      ///< the device that the stream belongs to
  /// The handle names this stream only on the thread that identified it (the per-thread default
  /// stream; bug H5), so only that thread can record events on it.
  bool thread_bound = false;
  friend constexpr bool operator==(const Stream&, const Stream&) = default;
};

/// True if both name the same stream, even through different handles.
constexpr bool is_same_stream(const Stream& a, const Stream& b) noexcept {
  return a.id == b.id && a.device == b.device;
}

}  // namespace ashlar::inline v0

template <class Tag, class Rep>
struct std::hash<ashlar::Id<Tag, Rep>> {
  std::size_t operator()(ashlar::Id<Tag, Rep> id) const noexcept {
    return std::hash<Rep>{}(id.value());
  }
};
template <>
struct std::hash<ashlar::Address> {
  std::size_t operator()(ashlar::Address a) const noexcept {
    return std::hash<std::uint64_t>{}(a.value());
  }
};
