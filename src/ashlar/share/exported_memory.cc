#include <ashlar/share/exported_memory.h>

#include <sys/random.h>
#include <unistd.h>

#include <utility>

#include <ashlar/base/exceptions.h>

namespace ashlar::inline v0::share {
namespace {

using device::ShareHandle;

/// The handle of one piece of memory.
Result<ShareHandle> handle_of(const cache::PhysicalRange& range) noexcept {
  device::Sharing* const sharing = range.source->sharing();
  if (sharing == nullptr)
    return Status{Code::kUnsupported, "the device shares no memory with other processes"};
  if (range.page.value() != 0) return sharing->page_export(range.page);
  const Result<PageHandle> page = sharing->segment_page(range.address);
  return page.is_ok() ? sharing->page_export(page.value()) : sharing->segment_export(range.address);
}

std::uint64_t random_number() noexcept {
  std::uint64_t number = 0;
  while (getrandom(&number, sizeof number, 0) != sizeof number) {
  }
  return number;
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
  descriptors_.close_all();
  if (allocator_ != nullptr) static_cast<void>(allocator_->unpin(range_));
}

MemoryExporter::MemoryExporter(cache::CachingAllocator& allocator) noexcept
    : allocator_(allocator), number_(random_number()) {}

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
    header.parts.push_back({range.size, range.generation, handle.value()});
    out->is_whole_segment_ = handle.value().kind == device::ShareKind::kSegment;
    if (handle.value().kind == device::ShareKind::kDescriptor)
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
