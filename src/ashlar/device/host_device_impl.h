// The private state of a HostDevice, shared by host_device.cc and host_memory.cc only.
//
// Thread safety: Impl::mutex guards every field declared after it.
#pragma once

#include <atomic>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include <ashlar/device/host_device.h>

namespace ashlar::inline v0::device {
namespace host {

/// The page size of this device's virtual memory, independent of the kernel's.
inline constexpr Bytes kPageSize = 2_MiB;

/// Makes an anonymous mapping with that alignment; fails with the code `when_full`.
Result<Address> map_aligned(Bytes size, Bytes alignment, int protection, Code when_full) noexcept;
/// Returns a range that map_aligned made to the kernel.
void unmap(Address base, Bytes size) noexcept;
/// Does one of the disjoint ranges share a byte with [base, base + size)?
inline bool overlaps(const std::map<Address, Bytes>& ranges, Address base, Bytes size) noexcept {
  const auto after = ranges.lower_bound(base + size);
  if (after == ranges.begin()) return false;
  const auto& [begin, length] = *std::prev(after);
  return begin + length > base;
}
inline Status no_host_memory() {
  return {Code::kHostOutOfMemory, "HostDevice: host bookkeeping memory cannot be allocated"};
}

struct Page {
  Bytes offset;  // in the memory file
  Bytes size;
  std::uint64_t mappings = 0;
  bool is_released = false;
};

struct Mapping {
  Bytes size;
  PageHandle page;
  bool has_access = false;
};

using Mappings = std::map<Address, Mapping>;

struct Reservation {
  Bytes size;
  Mappings mappings;
};

}  // namespace host

struct HostDevice::Impl {
  explicit Impl(DeviceId device, Bytes capacity_bytes)
      : id(device), capacity(capacity_bytes), default_stream_id(new_stream_id()) {}

  /// Unique in the process.
  [[gnu::visibility("hidden")]] static std::uint64_t new_stream_id() noexcept;
  bool has_room(Bytes size) const { return size <= capacity && held <= capacity - size; }
  /// Returns the page's memory to the kernel and forgets the page.
  [[gnu::visibility("hidden")]] void free_page(
      std::map<PageHandle, host::Page>::iterator page) noexcept;
  /// The reservation that contains all of [at, at + size), or nullptr.
  [[gnu::visibility("hidden")]] host::Reservation* reservation_of(Address at, Bytes size) noexcept;
  /// The mappings that tile [at, at + size) exactly, as [first, last); first == last if none do.
  [[gnu::visibility("hidden")]] static std::pair<host::Mappings::iterator, host::Mappings::iterator>
  tiling(host::Reservation* range, Address at, Bytes size) noexcept;
  bool knows(StreamHandle stream) const {
    return stream == kDefaultStream || streams.count(stream) != 0;
  }

  const DeviceId id;
  const Bytes capacity;
  const std::uint64_t default_stream_id;
  mutable std::mutex mutex;
  // Guarded by mutex from here on.
  Bytes held;
  int file = -1;
  Bytes file_size;  // only grows: a freed page leaves a hole without memory, never reused
  std::uint64_t next_handle = 1;
  std::map<Address, Bytes> segments;
  std::map<Address, Bytes> pinned;
  std::map<Address, Bytes> registered;
  std::map<Address, host::Reservation> reservations;
  std::map<PageHandle, host::Page> pages;
  std::map<StreamHandle, StreamId> streams;
  std::set<EventHandle> events;
};

}  // namespace ashlar::inline v0::device
