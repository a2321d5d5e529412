// Device: the library's only interface to a machine. Every call to a GPU driver or an OS for device
// memory, streams and events goes through it.
//
// Purpose: this header is the written contract of the part that the library trusts. It is
// implemented by the host (device/host_device.h), by the CUDA driver (cuda/cuda_device.h) and by the
// simulated GPU (spec/gpu).
// Thread safety: every member may be called from any thread at any time.
//
// Contract (D-clauses; the simulated GPU checks the caller's side, conformance tests check the
// implementor's):
//   D1  No call throws. No call allocates from the allocator or takes one of its locks. A failed
//       call changes nothing, unless stated otherwise. Any call may fail with kHostOutOfMemory, if
//       the host has no memory for the device's own records.
//   D2  A Device object is one device. Each call acts on that device, whichever device is current
//       on the calling thread.
//   D3  Address ranges handed out and not returned are disjoint, over all devices of one machine. A
//       returned address may be handed out again.
//   D4  segment_free, pinned_free, host_unregister and page_unmap may be called only when every
//       kernel that uses the range is done. They are not ordered with any stream and are not a fence: a caller may not rely on a
//       synchronising side effect (docs/moving-pages.md, "Order"). Kernels that use a page through
//       another of its addresses do not count.
//   D5  event_record makes the event stand for the work enqueued on the stream before it, and
//       replaces what the event stood for. event_query returns ok when that work is done, kNotReady
//       before that, and ok for an event that was never recorded.
//   D6  While a stream captures, four kinds of call fail with kCaptureUnsafe and invalidate the
//       capture: identify of the stream, and, if it is a blocking one, of the legacy default stream;
//       event_query and event_synchronize of an event recorded in the capture; synchronize and
//       synchronize_for; and segment_*, pinned_*, host_* and page_* on a thread whose capture mode
//       forbids them. exchange_capture_mode(kRelaxed) permits the fourth kind on the calling thread.
//   D7  A handle is dead once destroyed; its value may come back as another stream's handle.
//       Passing a dead handle is the caller's error, which a real driver need not report.
//   D8  kDeviceLost and kTornDown are sticky: every later call returns the same code. The work of a
//       lost device no longer touches any memory, its own or another device's. kTornDown means that
//       the driver is unloaded, and all its devices with it.
#pragma once

#include <ashlar/base/export.h>
#include <ashlar/base/status.h>
#include <ashlar/base/types.h>

namespace ashlar::inline v0::device {

/// The properties of a device, which never change.
struct DeviceTraits {
  DeviceId id;  ///< the ordinal of the device
  /// the least alignment of a segment (CUDA documents 256 bytes; in practice it is 512)
  Bytes address_alignment{512};
  Bytes page_granularity{2_MiB};    ///< sizes of pages and mappings are multiples of it
  bool has_virtual_memory = false;  ///< address_reserve and page_* are supported
  bool host_accessible = false;     ///< the CPU can dereference its addresses
  bool has_stream_memory = false;   ///< stream_alloc, stream_free and stream_trim are supported
};

/// The timeout of an event_synchronize that never gives up.
inline constexpr std::uint32_t kWaitForever = 0xffffffffu;

/// What a device says of its memory (cudaMemGetInfo).
struct MemoryInfo {
  Bytes free;   ///< not in use by any process
  Bytes total;  ///< of the device
};

/// Whether a stream is capturing (cuStreamIsCapturing).
enum class CaptureStatus : unsigned char { kNone, kActive, kInvalidated };

/// A thread's capture interaction mode (cudaStreamCaptureMode).
enum class CaptureMode : unsigned char { kGlobal, kThreadLocal, kRelaxed };

/// A place in a capture: everything that a stream had captured when the mark was made. It means nothing
/// once the capture has ended.
struct CaptureMark {
  std::uint64_t capture = 0;  ///< 0: none
  std::uint64_t node = 0;     ///< of the device's own numbers
};

/// The kinds of call, for ledgers, fault injection, cost models and counters. Append only, because
/// `.ops` files contain the numbers.
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
  kCaptureMark = 22,
  kCaptureCovers = 23,
  kHostRegister = 24,
  kHostUnregister = 25,
  kPageExport = 26,
  kPageImport = 27,
  kSegmentExport = 28,
  kSegmentOpen = 29,
  kSegmentClose = 30,
  kReach = 31,
  kCopy = 32,
  kStreamAlloc = 33,
  kStreamFree = 34,
  kStreamTrim = 35,
};
/// The number of kinds of call.
inline constexpr unsigned kCallKinds = 36;

