#include <ashlar/share/opened_ranges.h>

#include <algorithm>
#include <iterator>

#include <ashlar/base/exceptions.h>
#include <ashlar/device/relaxed_capture.h>

namespace ashlar::inline v0::share {
namespace {

using device::Device;
using device::RelaxedCapture;  // where the device refuses it, its calls are made all the same
using device::ShareKind;

/// visit(part, offset in the segment) for each; stops when it returns false.
template <class Visit>
void for_each_part(const ShareHeader& header, Visit visit) {
  Bytes offset = header.parts_offset;
  for (const SharedPart& part : header.parts) {
    if (!visit(part, offset)) return;
    offset += part.size;
  }
}

/// Are the parts whole pages of the device, each where a page may be?
bool are_pages(const Device& device, const ShareHeader& header) {
  const Bytes page = device.traits().page_granularity;
  bool are = device.traits().has_virtual_memory && header.parts_offset % page == 0 &&
             header.segment_size % page == 0;
  for (const SharedPart& part : header.parts) are = are && part.size % page == 0;
  return are;
}

/// How many of the parts the mirror has; nullopt if something else is in the way of one.
std::optional<std::size_t> parts_there(const OpenedRanges::Mirror& mirror,
                                       const ShareHeader& header) {
  std::optional<std::size_t> there = 0;
  for_each_part(header, [&](const SharedPart& part, Bytes offset) {
    // The last page that begins before the part's end may lie in its way.
    const auto behind = mirror.pages.lower_bound(offset + part.size);
    if (behind == mirror.pages.begin()) return true;
    const auto& [at, page] = *std::prev(behind);
    const bool is_it = !page.is_barred && at == offset && page.size == part.size &&
                       page.generation == part.generation;
    if (is_it) ++*there;
    else if (at + page.size > offset) there.reset();
    return there.has_value();
  });
  return there;
}

/// Asks the driver once more to unmap the mirror's barred pages. Are there none left?
bool unmap_barred(OpenedRanges::Mirror* mirror) noexcept {
  std::size_t left = 0;
  std::erase_if(mirror->pages, [&](const OpenedRanges::Pages::value_type& each) {
    const auto& [offset, page] = each;
    if (!page.is_barred) return false;
    const RelaxedCapture relaxed(*mirror->device);
    const bool is_gone = mirror->device->page_unmap(mirror->base + offset, page.size).is_ok();
    left += is_gone ? 0 : 1;
    return is_gone;
  });
  return left == 0;
}

}  // namespace

Result<Device*> OpenedRanges::find_device(const device::DeviceUuid& uuid) noexcept {
  Status failure{Code::kNotFound, "shared memory: no device here is the exporter's GPU"};
  for (Device* const device : devices_) {
    device::Sharing* const sharing = device->sharing();
    if (sharing == nullptr) continue;
    const Result<device::DeviceUuid> name = sharing->uuid();
    if (!name.is_ok()) failure = name.status();
    else if (name.value() == uuid) return device;
  }
  return failure;
}

Result<OpenedRanges::Range> OpenedRanges::open(const ShareHeader& header,
                                               std::span<const int> descriptors) {
  ASHLAR_REQUIRE(descriptors.size() == header.descriptors(), Code::kInvalidArgument,
                 "shared memory: not as many descriptors as the header says");
  ASHLAR_REQUIRE(!birth_.is_forked(), Code::kForked, "shared memory: opened by the parent process");
  const MutexGuard guard(lock_);
  const Result<Device*> device = find_device(header.uuid);
  if (!device.is_ok()) return device.status();
  const RelaxedCapture relaxed(*device.value());
  retry_refused();
  return header.parts.front().handle.kind == ShareKind::kSegment
             ? open_segment(*device.value(), header)
             : open_pages(*device.value(), header, descriptors);
}

Result<OpenedRanges::Range> OpenedRanges::open_segment(Device& device, const ShareHeader& header) {
  refused_.reserve(0);
  const Result<Address> base = device.sharing()->segment_open(header.parts.front().handle);
  if (!base.is_ok()) return base.status();
  refused_.note_segment();
  return Range{&device, nullptr, base.value(), Bytes{}, header.segment_size};
}

Result<OpenedRanges::Mirror*> OpenedRanges::find_mirror(Device& device, const ShareHeader& header) {
  Mirror* best = nullptr;
  std::size_t most = 0;
  for (const std::unique_ptr<Mirror>& mirror : mirrors_) {
    if (mirror->exporter != header.exporter || mirror->segment != header.segment ||
        mirror->size != header.segment_size || mirror->device != &device)
      continue;
    const std::optional<std::size_t> there = parts_there(*mirror, header);
    if (!there.has_value() || (best != nullptr && *there <= most)) continue;
    best = mirror.get();
    most = *there;
  }
  if (best != nullptr) return best;
  // Before the addresses are had, so that none are lost for want of memory.
  Mirror& made = *mirrors_.emplace_back(std::make_unique<Mirror>());
  const Bytes page = device.traits().page_granularity;
  const Result<Address> base = device.address_reserve(header.segment_size, page);
  if (!base.is_ok()) {
    mirrors_.pop_back();
    return base.status();
  }
  made = {header.exporter, header.segment, &device, base.value(), header.segment_size, {}};
  return &made;
}

Status OpenedRanges::map(Device& device, Address at, const SharedPart& part, int descriptor,
                         Page* record) noexcept {
  device::ShareHandle handle = part.handle;
  handle.descriptor = descriptor;
  const Result<PageHandle> page = device.sharing()->page_import(handle, part.size);
  if (!page.is_ok()) return page.status();
  Status status = device.page_map(at, part.size, page.value());
  if (status.is_ok()) {
    status = device.page_access(at, part.size);
    record->is_barred = !status.is_ok() && !device.page_unmap(at, part.size).is_ok();
  }
  refused_.release(device, page.value());  // the mapping keeps the memory
  return status;
}

Result<OpenedRanges::Range> OpenedRanges::open_pages(Device& device, const ShareHeader& header,
                                                     std::span<const int> descriptors) {
  ASHLAR_REQUIRE(are_pages(device, header), Code::kInvalidArgument,
                 "shared memory: its parts are no pages of this device");
  refused_.reserve(header.parts.size());
  const Result<Mirror*> found = find_mirror(device, header);
  if (!found.is_ok()) return found.status();
  Mirror& mirror = *found.value();
  Status status;
  Bytes reached = header.parts_offset;
  std::size_t next_descriptor = 0;
  for_each_part(header, [&](const SharedPart& part, Bytes offset) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    const int descriptor =
        part.handle.kind == ShareKind::kDescriptor ? descriptors[next_descriptor++] : -1;
    Page* page = nullptr;
    const bool has_memory = with_host_memory([&] { page = &mirror.pages[offset]; });
    if (!has_memory)
      status = {Code::kHostOutOfMemory, "no memory for the records of shared memory"};
    if (!has_memory) return false;
    if (page->uses == 0) {
      page->size = part.size;
      status = map(device, mirror.base + offset, part, descriptor, page);
    }
    if (page->is_barred) has_refused_mirrors_ = true;
    else if (!status.is_ok()) mirror.pages.erase(offset);
    if (!status.is_ok()) return false;
    *page = {part.size, part.generation, page->uses + 1, false};
    reached = offset + part.size;
    return true;
  });
  const Range range{&device, &mirror, mirror.base, header.parts_offset, reached};
  if (status.is_ok()) return range;
  drop(&mirror, range.first, range.end);
  return status;
}

