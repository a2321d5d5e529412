#include "spec/gpu/memory.h"

#include <unistd.h>

#include <algorithm>

namespace ashlar::spec {
namespace {

constexpr std::uint8_t kPageMark = 0x30;
constexpr std::uint64_t kPageBytesFirst = std::uint64_t{1} << 63;  // above every address
constexpr std::size_t kRegionsUsual = 16;  // most worlds have fewer, and then nothing grows

bool is_power_of_two_or_zero(std::uint64_t n) { return (n & (n - 1)) == 0; }

}  // namespace

Memory::Memory(const SimGpuOptions& options, FaultLog& faults)
    : space_(options.adversarial, options.reuses_addresses, options.first_address),
      rng_(options.seed ^ options.address_seed),
      faults_(faults),
      granularity_(options.page_granularity),
      handles_(kPageMark, options.adversarial, 0),
      next_byte_(kPageBytesFirst) {
  devices_.reserve(options.capacities.size());
  regions_.reserve(kRegionsUsual);
  for (const Bytes capacity : options.capacities)
    devices_.push_back(DeviceMemory{capacity, Ledger{}});
}

Status Memory::refuse(const char* why, Address at, Bytes size) {
  faults_.misuse(FaultKind::kBadMapping, why, ": ", at.value(), " + ", size.count());
  return Status{Code::kInvalidArgument, why};
}

device::MemoryInfo Memory::info(std::uint32_t device) const {
  const DeviceMemory& memory = devices_[device];
  const Bytes total = memory.capacity == Bytes{0} ? kUnlimitedTotal : memory.capacity;
  const Bytes used = memory.ledger.device_bytes();
  return device::MemoryInfo{used > total ? Bytes{0} : total - used, total};
}

bool Memory::fits(std::uint32_t device, Bytes size) const {
  const DeviceMemory& memory = devices_[device];
  if (memory.capacity == Bytes{0}) return true;
  const Bytes used = memory.ledger.device_bytes();
  return used <= memory.capacity && size <= memory.capacity - used;
}

void Memory::count(std::uint32_t device, HeldKind kind, Bytes size) {
  Ledger& ledger = devices_[device].ledger;
  HeldCount& held = ledger.of(kind);
  ++held.count;
  held.bytes += size;
  ledger.device_bytes_peak = std::max(ledger.device_bytes_peak, ledger.device_bytes());
}

void Memory::uncount(std::uint32_t device, HeldKind kind, Bytes size) {
  HeldCount& held = devices_[device].ledger.of(kind);
  --held.count;
  held.bytes -= size;
}

const Memory::Region* Memory::region_of(std::uint64_t address) const {
  auto it = std::upper_bound(
      regions_.begin(), regions_.end(), address,
      [](std::uint64_t value, const Region& region) { return value < region.begin; });
  if (it == regions_.begin()) return nullptr;
  --it;
  return address - it->begin < it->size ? &*it : nullptr;
}

void Memory::insert_region(const Region& region) {
  const auto it =
      std::upper_bound(regions_.begin(), regions_.end(), region.begin,
                       [](std::uint64_t value, const Region& at) { return value < at.begin; });
  regions_.insert(it, region);
  count(region.device, region.kind, Bytes{region.size});
}

void Memory::erase_region(const Region* region) {
  const Region gone = *region;
  regions_.erase(regions_.begin() + (region - regions_.data()));
  uncount(gone.device, gone.kind, Bytes{gone.size});
  if (gone.kind == HeldKind::kSegment) files_.close(gone.begin);
  if (gone.kind != HeldKind::kRegistered) space_.give_back(Address{gone.begin}, Bytes{gone.size});
}

Result<Address> Memory::allocate(std::uint32_t device, Bytes size, HeldKind kind) {
  ASHLAR_REQUIRE(size > Bytes{0}, Code::kInvalidArgument, "a size of zero");
  if (kind == HeldKind::kSegment)
    ASHLAR_REQUIRE(fits(device, size), Code::kOutOfMemory, "the device is full");
  const std::optional<Address> at = space_.take(size, AddressSpace::kGrain, rng_);
  ASHLAR_REQUIRE(at.has_value(), Code::kOutOfMemory, "no address range of that size is left");
  insert_region(Region{at->value(), size.count(), device, kind});
  return *at;
}

Status Memory::register_range(std::uint32_t device, Address base, Bytes size) {
  constexpr std::uint64_t kKernelPage = 4096;
  ASHLAR_REQUIRE(size > Bytes{0} && size.count() % kKernelPage == 0 &&
                     base.value() % kKernelPage == 0 && size.count() <= ~base.value(),
                 Code::kInvalidArgument, "not whole pages of the host");
  const auto behind = std::lower_bound(
      regions_.begin(), regions_.end(), base.value() + size.count(),
      [](const Region& region, std::uint64_t value) { return region.begin < value; });
  const bool is_apart = behind == regions_.begin() ||
                        std::prev(behind)->begin + std::prev(behind)->size <= base.value();
  ASHLAR_REQUIRE(is_apart, Code::kInvalidArgument, "some of it is registered, or a device's");
  insert_region(Region{base.value(), size.count(), device, HeldKind::kRegistered});
  return Status::ok();
}

std::optional<Bytes> Memory::size_to_free(std::uint32_t device, Address base, HeldKind kind) {
  const Region* region = region_of(base.value());
  if (region != nullptr && region->begin == base.value() && region->kind == kind &&
      region->device == device) {
    return Bytes{region->size};
  }
  const char* why = region == nullptr          ? "an address not handed out, or given back already"
                    : region->kind != kind     ? "memory of another kind"
                    : region->device != device ? "memory of another device"
                                               : "an address inside of a range";
  faults_.misuse(FaultKind::kBadFree, "free of ", held_name(kind), " ", base.value(), ": ", why);
  return std::nullopt;
}

void Memory::free(std::uint32_t device, Address base, HeldKind kind) {
  const Region* region = region_of(base.value());
  ASHLAR_ASSERT(region != nullptr && region->kind == kind && region->device == device,
                "memory: free of what is not held");
  static_cast<void>(device);
  static_cast<void>(kind);
  erase_region(region);
}

Result<Address> Memory::reserve(std::uint32_t device, Bytes size, Bytes alignment) {
  if (!is_paged(size))
    return refuse("reserve: the size is no multiple of the granularity", Address{}, size);
  if (!is_power_of_two_or_zero(alignment.count())) {
    return refuse("reserve: the alignment is no power of two", Address{}, alignment);
  }
  const DeviceMemory& on = devices_[device];
  const Bytes reserved = on.ledger.reservations.bytes;
  ASHLAR_REQUIRE(reserved <= on.addresses_max && size <= on.addresses_max - reserved,
                 Code::kOutOfAddresses, "the device has no addresses left");
  const std::uint64_t unit = std::max(alignment.count(), granularity_.count());
  const std::optional<Address> at = space_.take(size, unit, rng_);
  ASHLAR_REQUIRE(at.has_value(), Code::kOutOfAddresses, "no address range of that size is left");
  insert_region(Region{at->value(), size.count(), device, HeldKind::kReservation});
  return *at;
}

std::size_t Memory::mapping_at_or_after(std::uint64_t address) const {
  const auto ends_before = [](const Mapping& at, std::uint64_t value) {
    return at.begin + at.size <= value;
  };
  const auto it = std::lower_bound(mappings_.begin(), mappings_.end(), address, ends_before);
  return static_cast<std::size_t>(it - mappings_.begin());
}

Status Memory::release_reservation(std::uint32_t device, Address base, Bytes size) {
  const Region* region = region_of(base.value());
  const bool whole = region != nullptr && region->kind == HeldKind::kReservation &&
                     region->device == device && region->begin == base.value() &&
                     region->size == size.count();
  if (!whole) return refuse("address release: not a whole reservation of this device", base, size);
  const std::size_t i = mapping_at_or_after(base.value());
  if (i < mappings_.size() && mappings_[i].begin < base.value() + size.count()) {
    static_cast<void>(refuse("address release: something is still mapped there", base, size));
    return Status{Code::kBusy, "something is still mapped there"};
  }
  erase_region(region);
  return Status::ok();
}

void Memory::drop_file(std::uint32_t index) {
  Page& page = pages_[index];
  if (page.opened_file >= 0) close(page.opened_file);
  else files_.close(page.first_byte);
  page.opened_file = -1;
}

PageHandle Memory::add_handle(std::uint32_t index) {
  const std::uint64_t value = handles_.add();
  *handles_.find(value) = index;
  ++pages_[index].handles;
  return PageHandle{value};
}

Result<PageHandle> Memory::create_page(std::uint32_t device, Bytes size, device::ShareKind kind) {
  if (!is_paged(size))
    return refuse("page create: the size is no multiple of the granularity", Address{}, size);
  ASHLAR_REQUIRE(fits(device, size), Code::kOutOfMemory, "the device is full");
  const std::uint32_t index = pages_.add();
  pages_[index] = Page{size.count(), next_byte_, device, 0, 0, kind};
  next_byte_ += size.count();
  count(device, HeldKind::kPage, size);
  return add_handle(index);
}

void Memory::drop_page_if_unused(std::uint32_t index) {
  const Page& page = pages_[index];
  if (page.is_live()) return;
  uncount(page.device, page.held_as(), Bytes{page.size});
  if (page.kind != device::ShareKind::kNone) drop_file(index);
  pages_.remove(index);
}

Result<std::uint32_t> Memory::find_page(std::uint32_t device, PageHandle handle, const char* call) {
  const std::uint32_t* found = handles_.find(handle.value());
  if (found == nullptr) {
    faults_.misuse(FaultKind::kDeadPage, call, " of a dead or foreign handle");
    return Status{Code::kInvalidHandle, "no such page"};
  }
  if (pages_[*found].device != device) {
    faults_.misuse(FaultKind::kWrongDevice, call, " through another device");
    return Status{Code::kWrongDevice, "a page of another device"};
  }
  return *found;
}

Status Memory::release_page(std::uint32_t device, PageHandle handle) {
  const Result<std::uint32_t> page = find_page(device, handle, "page release");
  if (!page.is_ok()) return page.status();
  handles_.remove(handle.value());
  --pages_[page.value()].handles;
  drop_page_if_unused(page.value());
  return Status::ok();
}

Status Memory::map(std::uint32_t device, Address at, Bytes size, PageHandle handle) {
  const Result<std::uint32_t> page = find_page(device, handle, "page map");
  if (!page.is_ok()) return page.status();
  const std::uint32_t index = page.value();
  if (pages_[index].size != size.count()) return refuse("page map: not the whole handle", at, size);
  if (at.value() % granularity_.count() != 0)
    return refuse("page map: the address is not aligned", at, size);
  const Region* region = region_of(at.value());
  const bool inside = region != nullptr && region->kind == HeldKind::kReservation &&
                      size.count() <= region->size - (at.value() - region->begin);
  if (!inside) return refuse("page map: not inside one reservation", at, size);
  const std::size_t i = mapping_at_or_after(at.value());
  if (i < mappings_.size() && mappings_[i].begin < at.value() + size.count()) {
    return refuse("page map: something is mapped there", at, size);
  }
  mappings_.insert(mappings_.begin() + static_cast<std::ptrdiff_t>(i),
                   Mapping{at.value(), size.count(), index, 0});
  ++pages_[index].mappings;
  count(device, HeldKind::kMapping, size);
  return Status::ok();
}

// Both set_access and unmap take a run of whole mappings without a hole.
Status Memory::can_unmap(std::uint32_t device, Address at, Bytes size) {
  if (size == Bytes{0}) return refuse("unmap: a size of zero", at, size);
  const std::uint64_t begin = at.value();
  const std::uint64_t end = begin + size.count();
  std::uint64_t reached = begin;
  for (std::size_t i = mapping_at_or_after(begin);
       i < mappings_.size() && mappings_[i].begin == reached; ++i) {
    if (pages_[mappings_[i].page].device != device) break;
    reached += mappings_[i].size;
    if (reached >= end) break;
  }
  if (reached != end) return refuse("unmap: not a run of whole mappings of this device", at, size);
  return Status::ok();
}

void Memory::unmap(Address at, Bytes size) {
  const std::size_t first = mapping_at_or_after(at.value());
  std::size_t last = first;
  for (; last < mappings_.size() && mappings_[last].begin < at.value() + size.count(); ++last) {
    const std::uint32_t index = mappings_[last].page;
    uncount(pages_[index].device, HeldKind::kMapping, Bytes{mappings_[last].size});
    --pages_[index].mappings;
    drop_page_if_unused(index);
  }
  mappings_.erase(mappings_.begin() + static_cast<std::ptrdiff_t>(first),
                  mappings_.begin() + static_cast<std::ptrdiff_t>(last));
}

Status Memory::set_access(std::uint32_t device, Address at, Bytes size,
                          const SimGpuOptions& options) {
  const std::uint64_t begin = at.value();
  const std::uint64_t end = begin + size.count();
  const std::size_t first = mapping_at_or_after(begin);
  std::size_t last = first;
  std::uint64_t reached = begin;
  for (; last < mappings_.size() && reached < end && mappings_[last].begin == reached; ++last) {
    reached += mappings_[last].size;
  }
  if (reached != end || begin == end)
    return refuse("page access: not a run of whole mappings", at, size);
  for (std::size_t i = first; i < last; ++i) {
    ASHLAR_REQUIRE(spec::can_reach(options, device, pages_[mappings_[i].page].device),
                   Code::kUnsupported, "the device cannot use the other's memory");
  }
  for (std::size_t i = first; i < last; ++i) mappings_[i].access |= std::uint64_t{1} << device;
  return Status::ok();
}

Memory::Reach Memory::reach(std::uint32_t device, Address at, Bytes size) const {
  const std::uint64_t begin = at.value();
  const std::uint64_t end = begin + size.count();
  const Region* region = region_of(begin);
  if (region == nullptr || end - region->begin > region->size) return Reach::kUnmapped;
  if (region->kind == HeldKind::kPinned || region->kind == HeldKind::kRegistered)
    return Reach::kAccessible;
  if (region->kind == HeldKind::kSegment) {
    const bool is_reached = (devices_[device].reaches >> region->device & 1) != 0;
    return region->device == device || is_reached ? Reach::kAccessible : Reach::kOtherDevice;
  }
  if (region->kind == HeldKind::kOpened)
    return region->device == device ? Reach::kAccessible : Reach::kOtherDevice;
  std::uint64_t reached = begin;
  for (std::size_t i = mapping_at_or_after(begin); reached < end; ++i) {
    if (i == mappings_.size() || mappings_[i].begin > reached) return Reach::kUnmapped;
    if ((mappings_[i].access >> device & 1) == 0) return Reach::kNoAccess;
    reached = mappings_[i].begin + mappings_[i].size;
  }
  return Reach::kAccessible;
}

void Memory::find_pieces(Address at, Bytes size, MemoryPieces* out) const {
  out->clear();
  const std::uint64_t end = at.value() + size.count();
  std::uint64_t reached = at.value();
  const auto add = [out, &reached](std::uint64_t byte, std::uint64_t until) {
    if (!out->empty() && (*out)[out->size() - 1].end == byte) {
      (*out)[out->size() - 1].end += until - reached;
    } else {
      out->push_back(MemoryPiece{reached, byte, byte + (until - reached)});
    }
    reached = until;
  };
  for (std::size_t i = mapping_at_or_after(reached);
       i < mappings_.size() && mappings_[i].begin < end; ++i) {
    const Mapping& mapping = mappings_[i];
    if (mapping.begin > reached) add(reached, mapping.begin);
    add(pages_[mapping.page].first_byte + (reached - mapping.begin),
        std::min(end, mapping.begin + mapping.size));
  }
  if (reached < end) add(reached, end);
}

std::uint64_t Memory::byte_at(Address at) const {
  const std::size_t i = mapping_at_or_after(at.value());
  if (i == mappings_.size() || mappings_[i].begin > at.value()) return at.value();
  return pages_[mappings_[i].page].first_byte + (at.value() - mappings_[i].begin);
}

}  // namespace ashlar::spec