/// The name of the kind: "segment-alloc", "event-query", ...; "unknown" for any other number.
/// Static storage.
ASHLAR_API const char* call_name(CallKind kind) noexcept;

class Sharing;

/// One device of the machine. The contract is at the head of this file.
class ASHLAR_API Device {
 public:
  /// Destroys the device object. The allocators over it must be gone.
  virtual ~Device() = default;

  /// The same for the life of the object. Makes no driver call.
  virtual DeviceTraits traits() const noexcept = 0;

  // Segments (cudaMalloc, cudaFree).
  /// Allocates a new range of `size` bytes. kOutOfMemory if there is none. REQUIRES: size > 0.
  virtual Result<Address> segment_alloc(Bytes size) noexcept = 0;
  /// Frees the whole range that segment_alloc returned. kInvalidArgument for any other address. See
  /// D4.
  virtual Status segment_free(Address base) noexcept = 0;

  // Virtual memory (cuMemAddressReserve, Create, Map, SetAccess, Unmap, Release, AddressFree).
  // Sizes and addresses are multiples of page_granularity. Every call returns kUnsupported if
  // traits().has_virtual_memory is false.
  /// Reserves an address range without memory. kOutOfAddresses if there is none.
  virtual Result<Address> address_reserve(Bytes size, Bytes alignment) noexcept = 0;
  /// Returns a whole reservation. REQUIRES: nothing is mapped in it.
  virtual Status address_release(Address base, Bytes size) noexcept = 0;
  /// Allocates physical memory, without an address. kOutOfMemory if there is none.
  virtual Result<PageHandle> page_create(Bytes size) noexcept = 0;
  /// Releases the handle. The memory is freed once no mapping of it is left.
  virtual Status page_release(PageHandle page) noexcept = 0;
  /// Maps the whole handle at `at`. REQUIRES: the range lies in one reservation and is unmapped. A page
  /// may be mapped at several addresses.
  virtual Status page_map(Address at, Bytes size, PageHandle page) noexcept = 0;
  /// Gives this device read and write access to a mapped range. Accessing it before is a fault.
  virtual Status page_access(Address at, Bytes size) noexcept = 0;
  /// Unmaps the mappings that make up the range. See D4.
  virtual Status page_unmap(Address at, Bytes size) noexcept = 0;

  // Events (timing disabled).
  /// Creates an event, not recorded yet. kOutOfMemory if there is no memory for it.
  virtual Result<EventHandle> event_create() noexcept = 0;
  /// May be called while the event is pending; its work goes on.
  virtual Status event_destroy(EventHandle event) noexcept = 0;
  /// Makes the event stand for the work enqueued on `stream` so far (D5).
  virtual Status event_record(EventHandle event, StreamHandle stream) noexcept = 0;
  /// Ok if the work that the event stands for is done, kNotReady if it is not (D5). Does not block.
  virtual Status event_query(EventHandle event) noexcept = 0;
  /// Blocks the calling thread until the event's work is done. Returns kNotReady after
  /// `timeout_ms`; with kWaitForever it never gives up. A simulated machine returns kDeadlock where
  /// the call could never return, or where bounded waits are repeated without end.
  virtual Status event_synchronize(EventHandle event, std::uint32_t timeout_ms) noexcept = 0;
  /// Makes work enqueued on `stream` afterwards wait for the event's work. Does not block the host.
  virtual Status stream_wait(StreamHandle stream, EventHandle event) noexcept = 0;

