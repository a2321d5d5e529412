// The one seam to the machine: everything the library asks of a GPU or an OS.
//
// Purpose: this header is the written contract of the trusted part. Behind it stand the host
// (device/host_device.h), the CUDA driver (later), and the simulated GPU (spec/gpu).
// Thread safety: every member may be called from any thread at any time.
//
// Contract (D-clauses; the simulated GPU checks the caller's side, conformance tests check the
// implementor's):
//   D1  No call throws. No call allocates or takes a lock of the allocator's. A failed call changes
//       nothing, unless said.
//   D2  One Device object is one device; each call acts on it whatever device the calling thread
//       has current.
//   D3  Address ranges handed out and not returned are disjoint, over all devices of one machine.
//       Addresses may be handed out again after they were returned.
//   D4  segment_free and page_unmap may be called only when every kernel that uses the range is
//       done. They are ordered by no stream and are no fence: no synchronous side effect may be
//       relied on (design: page-remapping, "Order").
//   D5  An event captures the work enqueued on its stream before event_record. event_query: ok when
//       that work is done, kNotReady before, ok for an event never recorded. Recording again
//       replaces what the event stands for.
//   D6  While a stream captures: event_query and event_synchronize of an event recorded in the
//       capture, and segment_alloc/segment_free/page_* from a thread whose capture mode forbids
//       them, fail with kCaptureUnsafe and invalidate the capture. exchange_capture_mode(kRelaxed)
//       on the calling thread permits the latter.
//   D7  A handle is dead once destroyed; its value may come back as another stream's handle.
//       Passing a dead handle is a caller's error that real drivers need not report.
//   D8  kDeviceLost and kTornDown are sticky: every later call returns the same. The work of a lost
//       device touches no memory any more, its own or another's. kTornDown says that the driver is
//       unloaded, and with it all its devices.
#pragma once

#include <ashlar/base/export.h>
#include <ashlar/base/status.h>
#include <ashlar/base/types.h>

namespace ashlar::inline v0::device {

/// The fixed facts about a device.
struct DeviceTraits {
  DeviceId id;
  /// every segment_alloc is at least so aligned (CUDA states 256; 512 in practice)
  Bytes address_alignment{512};
  Bytes page_granularity{2_MiB};  ///< pages, reservations and mappings are multiples of this
  bool has_virtual_memory = false;
  bool host_accessible = false;  ///< may the calling CPU dereference its addresses?
};

/// A timeout for event_synchronize: none.
inline constexpr std::uint32_t kWaitForever = 0xffffffffu;

struct MemoryInfo {
  Bytes free;
  Bytes total;
};

/// Is a stream capturing? (cuStreamIsCapturing.)
enum class CaptureStatus : unsigned char { kNone, kActive, kInvalidated };

/// A thread's capture interaction mode (cudaStreamCaptureMode).
enum class CaptureMode : unsigned char { kGlobal, kThreadLocal, kRelaxed };

/// The kinds of call, for ledgers, fault injection, cost models and counters. Append only: numbers
/// stand in `.ops` files.
enum class CallKind : unsigned char {
  kSegmentAlloc = 0,
  kSegmentFree = 1,
  kAddressReserve = 2,
  kAddressRelease = 3,
  kPageCreate = 4,
  kPageRelease = 5,
  kPageMap = 6,
  kPageAccess = 7,
  kPageUnmap = 8,
  kEventCreate = 9,
  kEventDestroy = 10,
  kEventRecord = 11,
  kEventQuery = 12,
  kEventSynchronize = 13,
  kStreamWait = 14,
  kIdentify = 15,
  kCaptureStatus = 16,
  kExchangeCaptureMode = 17,
  kMemoryInfo = 18,
  kPinnedAlloc = 19,
  kPinnedFree = 20,
  kSynchronize = 21,
};
inline constexpr unsigned kCallKinds = 22;

/// "segment-alloc", "event-query", ...: static storage.
ASHLAR_API const char* call_name(CallKind kind) noexcept;

/// One device of the machine. See the contract above.
class ASHLAR_API Device {
 public:
  virtual ~Device() = default;

  /// Not a driver call. Constant for the life of the object.
  virtual DeviceTraits traits() const noexcept = 0;

  // Segments (cudaMalloc, cudaFree).
  /// A fresh range of exactly `size` bytes. kOutOfMemory when there is none. REQUIRES: size > 0.
  virtual Result<Address> segment_alloc(Bytes size) noexcept = 0;
  /// Returns a range got from segment_alloc, whole. kInvalidArgument for any other address.
  virtual Status segment_free(Address base) noexcept = 0;

  // Virtual memory (cuMemAddressReserve, Create, Map, SetAccess, Unmap, Release, AddressFree).
  // Sizes and addresses are multiples of page_granularity. kUnsupported where
  // traits().has_virtual_memory is false.
  virtual Result<Address> address_reserve(Bytes size, Bytes alignment) noexcept = 0;
  virtual Status address_release(Address base, Bytes size) noexcept = 0;
  /// Physical memory without an address.
  virtual Result<PageHandle> page_create(Bytes size) noexcept = 0;
  /// Drops the handle; the memory goes back once it is mapped nowhere.
  virtual Status page_release(PageHandle page) noexcept = 0;
  /// Maps the whole handle at `at`, inside one reservation, over a range that is unmapped.
  virtual Status page_map(Address at, Bytes size, PageHandle page) noexcept = 0;
  /// Gives this device read and write access to a mapped range. Until then a touch of it is a
  /// fault.
  virtual Status page_access(Address at, Bytes size) noexcept = 0;
  /// Unmaps whole mappings. See D4.
  virtual Status page_unmap(Address at, Bytes size) noexcept = 0;

  // Events (timing disabled).
  virtual Result<EventHandle> event_create() noexcept = 0;
  /// Legal while the event is pending: the driver lets it finish.
  virtual Status event_destroy(EventHandle event) noexcept = 0;
  virtual Status event_record(EventHandle event, StreamHandle stream) noexcept = 0;
  virtual Status event_query(EventHandle event) noexcept = 0;
  /// Blocks the calling thread until the event's work is done, or for `timeout_ms` at most: then
  /// kNotReady. kWaitForever never gives up (a simulated machine answers kDeadlock where it could
  /// never return, and where bounded waits are repeated without end on such a machine).
  virtual Status event_synchronize(EventHandle event, std::uint32_t timeout_ms) noexcept = 0;
  /// Work enqueued later on `stream` runs after the event's work. Does not block the host.
  virtual Status stream_wait(StreamHandle stream, EventHandle event) noexcept = 0;

  // Streams.
  /// The stream's identity (cuStreamGetId; for the per-thread default handle, the calling thread's
  /// stream).
  virtual Result<Stream> identify(StreamHandle handle) noexcept = 0;
  virtual Result<CaptureStatus> capture_status(StreamHandle stream) noexcept = 0;
  /// Sets the calling thread's mode and returns the one before.
  virtual Result<CaptureMode> exchange_capture_mode(CaptureMode mode) noexcept = 0;

  // The rest.
  virtual Result<MemoryInfo> memory_info() noexcept = 0;
  virtual Result<Address> pinned_alloc(Bytes size) noexcept = 0;
  virtual Status pinned_free(Address base) noexcept = 0;
  /// Blocks until all work of the device is done (cudaDeviceSynchronize).
  virtual Status synchronize() noexcept = 0;
};

}  // namespace ashlar::inline v0::device
