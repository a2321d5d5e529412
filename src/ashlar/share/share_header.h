// ShareHeader: an allocation, as another process takes it.
//
// Purpose: everything that the other process has to know, in bytes that any channel may carry; file descriptors travel
// beside them (descriptor_passing.h). The header comes from another process: its
// numbers are checked before anything is opened; what memory it names, and by which numbers that is known here, is the sender's
// to say.
// Thread safety: plain values and pure functions.
//
// Invariants, which read_header() checks:
//   (1) the parts lie side by side in the exporter's segment, and the allocation lies inside of them;
//   (2) each part says by itself how it is shared: parts of one segment may differ, and none is shared in a way that another's
//       kind decided;
//   (3) a part of the kind kSegment is the only one, and the whole segment.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ashlar/device/sharing.h>

namespace ashlar::inline v0::share {

/// One physical range of the exporter's.
struct SharedPart {
  Bytes size;  ///< of the range
  /// another number for other memory at this place of the exporter's segment
  std::uint64_t generation = 0;
  /// a descriptor has its value in the exporter's process
  device::ShareHandle handle;
};

/// What another process has to know of an exported allocation.
struct ShareHeader {
  std::uint64_t exporter = 0;     ///< a number of the MemoryExporter's own: no other has it
  std::int32_t process = 0;       ///< the exporter's process
  device::DeviceUuid uuid{};      ///< of the GPU whose memory it is
  Address segment;                ///< the exporter's range of addresses that the parts lie in
  Bytes segment_size;             ///< of that range
  Bytes parts_offset;             ///< of the first part in the segment
  Bytes offset;                   ///< of the allocation in the first part
  Bytes size;                     ///< of the allocation
  std::vector<SharedPart> parts;  ///< in the order of their addresses

  /// How many parts travel as descriptors.
  std::size_t descriptors() const noexcept;
};

/// The most parts that a header may have: 2 TiB of pages of 2 MiB.
inline constexpr std::uint32_t kSharedPartsMax = 1u << 20;

/// How many bytes a header can have at most.
std::size_t header_bytes_max() noexcept;
/// The header as bytes. Throws std::bad_alloc.
std::vector<std::byte> write_header(const ShareHeader& header);
/// The header that the bytes are; kMalformed, with the reason, if they are none. Throws std::bad_alloc.
Result<ShareHeader> read_header(std::span<const std::byte> bytes);

}  // namespace ashlar::inline v0::share
