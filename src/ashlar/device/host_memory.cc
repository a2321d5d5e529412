// HostDevice: segments by mmap, pages as ranges of a memfd. Keeps clauses D1-D4 (device.h).
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include <ashlar/base/checked.h>
#include <ashlar/base/exceptions.h>
#include <ashlar/device/host_device_impl.h>

namespace ashlar::inline v0::device {
namespace {

using host::kPageSize;
using host::map_aligned;
using host::Mapping;
using host::Mappings;
using host::no_host_memory;
using host::Page;
using host::Reservation;
using host::unmap;

// More than an x86-64 or arm64 process can map.
constexpr Bytes kRangeMax{std::uint64_t{1} << 46};

Status invalid(const char* why) { return {Code::kInvalidArgument, why}; }
Status dead_handle(const char* why) { return {Code::kInvalidHandle, why}; }

}  // namespace

void host::unmap(Address base, Bytes size) noexcept {
  if (size == 0_B) return;
  const int failed = ::munmap(base.pointer(), size.count());
  ASHLAR_ASSERT(failed == 0, "HostDevice(1): munmap of a mapped range failed");
  static_cast<void>(failed);
}

// Maps a range that is larger by the alignment, and unmaps the ends that are not needed.
Result<Address> host::map_aligned(Bytes size, Bytes alignment, int protection,
                                  Code when_full) noexcept {
  const Status full{when_full, "HostDevice: the kernel has no range of that size"};
  const auto slack = checked_add(size, alignment);
  if (!slack || *slack > kRangeMax) return full;
  void* const mapped = ::mmap(nullptr, slack->count(), protection,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return full;
  const Address start = Address::of(mapped);
  const Bytes before = *checked_round_up(Bytes{start.value()}, alignment) - Bytes{start.value()};
  unmap(start, before);
  // The kernel unmaps only whole pages of its own, so the last one stays although `size` may end
  // inside it.
  const Bytes kept =
      *checked_round_up(size, Bytes{static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE))});
  unmap(start + before + kept, *slack - before - kept);
  return start + before;
}

void HostDevice::Impl::free_page(std::map<PageHandle, Page>::iterator page) noexcept {
  const auto offset = static_cast<off_t>(page->second.offset.count());
  const int failed = ::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset,
                                 static_cast<off_t>(page->second.size.count()));
  ASHLAR_ASSERT(failed == 0, "HostDevice(3): punching a hole in the memory file failed");
  static_cast<void>(failed);
  held -= page->second.size;
  pages.erase(page);
}

Reservation* HostDevice::Impl::reservation_of(Address at, Bytes size) noexcept {
  auto it = reservations.upper_bound(at);
  if (it == reservations.begin()) return nullptr;
  --it;
  const Bytes before = at - it->first;
  return before <= it->second.size && size <= it->second.size - before ? &it->second : nullptr;
}

std::pair<Mappings::iterator, Mappings::iterator> HostDevice::Impl::tiling(Reservation* range,
                                                                           Address at,
                                                                           Bytes size) noexcept {
  const auto first = range->mappings.find(at);
  const Address end = at + size;
  Address reached = at;
  auto last = first;
  while (last != range->mappings.end() && last->first == reached && reached < end) {
    reached = reached + last->second.size;
    ++last;
  }
  return reached == end ? std::pair(first, last) : std::pair(first, first);
}

// Segments.

Result<Address> HostDevice::segment_alloc(Bytes size) noexcept {
  ASHLAR_REQUIRE(size > 0_B, Code::kInvalidArgument, "HostDevice: segment_alloc of zero bytes");
  const std::lock_guard lock(impl_->mutex);
  ASHLAR_REQUIRE(impl_->has_room(size), Code::kOutOfMemory, "HostDevice: over the capacity");
  const Result<Address> base =
      map_aligned(size, kPageSize, PROT_READ | PROT_WRITE, Code::kOutOfMemory);
  if (!base.is_ok()) return base;
  if (!with_host_memory([&] { impl_->segments.emplace(base.value(), size); })) {
    unmap(base.value(), size);
    return no_host_memory();
  }
  impl_->held += size;
  return base;
}

Status HostDevice::segment_free(Address base) noexcept {
  const std::lock_guard lock(impl_->mutex);
  const auto it = impl_->segments.find(base);
  if (it == impl_->segments.end())
    return invalid("HostDevice: segment_free of an address that is not a segment");
  unmap(base, it->second);
  impl_->held -= it->second;
  impl_->segments.erase(it);
  return Status::ok();
}

// Virtual memory.

Result<Address> HostDevice::address_reserve(Bytes size, Bytes alignment) noexcept {
  if (size == 0_B || size % kPageSize != 0)
    return invalid("HostDevice: a reservation must be whole pages");
  if (alignment != 0_B && !is_power_of_two(alignment.count())) {
    return invalid("HostDevice: an alignment must be a power of two");
  }
  const std::lock_guard lock(impl_->mutex);
  const Result<Address> base =
      map_aligned(size, std::max(alignment, kPageSize), PROT_NONE, Code::kOutOfAddresses);
  if (!base.is_ok()) return base;
  const auto enter = [&] { impl_->reservations.emplace(base.value(), Reservation{size, {}}); };
  if (!with_host_memory(enter)) {
    unmap(base.value(), size);
    return no_host_memory();
  }
  return base;
}

