#include <ashlar/share/exported_memory.h>

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <ashlar/base/checked.h>
#include <ashlar/base/exceptions.h>

namespace ashlar::inline v0::share {
namespace {

using device::ShareHandle;
using device::ShareKind;

/// The size of what the handle stands for: a segment that is one page may be shorter than the page. Other pages are whole ones.
Bytes shared_size(const cache::PhysicalRange& range, ShareKind kind) noexcept {
  if (kind == ShareKind::kSegment) return range.size;
  return checked_round_up(range.size, range.source->traits().page_granularity).value_or(range.size);
}

/// The handle of a physical range.
Result<ShareHandle> handle_of(const cache::PhysicalRange& range) noexcept {
  device::Sharing* const sharing = range.source->sharing();
  if (sharing == nullptr)
    return Status{Code::kUnsupported, "the device shares no memory with other processes"};
  if (range.page.value() != 0) return sharing->page_export(range.page);
  const Result<PageHandle> page = sharing->segment_page(range.address);
  return page.is_ok() ? sharing->page_export(page.value()) : sharing->segment_export(range.address);
}

/// A number that no other exporter has. Where the kernel gives none, one of this process and this exporter.
std::uint64_t exporter_number(const void* exporter) noexcept {
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof number, GRND_NONBLOCK) == sizeof number) return number;
  return reinterpret_cast<std::uintptr_t>(exporter) ^ static_cast<std::uint64_t>(getpid()) << 48;
}

}  // namespace

void ExportedMemory::swap(ExportedMemory& other) noexcept {
  std::swap(allocator_, other.allocator_);
  std::swap(range_, other.range_);
  std::swap(header_, other.header_);
  std::swap(descriptors_, other.descriptors_);
  std::swap(is_whole_segment_, other.is_whole_segment_);
}

ExportedMemory::~ExportedMemory() {
  if (allocator_ != nullptr) static_cast<void>(allocator_->unpin(range_));
}

MemoryExporter::MemoryExporter(cache::CachingAllocator& allocator) noexcept
    : allocator_(allocator), number_(exporter_number(this)) {}

Status MemoryExporter::fill(const std::vector<cache::PhysicalRange>& ranges,
                            ExportedMemory* out) const {
  ShareHeader header;
  header.exporter = number_;
  header.process = getpid();
  header.segment = ranges.front().segment;
  header.segment_size = ranges.front().segment_size;
  header.parts_offset = ranges.front().address - ranges.front().segment;
  header.offset = out->range_.base - ranges.front().address;
  header.size = out->range_.size;
  header.parts.reserve(ranges.size());
  out->descriptors_.reserve(ranges.size());  // so that no descriptor is lost for want of memory
  for (const cache::PhysicalRange& range : ranges) {
    const Result<ShareHandle> handle = handle_of(range);
    if (!handle.is_ok()) return handle.status();
    const Bytes size = shared_size(range, handle.value().kind);
    header.parts.push_back({size, range.generation, handle.value()});
    header.segment_size = std::max(header.segment_size, header.parts_offset + size);
    out->is_whole_segment_ = handle.value().kind == ShareKind::kSegment;
    if (handle.value().kind == ShareKind::kDescriptor)
      out->descriptors_.add(handle.value().descriptor);
  }
  const Result<device::DeviceUuid> uuid = ranges.front().source->sharing()->uuid();
  if (!uuid.is_ok()) return uuid.status();
  header.uuid = uuid.value();
  out->header_ = write_header(header);
  return Status::ok();
}

Result<ExportedMemory> MemoryExporter::export_memory(Address address) noexcept {
  const Result<cache::PinnedRange> pinned = allocator_.pin(address);
  if (!pinned.is_ok()) return pinned.status();
  ExportedMemory memory;
  memory.allocator_ = &allocator_;
  memory.range_ = pinned.value();
  std::vector<cache::PhysicalRange> ranges;
  Status filled = cache::physical_ranges(allocator_, memory.range_, &ranges);
  if (!filled.is_ok()) return filled;
  if (!with_host_memory([&] { filled = fill(ranges, &memory); }))
    return Status{Code::kHostOutOfMemory, "no memory for the header of shared memory"};
  if (!filled.is_ok()) return filled;
  return memory;
}

}  // namespace ashlar::inline v0::share
