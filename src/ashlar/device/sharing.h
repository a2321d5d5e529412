// Sharing: memory of a device for other processes, and for the other devices of the machine (row DEV-21).
//
// Purpose: the part of a machine that only whoever shares memory needs; Device::sharing() gives it. Rooms above hand memory
// out (share/); here are the driver's calls.
// Thread safety: every member from any thread at any time.
//
// Contract, beside D1, D2, D6 and D8 of device.h, which hold here too:
//   D9   A handle stands for memory of one device until that memory is freed. What the exporting process does with its own
//        addresses afterwards changes nothing for pages: their memory lasts while any process has a handle or a mapping of
//        it. A segment's memory does not: it may be freed only when no other process has it open.
//   D10  A page that is imported, and a segment that is opened, is the exporter's memory: what one writes the other reads.
//        Each is given back once for each time that it was had, by page_release and by segment_close.
#pragma once

#include <array>
#include <cstddef>

#include <ashlar/base/export.h>
#include <ashlar/base/status.h>
#include <ashlar/base/types.h>

namespace ashlar::inline v0::device {

/// How memory leaves its process. Append only, because exported headers contain the numbers.
enum class ShareKind : unsigned char {
  kNone = 0,        ///< it does not
  kSegment = 1,     ///< a whole segment (cuIpcGetMemHandle)
  kDescriptor = 2,  ///< a page, as a file descriptor (CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
  kFabric = 3,      ///< a page, to other nodes as well (CU_MEM_HANDLE_TYPE_FABRIC)
};

/// "none", "segment", "descriptor", "fabric"; "unknown" for any other number. Static storage.
ASHLAR_API const char* share_kind_name(ShareKind kind) noexcept;

/// Memory, as another process takes it.
struct ShareHandle {
  ShareKind kind = ShareKind::kNone;  ///< which of the two below counts
  int descriptor = -1;  ///< of kDescriptor: open in this process, and whoever has it closes it
  std::array<std::byte, 64> bytes{};  ///< of the others: means the same in every process
};

/// Names a physical GPU in every process, whatever its ordinal there (cuDeviceGetUuid).
using DeviceUuid = std::array<std::byte, 16>;

/// What one device shares. The contract is at the head of this file.
class ASHLAR_API Sharing {
 public:
  virtual ~Sharing() = default;

  /// The device's name in every process. kUnsupported if its driver gives it none. Makes no driver call.
  virtual Result<DeviceUuid> uuid() const noexcept = 0;
  /// The device's ordinal among those of its driver in this process. Makes no driver call.
  virtual std::uint32_t ordinal() const noexcept = 0;

  // Pages (cuMemCreate, cuMemExportToShareableHandle, cuMemImportFromShareableHandle).
  /// Device::page_create() of memory that can leave the process that way. kUnsupported if the device has no such
  /// handles, or this process may not use them. REQUIRES: kind is kDescriptor or kFabric.
  virtual Result<PageHandle> page_create(Bytes size, ShareKind kind) noexcept = 0;
  /// How the page can leave the process (cuMemGetAllocationPropertiesFromHandle).
  virtual Result<ShareKind> page_kind(PageHandle page) noexcept = 0;
  /// A handle of the page, of the kind that it was made with. kUnsupported if that is none; kDriverError if the process has
  /// no descriptor left.
  virtual Result<ShareHandle> page_export(PageHandle page) noexcept = 0;
  /// The page that the handle stands for; it ends by Device::page_release(). The descriptor stays the caller's, and may be
  /// closed. REQUIRES: `size` is the page's.
  virtual Result<PageHandle> page_import(const ShareHandle& handle, Bytes size) noexcept = 0;

  // Segments (cuIpcGetMemHandle, cuIpcOpenMemHandle, cuIpcCloseMemHandle).
  /// A handle of the whole segment. kUnsupported. REQUIRES: Device::segment_alloc() returned `base`.
  virtual Result<ShareHandle> segment_export(Address base) noexcept = 0;
  /// The page that the segment consists of, where a device makes its segments of one page each; kUnsupported, the default.
  virtual Result<PageHandle> segment_page(Address base) noexcept;
  /// The first address of another process's segment in this one; of a segment that is open already, the same again.
  /// An error for a handle of this process.
  virtual Result<Address> segment_open(const ShareHandle& handle) noexcept = 0;
  /// Ends one segment_open(). See D4: work that uses it is done.
  virtual Status segment_close(Address base) noexcept = 0;

  // Other devices of the same driver (cuDeviceCanAccessPeer, cuCtxEnablePeerAccess, cuMemcpyAsync, cuMemcpyPeerAsync).
  /// Can this device's kernels be given access to memory of `owner`?
  virtual Result<bool> can_reach(Sharing& owner) noexcept = 0;
  /// From now on this device's kernels may use the segments of `owner`, those to come as well. Ok if they may already.
  /// kUnsupported if they cannot.
  virtual Status reach(Sharing& owner) noexcept = 0;
  /// Enqueues a copy on `stream`, of this device. REQUIRES: this device can reach both ranges.
  virtual Status copy(Address to, Address from, Bytes size, StreamHandle stream) noexcept = 0;
  /// The same from memory of `from_owner` to memory of `to_owner`, which this device need not reach. REQUIRES: each owner
  /// can reach its range.
  virtual Status copy_between(Address to, Sharing& to_owner, Address from, Sharing& from_owner,
                              Bytes size, StreamHandle stream) noexcept = 0;
};

}  // namespace ashlar::inline v0::device