void OpenedRanges::drop(Mirror* mirror, Bytes first, Bytes end) noexcept {
  for (auto it = mirror->pages.lower_bound(first); it != mirror->pages.end() && it->first < end;) {
    Page& page = it->second;
    const bool is_unused = --page.uses == 0;
    const bool is_gone =
        is_unused && mirror->device->page_unmap(mirror->base + it->first, page.size).is_ok();
    page.is_barred = is_unused && !is_gone;
    if (page.is_barred) has_refused_mirrors_ = true;
    it = is_gone ? mirror->pages.erase(it) : std::next(it);
  }
  if (mirror->pages.empty()) release(mirror);
}

void OpenedRanges::release(Mirror* mirror) noexcept {
  const RelaxedCapture relaxed(*mirror->device);
  if (!mirror->device->address_release(mirror->base, mirror->size).is_ok()) {
    has_refused_mirrors_ = true;
    return;
  }
  mirrors_.erase(std::find_if(mirrors_.begin(), mirrors_.end(),
                              [&](const auto& each) { return each.get() == mirror; }));
}

void OpenedRanges::retry_refused() noexcept {
  refused_.retry();
  if (!has_refused_mirrors_) return;
  has_refused_mirrors_ = false;
  for (std::size_t i = mirrors_.size(); i > 0; --i) {
    Mirror* const mirror = mirrors_[i - 1].get();
    has_refused_mirrors_ = !unmap_barred(mirror) || has_refused_mirrors_;
    if (mirror->pages.empty()) release(mirror);
  }
}

OpenedRanges::~OpenedRanges() {
  if (birth_.is_forked()) return;
  const MutexGuard guard(lock_);
  retry_refused();
}

void OpenedRanges::close(const Range& range) noexcept {
  if (birth_.is_forked()) return;
  const MutexGuard guard(lock_);
  retry_refused();
  const RelaxedCapture relaxed(*range.device);
  if (range.mirror != nullptr) drop(range.mirror, range.first, range.end);
  else refused_.close(*range.device, range.base);
}

}  // namespace ashlar::inline v0::share