Status HostDevice::address_release(Address base, Bytes size) noexcept {
  const std::lock_guard lock(impl_->mutex);
  const auto it = impl_->reservations.find(base);
  if (it == impl_->reservations.end() || it->second.size != size) {
    return invalid("HostDevice: address_release of a range that is not a reservation");
  }
  ASHLAR_REQUIRE(it->second.mappings.empty(), Code::kBusy,
                 "HostDevice: the reservation has mappings");
  unmap(base, size);
  impl_->reservations.erase(it);
  return Status::ok();
}

Result<PageHandle> HostDevice::page_create(Bytes size) noexcept {
  if (size == 0_B || size % kPageSize != 0)
    return invalid("HostDevice: a page handle must be whole pages");
  const std::lock_guard lock(impl_->mutex);
  ASHLAR_REQUIRE(impl_->has_room(size), Code::kOutOfMemory, "HostDevice: over the capacity");
  const Status full{Code::kOutOfMemory, "HostDevice: the kernel has too little memory"};
  const auto end = checked_add(impl_->file_size, size);
  if (!end || *end > kRangeMax) return full;
  if (impl_->file < 0) impl_->file = ::memfd_create("ashlar-host-device", MFD_CLOEXEC);
  if (impl_->file < 0 || ::ftruncate(impl_->file, static_cast<off_t>(end->count())) != 0)
    return full;
  const PageHandle handle{impl_->next_handle};
  const auto enter = [&] { impl_->pages.emplace(handle, Page{impl_->file_size, size}); };
  if (!with_host_memory(enter)) return no_host_memory();
  ++impl_->next_handle;
  impl_->file_size = *end;
  impl_->held += size;
  return handle;
}

Status HostDevice::page_release(PageHandle handle) noexcept {
  const std::lock_guard lock(impl_->mutex);
  const auto it = impl_->pages.find(handle);
  if (it == impl_->pages.end() || it->second.is_released)
    return dead_handle("HostDevice: page_release of a dead handle");
  it->second.is_released = true;
  if (it->second.mappings == 0) impl_->free_page(it);
  return Status::ok();
}

Status HostDevice::page_map(Address at, Bytes size, PageHandle handle) noexcept {
  const std::lock_guard lock(impl_->mutex);
  const auto page = impl_->pages.find(handle);
  if (page == impl_->pages.end() || page->second.is_released)
    return dead_handle("HostDevice: page_map of a dead handle");
  if (page->second.size != size) return invalid("HostDevice: a page handle must be mapped whole");
  if (Bytes{at.value()} % kPageSize != 0)
    return invalid("HostDevice: page_map at an address that is not a multiple of the page size");
  Reservation* const range = impl_->reservation_of(at, size);
  if (range == nullptr) return invalid("HostDevice: page_map outside any reservation");
  const auto after = range->mappings.lower_bound(at);
  const bool overlaps_next = after != range->mappings.end() && after->first < at + size;
  const bool overlaps_previous = after != range->mappings.begin() &&
                                 at < std::prev(after)->first + std::prev(after)->second.size;
  ASHLAR_REQUIRE(!overlaps_next && !overlaps_previous, Code::kBusy,
                 "HostDevice: page_map over an existing mapping");
  Mappings::iterator recorded;
  const auto enter = [&] { recorded = range->mappings.emplace(at, Mapping{size, handle}).first; };
  if (!with_host_memory(enter)) return no_host_memory();
  const void* mapped = ::mmap(at.pointer(), size.count(), PROT_NONE, MAP_SHARED | MAP_FIXED,
                              impl_->file, static_cast<off_t>(page->second.offset.count()));
  if (mapped == MAP_FAILED) {
    range->mappings.erase(recorded);
    return {Code::kDriverError, "HostDevice: the kernel refused the mapping"};
  }
  ++page->second.mappings;
  return Status::ok();
}

Status HostDevice::page_access(Address at, Bytes size) noexcept {
  const std::lock_guard lock(impl_->mutex);
  Reservation* const range = impl_->reservation_of(at, size);
  if (range == nullptr) return invalid("HostDevice: page_access outside any reservation");
  const auto [first, last] = Impl::tiling(range, at, size);
  if (first == last)
    return invalid("HostDevice: page_access of a range that is not whole mappings");
  for (auto it = first; it != last; ++it) {
    if (::mprotect(it->first.pointer(), it->second.size.count(), PROT_READ | PROT_WRITE) == 0)
      continue;
    for (auto undo = first; undo != it; ++undo) {  // D1: undo what this call has changed
      if (!undo->second.has_access)
        ::mprotect(undo->first.pointer(), undo->second.size.count(), PROT_NONE);
    }
    return {Code::kDriverError, "HostDevice: the kernel refused access"};
  }
  for (auto it = first; it != last; ++it) it->second.has_access = true;
  return Status::ok();
}

Status HostDevice::page_unmap(Address at, Bytes size) noexcept {
  const std::lock_guard lock(impl_->mutex);
  Reservation* const range = impl_->reservation_of(at, size);
  if (range == nullptr) return invalid("HostDevice: page_unmap outside any reservation");
  const auto [first, last] = Impl::tiling(range, at, size);
  if (first == last) return invalid("HostDevice: page_unmap of a range that is not whole mappings");
  const void* mapped = ::mmap(at.pointer(), size.count(), PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (mapped == MAP_FAILED) return {Code::kDriverError, "HostDevice: the kernel refused to unmap"};
  for (auto it = first; it != last; ++it) {
    const auto page = impl_->pages.find(it->second.page);
    --page->second.mappings;
    if (page->second.mappings == 0 && page->second.is_released) impl_->free_page(page);
  }
  range->mappings.erase(first, last);
  return Status::ok();
}

}  // namespace ashlar::inline v0::device
