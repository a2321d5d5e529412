// Host memory for tables that grow under a lock: no growth copies or clears more than
// kPlainTableBytesMax bytes.
//
// Purpose: block records, tree nodes and hash cells are arrays, read with a base and an index and
// nothing in between. A small one moves when it grows, by copying. A large one is a range of
// reserved addresses (host_pages.h) and grows in place: a growth gives memory to more of them, and
// the host provides that page by page as the table is first written. So a growth costs a few system
// calls however much the table holds.
// Thread safety: none; the table's owner holds a lock.
//
// Invariants:
//   (1) A table of at most kPlainTableBytesMax bytes is plain memory; a larger one is a range, but
//       where the host refuses one: then it is plain memory too, and its growth copies it whole.
//   (2) A range reserves kReserveFactor times the bytes that its table needed when it was made, or
//       as many as the table can ever need; the first room() bytes of it have memory. A table that
//       outgrows its range moves to a second one, which has room for all that it can ever need: its
//       pages move, no byte is copied. So a table that stays small reserves few addresses.
//   (3) Bytes of a range that were never written are zero.
//
// Large tables are read at random, and huge pages save most of their TLB misses. They are asked for
// where a range is in use already, so that the host replaces pages in its own time: a table that
// asks before its first write waits, under the lock, until the host has cleared 2 MiB (measured: up
// to 5 ms where the host has to find them first).
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <ashlar/base/host_pages.h>

namespace ashlar::inline v0 {

/// The most bytes of a table that moves by copying. What a copy costs is the host's first pages for
/// it: measured 2.3 us for each of 4 KiB on a virtual machine.
inline constexpr std::size_t kPlainTableBytesMax = std::size_t{16} << 10;
/// With it a table's first range is 512 MiB long, and every table is in its second range at most.
inline constexpr std::size_t kReserveFactor = 16384;

/// The bytes of a growing table.
class GrowingBytes {
 public:
  GrowingBytes() = default;
  ~GrowingBytes();
  GrowingBytes(const GrowingBytes&) = delete;
  GrowingBytes& operator=(const GrowingBytes&) = delete;

  std::byte* data() const noexcept { return data_; }
  /// The bytes that there is room for.
  std::size_t room() const noexcept { return room_; }

  struct Growth {
    std::size_t bytes;      ///< the room that is needed
    std::size_t kept;       ///< the first bytes, which keep their values
    std::size_t bytes_max;  ///< the most that the table can ever need
    bool clears;            ///< true if the bytes from `kept` on must be zero; else their values
                            ///< are any. REQUIRES: none of them was written in place
  };
  /// Makes room. False if the host has no memory (nothing changed).
  [[gnu::cold]] bool grow(const Growth& growth) noexcept;

 private:
  bool is_range() const noexcept { return reserved_ > 0; }
  bool move_to_range(const Growth& growth) noexcept;
  bool move_to_plain(const Growth& growth) noexcept;
  void release() noexcept;

  std::byte* data_ = nullptr;
  std::size_t room_ = 0;
  std::size_t reserved_ = 0;  ///< of a range; 0 for plain memory
};

/// A growing array of T whose elements are neither constructed nor destroyed.
template <class T>
class GrowingTable {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  /// nullptr before the first growth. Changes at a growth.
  T* data() const noexcept { return reinterpret_cast<T*>(bytes_.data()); }

  bool has_room(std::uint64_t count) const noexcept { return count * sizeof(T) <= bytes_.room(); }
  /// Makes room for `count` elements, of `count_max` that may ever be needed; the first `kept` keep
  /// their values. False if the host has no memory (nothing changed).
  bool grow(std::uint64_t count, std::uint64_t kept, std::uint64_t count_max) noexcept {
    return grow(count, kept, count_max, false);
  }
  /// The same, and the elements from `kept` on are zero bytes. REQUIRES: none of them was written.
  bool grow_zeroed(std::uint64_t count, std::uint64_t kept, std::uint64_t count_max) noexcept {
    return grow(count, kept, count_max, true);
  }

 private:
  bool grow(std::uint64_t count, std::uint64_t kept, std::uint64_t count_max,
            bool clears) noexcept {
    if (has_room(count)) return true;
    return bytes_.grow({count * sizeof(T), kept * sizeof(T), count_max * sizeof(T), clears});
  }

  GrowingBytes bytes_;
};

}  // namespace ashlar::inline v0
