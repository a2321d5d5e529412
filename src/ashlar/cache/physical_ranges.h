// The physical memory under a pinned range: which pages, or which segment.
//
// Purpose: a network card registers each physical range, and a process that shares an allocation hands out a handle of each,
// because pages that lie side by side need not be one piece of memory (row DEV-21).
// Thread safety: plain values; the call from any thread.
#pragma once

#include <vector>

#include <ashlar/base/export.h>
#include <ashlar/base/status.h>
#include <ashlar/base/types.h>
#include <ashlar/cache/mapping.h>
#include <ashlar/device/device.h>

namespace ashlar::inline v0::cache {

class CachingAllocator;

/// One piece of physical memory, whole: it may begin before the pinned range and end behind it.
struct PhysicalRange {
  Address address;  ///< where it begins
  Bytes size;       ///< of the piece
  PageHandle page;  ///< of a page; its value is 0 for a segment
  std::uint64_t generation =
      0;  ///< backing generation of the piece: another number for other memory
  device::Device* source =
      nullptr;         ///< whose memory it is: the device, or MemoryPoolOptions::growth
  Address segment;     ///< where the range of addresses begins that it lies in
  Bytes segment_size;  ///< of that range
};

/// Replaces `*out` by the physical ranges under the pinned range, in order of addresses, without holes. They stay what they are
/// until unpin(). kNotFound if the range is not pinned; kUnsupported of memory of the driver's pool
/// (AllocatorBackend::kCudaMallocAsync); kInvalidArgument for a null `out`; kForked; kHostOutOfMemory.
/// Cost: the range's pages. Makes no device call.
ASHLAR_API Status physical_ranges(const CachingAllocator& allocator, const PinnedRange& range,
                                  std::vector<PhysicalRange>* out) noexcept;

}  // namespace ashlar::inline v0::cache