  // Streams.
  /// The stream that the handle names now (cuStreamGetId). The per-thread default handle names the
  /// calling thread's stream. kCaptureUnsafe if the stream captures, and its capture is lost (D6).
  virtual Result<Stream> identify(StreamHandle handle) noexcept = 0;
  /// Whether the stream is capturing, and whether that capture was invalidated. kCaptureUnsafe, without harm,
  /// for the legacy default stream while a blocking stream captures (cuStreamIsCapturing).
  virtual Result<CaptureStatus> capture_status(StreamHandle stream) noexcept = 0;
  /// A mark of what the stream has captured so far. kInvalidArgument if it does not capture;
  /// kCaptureInvalidated; kUnsupported, the default. CUDA: an empty node (cudaGraphAddEmptyNode) behind the
  /// nodes that cudaStreamGetCaptureInfo names, and before what the stream captures next
  /// (cudaStreamUpdateCaptureDependencies); it changes no other node's order.
  virtual Result<CaptureMark> capture_mark(StreamHandle stream) noexcept;
  /// Ok if everything that the stream captures from now on comes after the mark, in every replay of the
  /// graph; kNotReady if not, or if the stream is not in the mark's capture; kCaptureInvalidated;
  /// kUnsupported, the default. CUDA: is the mark's node reachable backwards from those that
  /// cudaStreamGetCaptureInfo names? Cost: at most the edges of the graph.
  virtual Status capture_covers(StreamHandle stream, CaptureMark mark) noexcept;
  /// Sets the calling thread's capture mode and returns the previous one.
  virtual Result<CaptureMode> exchange_capture_mode(CaptureMode mode) noexcept = 0;

  // Memory information, pinned host memory, synchronisation.
  /// The device's free and total memory.
  virtual Result<MemoryInfo> memory_info() noexcept = 0;
  /// Allocates `size` bytes of page-locked host memory (cudaHostAlloc). kOutOfMemory if there is
  /// none. REQUIRES: size > 0.
  virtual Result<Address> pinned_alloc(Bytes size) noexcept = 0;
  /// Frees the whole range that pinned_alloc returned. kInvalidArgument for any other address. See D4.
  virtual Status pinned_free(Address base) noexcept = 0;
  /// Page-locks memory of the host that exists already, so that every device can reach it
  /// (cudaHostRegister). `base` and `size` are multiples of the kernel's page size. kInvalidArgument if
  /// they are not, if `size` is zero, and if any of the bytes is registered or pinned memory;
  /// kOutOfMemory if the host locks no more; kUnsupported, the default.
  virtual Status host_register(Address base, Bytes size) noexcept;
  /// Ends the registration of the whole range that began at `base`; the memory remains.
  /// kInvalidArgument for any other address; kUnsupported, the default. See D4.
  virtual Status host_unregister(Address base) noexcept;
  /// Blocks the calling thread until all work of the device is done (cudaDeviceSynchronize).
  virtual Status synchronize() noexcept = 0;
  /// The same for at most `timeout_ms`: kNotReady if the work is not known to be done by then. With
  /// 0 it asks without blocking. kUnsupported, the default, if the driver has no such call: the
  /// caller then blocks in synchronize() on a thread of its own.
  virtual Status synchronize_for(std::uint32_t timeout_ms) noexcept;

  /// Its memory for other processes and for other devices (sharing.h); null, the default, if it shares none. Lives as long
  /// as the device. Makes no driver call.
  virtual Sharing* sharing() noexcept;
  // Memory that is given and taken back in the order of streams (cuMemAllocFromPoolAsync, cuMemFreeAsync,
  // cuMemPoolTrimTo), from a pool that the driver keeps for this object. kUnsupported, the default, if
  // traits().has_stream_memory is false. D1 to D3 and D8 hold; D4 does not: what is freed waits for its stream.
  /// Allocates `size` bytes for work that is enqueued on `stream` from now on, and for what is ordered after that.
  /// kOutOfMemory if there is none. REQUIRES: size > 0; the stream does not capture.
  virtual Result<Address> stream_alloc(Bytes size, StreamHandle stream) noexcept;
  /// Frees the whole range that stream_alloc returned, behind the work enqueued on `stream` so far: other work that
  /// uses it must be ordered before that, or be done. kInvalidArgument for any other address. segment_free takes
  /// the range too, under D4. REQUIRES: the stream does not capture.
  virtual Status stream_free(Address base, StreamHandle stream) noexcept;
  /// Gives memory of the pool that no allocation has, and whose work is done, back to the device, until the pool
  /// has no more than `keep` bytes.
  virtual Status stream_trim(Bytes keep) noexcept;

  /// The clock by which waits are bounded, in nanoseconds from an arbitrary start; never falls. The
  /// default is std::chrono::steady_clock; a simulated machine gives its own time.
  virtual std::uint64_t now_ns() const noexcept;
};

}  // namespace ashlar::inline v0::device
