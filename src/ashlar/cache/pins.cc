#include <ashlar/cache/pins.h>

#include <algorithm>

#include <ashlar/base/exceptions.h>
#include <ashlar/cache/host_refusals.h>

namespace ashlar::inline v0::cache {
namespace {

void drop_hold(DeviceSegment& segment) noexcept {
  // What was done with the memory until now comes before its return by another thread.
  segment.holds.fetch_sub(1, std::memory_order_release);
}

}  // namespace

Result<PinnedRange> Pins::pin(const HeldAllocation& held) noexcept {
  DeviceSegment& segment = *held.segment;
  const PinnedRange range{held.base, held.size, generation_of(segment, held.base, held.size)};
  const MutexGuard guard(lock_);
  Pinned* pinned = nullptr;
  static_cast<void>(with_host_memory([&]() ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    pinned = &ranges_.try_emplace(range).first->second;
  }));
  if (pinned == nullptr) {
    drop_hold(segment);
    return kShortOfHostMemory;
  }
  pinned->segment = &segment;
  pinned->count += 1;
  if (segment.page_table.is_made()) {
    const PageTable::Run pages = pages_of(segment, range.base, range.size);
    for (std::uint64_t i = pages.first; i < pages.end; ++i)
      segment.page_table.pins_of(i).fetch_add(1, std::memory_order_relaxed);
  }
  return range;
}

Status Pins::unpin(const PinnedRange& range, Status health) noexcept {
  const MutexGuard guard(lock_);
  const auto found = ranges_.find(range);
  ASHLAR_REQUIRE(found != ranges_.end(), Code::kNotFound, "no such range is pinned");
  if (!health.is_ok()) return health;
  DeviceSegment& segment = *found->second.segment;
  if (segment.page_table.is_made()) {
    const PageTable::Run pages = pages_of(segment, range.base, range.size);
    for (std::uint64_t i = pages.first; i < pages.end; ++i)
      segment.page_table.pins_of(i).fetch_sub(1, std::memory_order_release);
  }
  if (--found->second.count == 0) ranges_.erase(found);
  drop_hold(segment);
  return Status::ok();
}

std::uint64_t Pins::read(const HeldAllocation& held) const noexcept {
  const std::uint64_t generation = generation_of(*held.segment, held.base, held.size);
  drop_hold(*held.segment);
  return generation;
}

Status Pins::find_physical(const PinnedRange& range, device::Device& device,
                           std::vector<PhysicalRange>* out) const noexcept {
  const MutexGuard guard(lock_);
  const auto found = ranges_.find(range);
  ASHLAR_REQUIRE(found != ranges_.end(), Code::kNotFound, "no such range is pinned");
  const DeviceSegment& segment = *found->second.segment;
  ASHLAR_REQUIRE(!segment.origin.is_of_stream, Code::kUnsupported,
                 "memory of the driver's pool is no piece that others can be given");
  const bool has_memory = with_host_memory([&] {
    if (!segment.page_table.is_made()) {
      device::Device* const source =
          segment.origin.source != nullptr ? segment.origin.source : &device;
      out->push_back({segment.base, segment.size, PageHandle{}, segment.generation, source,
                      segment.base, segment.size});
      return;
    }
    const PageTable::Run pages = pages_of(segment, range.base, range.size);
    for (std::uint64_t i = pages.first; i < pages.end; ++i) {
      const PageSlot& slot = segment.page_table[i];
      out->push_back({segment.base + page_ * i, page_, slot.page->handle, slot.generation, &device,
                      segment.base, segment.size});
    }
  });
  return has_memory ? Status::ok() : kShortOfHostMemory;
}

Bytes Pins::bytes() const noexcept {
  const MutexGuard guard(lock_);
  Bytes sum;
  Address end;
  // By address: a later range begins in no earlier page.
  for (const auto& [range, pinned] : ranges_) {
    const DeviceSegment& segment = *pinned.segment;
    Address first = segment.base;
    Address last = segment.base + segment.size;
    if (segment.page_table.is_made()) {
      const PageTable::Run pages = pages_of(segment, range.base, range.size);
      last = segment.base + page_ * pages.end;
      first = segment.base + page_ * pages.first;
    }
    first = std::max(first, end);
    if (first >= last) continue;
    sum += last - first;
    end = last;
  }
  return sum;
}

const char* Pins::validate() const noexcept {
  const MutexGuard guard(lock_);
  for (const auto& [range, pinned] : ranges_) {
    const DeviceSegment& segment = *pinned.segment;
    if (pinned.count == 0 || segment.holds.load() < pinned.count)
      return "pins(2): a segment does not know of its pins";
    if (generation_of(segment, range.base, range.size) != range.generation)
      return "pins(3) C21: other memory is under a pinned range";
    if (!segment.page_table.is_made()) continue;
    const PageTable::Run pages = pages_of(segment, range.base, range.size);
    for (std::uint64_t i = pages.first; i < pages.end; ++i) {
      const PageSlot& slot = segment.page_table[i];
      if (slot.page == nullptr || slot.page->home != &slot || !segment.page_table.is_pinned(i))
        return "pins(1) C21: a pinned page is not at home, or not counted";
    }
  }
  return nullptr;
}

}  // namespace ashlar::inline v0::cache
