// Memory's part of sharing: pages and segments of this machine for others, and theirs here.
#include <unistd.h>

#include <algorithm>

#include "spec/gpu/memory_sharing.h"

namespace ashlar::spec {
namespace {

using device::ShareHandle;
using device::ShareKind;

constexpr Status kNoDescriptors{Code::kDriverError, "the process has no descriptor left"};

Status refuse_handle(FaultLog& faults) {
  faults.misuse(FaultKind::kBadMapping, "a handle of no memory of that size");
  return {Code::kInvalidArgument, "a handle of no memory of that size"};
}

}  // namespace

MemorySharing::~MemorySharing() {
  for (std::uint32_t i = 0; i < memory_.pages_.size(); ++i) {
    const Memory::Page& page = memory_.pages_[i];
    if (page.is_live() && page.opened_file >= 0) memory_.drop_file(i);
  }
  for (const OpenedSegment& opened : opened_) close(opened.descriptor);
}

Result<ShareKind> MemorySharing::page_kind(std::uint32_t device, PageHandle handle) {
  const Result<std::uint32_t> page = memory_.find_page(device, handle, "page kind");
  if (!page.is_ok()) return page.status();
  return memory_.pages_[page.value()].kind;
}

Result<ShareHandle> MemorySharing::export_page(std::uint32_t device, PageHandle handle) {
  const Result<std::uint32_t> index = memory_.find_page(device, handle, "page export");
  if (!index.is_ok()) return index.status();
  const Memory::Page& page = memory_.pages_[index.value()];
  ASHLAR_REQUIRE(
      page.kind != ShareKind::kNone && page.opened_file < 0, Code::kUnsupported,
      "the page was made without handles to share: make the allocator over a ShareableDevice");
  const std::optional<ShareHandle> made =
      memory_.files_.handle_of(page.first_byte, Bytes{page.size}, page.kind);
  if (!made.has_value()) return kNoDescriptors;
  return *made;
}

Result<PageHandle> MemorySharing::import_page(std::uint32_t device, const ShareHandle& handle,
                                              Bytes size) {
  const std::optional<SharedFiles::Found> found = memory_.files_.find(handle);
  if (!found.has_value()) return refuse_handle(faults_);
  std::uint32_t index = 0;
  bool is_here = false;
  for (std::uint32_t i = 0; i < memory_.pages_.size(); ++i) {
    const Memory::Page& page = memory_.pages_[i];
    const bool is_opened = page.opened_file >= 0 && page.opened_number == found->file;
    if (!page.is_live() || (!is_opened && found->memory != page.first_byte)) continue;
    index = i;
    is_here = true;
  }
  if (found->size != size || (is_here && memory_.pages_[index].device != device) ||
      (found->memory.has_value() && !is_here)) {
    close(found->descriptor);
    return refuse_handle(faults_);
  }
  if (is_here) {
    close(found->descriptor);
    return memory_.add_handle(index);
  }
  index = memory_.pages_.add();
  memory_.pages_[index] = Memory::Page{size.count(), memory_.next_byte_, device,     0, 0,
                                       handle.kind,  found->descriptor,  found->file};
  memory_.next_byte_ += size.count();
  memory_.count(device, HeldKind::kOpened, size);
  return memory_.add_handle(index);
}

Result<ShareHandle> MemorySharing::export_segment(std::uint32_t device, Address base) {
  const Memory::Region* const region = memory_.region_of(base.value());
  if (region == nullptr || region->begin != base.value() || region->kind != HeldKind::kSegment ||
      region->device != device) {
    faults_.misuse(FaultKind::kBadMapping,
                   "segment export: not the start of a segment: ", base.value());
    return Status{Code::kInvalidArgument, "not the start of a segment of this device"};
  }
  const std::optional<ShareHandle> made =
      memory_.files_.handle_of(region->begin, Bytes{region->size}, ShareKind::kSegment);
  if (!made.has_value()) return kNoDescriptors;
  return *made;
}

MemorySharing::OpenedSegment* MemorySharing::opened_at(std::uint64_t base) {
  const auto found = std::find_if(opened_.begin(), opened_.end(),
                                  [&](const OpenedSegment& each) { return each.base == base; });
  return found == opened_.end() ? nullptr : &*found;
}

Result<Address> MemorySharing::open_segment(std::uint32_t device, const ShareHandle& handle) {
  const std::optional<SharedFiles::Found> found =
      handle.kind == ShareKind::kSegment ? memory_.files_.find(handle) : std::nullopt;
  if (!found.has_value()) return refuse_handle(faults_);
  for (OpenedSegment& opened : opened_) {
    if (opened.file != found->file) continue;
    close(found->descriptor);
    ++opened.times;
    return Address{opened.base};
  }
  const std::optional<Address> at =
      found->memory.has_value()
          ? std::nullopt
          : memory_.space_.take(found->size, AddressSpace::kGrain, memory_.rng_);
  if (!at.has_value()) {
    close(found->descriptor);
    return Status{Code::kInvalidArgument, "a handle of this process, or no addresses are left"};
  }
  memory_.insert_region(
      Memory::Region{at->value(), found->size.count(), device, HeldKind::kOpened});
  opened_.push_back({at->value(), found->file, 1, found->descriptor});
  return *at;
}

Result<Bytes> MemorySharing::size_to_close(std::uint32_t device, Address base) {
  const OpenedSegment* const opened = opened_at(base.value());
  const Memory::Region* const region = memory_.region_of(base.value());
  if (opened == nullptr || region->device != device) {
    faults_.misuse(FaultKind::kBadFree, "segment close: none is open at ", base.value());
    return Status{Code::kInvalidArgument, "no opened segment begins there"};
  }
  return opened->times > 1 ? Bytes{} : Bytes{region->size};
}

void MemorySharing::close_segment(Address base) {
  OpenedSegment* const opened = opened_at(base.value());
  ASHLAR_ASSERT(opened != nullptr, "memory: close of what is not open");
  if (--opened->times > 0) return;
  close(opened->descriptor);
  opened_.erase(opened_.begin() + (opened - opened_.data()));
  memory_.erase_region(memory_.region_of(base.value()));
}

SharedBytes MemorySharing::shared_bytes(Address at) const {
  const std::size_t i = memory_.mapping_at_or_after(at.value());
  if (i < memory_.mappings_.size() && memory_.mappings_[i].begin <= at.value()) {
    const Memory::Page& page = memory_.pages_[memory_.mappings_[i].page];
    const int file =
        page.opened_file >= 0 ? page.opened_file : memory_.files_.file_of(page.first_byte);
    return {file, Bytes{at.value() - memory_.mappings_[i].begin}};
  }
  const Memory::Region* const region = memory_.region_of(at.value());
  if (region == nullptr) return {};
  const Bytes offset{at.value() - region->begin};
  if (region->kind == HeldKind::kSegment) return {memory_.files_.file_of(region->begin), offset};
  for (const OpenedSegment& opened : opened_) {
    if (opened.base == region->begin) return {opened.descriptor, offset};
  }
  return {};
}

Bytes MemorySharing::segment_size(Address base) const {
  const Memory::Region* const region = memory_.region_of(base.value());
  const bool is_one = region != nullptr && region->begin == base.value() &&
                      (region->kind == HeldKind::kSegment || region->kind == HeldKind::kOpened);
  return is_one ? Bytes{region->size} : Bytes{};
}

int MemorySharing::file_of(PageHandle handle) {
  const std::uint32_t* const index = memory_.handles_.find(handle.value());
  if (index == nullptr) return -1;
  const Memory::Page& page = memory_.pages_[*index];
  return page.opened_file >= 0 ? page.opened_file : memory_.files_.file_of(page.first_byte);
}

std::vector<MemoryPlace> MemorySharing::places_of(PageHandle handle) {
  std::vector<MemoryPlace> places;
  const std::uint32_t* const page = memory_.handles_.find(handle.value());
  for (const Memory::Mapping& mapping : memory_.mappings_) {
    if (page != nullptr && mapping.page == *page)
      places.push_back({Address{mapping.begin}, Bytes{mapping.size}});
  }
  return places;
}

}  // namespace ashlar::spec
