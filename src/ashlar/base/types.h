// Distinct types for bytes, addresses and identities.
//
// Purpose: two quantities that must not be swapped never share a type (bug H30: an alignment in
// bits used as bytes).
// Thread safety: plain values.
//
// Invariants:
//   (1) Arithmetic on Bytes and Address asserts that it neither wraps nor goes below zero. Where a
//       caller's number may wrap, use the checked forms of base/checked.h, which return an error
//       instead.
//   (2) Ids are opaque: they compare and hash, and have no arithmetic.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>

#include <ashlar/base/assert.h>

namespace ashlar::inline v0 {

/// A count of bytes.
class Bytes {
 public:
  constexpr Bytes() = default;
  constexpr explicit Bytes(std::uint64_t count) : count_(count) {}
  /// The plain number, in bytes.
  constexpr std::uint64_t count() const { return count_; }
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
  constexpr Bytes& operator+=(Bytes b) { return *this = *this + b; }
  constexpr Bytes& operator-=(Bytes b) { return *this = *this - b; }

 private:
  std::uint64_t count_ = 0;
};

constexpr Bytes operator""_B(unsigned long long n) { return Bytes{n}; }
constexpr Bytes operator""_KiB(unsigned long long n) { return Bytes{n << 10}; }
constexpr Bytes operator""_MiB(unsigned long long n) { return Bytes{n << 20}; }
constexpr Bytes operator""_GiB(unsigned long long n) { return Bytes{n << 30}; }

/// An address on a device (or the host). Address 0 is nobody's.
class Address {
 public:
  constexpr Address() = default;
  constexpr explicit Address(std::uint64_t value) : value_(value) {}
  /// The plain number.
  constexpr std::uint64_t value() const { return value_; }
  constexpr bool is_null() const { return value_ == 0; }
  /// The address as a pointer, for callers who may dereference it.
  void* pointer() const { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(value_)); }
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

/// An opaque number that names one thing of the kind `Tag`.
template <class Tag, class Rep>
class Id {
 public:
  using rep = Rep;
  constexpr Id() = default;
  constexpr explicit Id(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }
  friend constexpr bool operator==(Id, Id) = default;
  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  Rep value_ = 0;
};

/// Ordinal of a device, 0..n-1.
using DeviceId = Id<struct DeviceIdTag, std::int32_t>;
/// A stream's identity: unique for the life of the process, never reused (cuStreamGetId's promise).
using StreamId = Id<struct StreamIdTag, std::uint64_t>;
/// A stream's handle as the driver knows it: may be reused after the stream is destroyed.
using StreamHandle = Id<struct StreamHandleTag, std::uint64_t>;
/// A driver event.
using EventHandle = Id<struct EventHandleTag, std::uint64_t>;
/// A handle of physical memory (cuMemCreate).
using PageHandle = Id<struct PageHandleTag, std::uint64_t>;

/// A stream as the allocator needs it: the handle to pass to the driver, the identity to key on,
/// and its device.
/// Made by Device::identify (one driver call); valid until the stream is destroyed.
/// Nobody but a device can make one: what a driver says of a handle is taken for news of the stream
/// whose identity stands beside it, so that a pair of two streams' halves can make the one unusable
/// that is still alive.
struct Stream {
  StreamHandle handle;
  StreamId id;
  DeviceId device;
  /// The handle means this stream only on the thread that identified it (the per-thread default
  /// stream; bug H5): events can be recorded on it from that thread alone.
  bool thread_bound = false;
  friend constexpr bool operator==(const Stream&, const Stream&) = default;
};

/// The same stream, whatever handles name it.
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
