// HostDevice: the Device interface over this computer's own memory. Linux only.
//
// Purpose: everything above the Device interface runs on real memory without a GPU. Segments are
// anonymous mappings, which the kernel backs as they are touched. Virtual memory is real as well: a
// reservation is an inaccessible mapping, a page handle is a range of one memory file, page_map is
// an mmap over the reservation, and page_access is an mprotect. Accessing a range that is unmapped
// or has no access is a fault, as on a GPU.
// Thread safety: every member may be called from any thread (one mutex).
//
// Invariants:
//   (1) ledger() counts exactly what was handed out and not returned. The destructor returns it to
//       the kernel.
//   (2) The bytes of segments and pages held never exceed the capacity. Pinned memory, which
//       belongs to the host, does not count.
//   (3) A page's memory returns to the kernel when its handle is released and no mapping of it is
//       left.
//
// A CPU has no streams that run behind the caller. All work is done when the call that does it
// returns, so every event is complete and every wait returns at once, and no stream ever captures
// (D6 does not arise). Streams exist as handles with identities. Handles are checked: a dead or
// foreign one gives kInvalidHandle, and no value is used twice.
#pragma once

#include <memory>

#include <ashlar/base/export.h>
#include <ashlar/device/device.h>

namespace ashlar::inline v0::device {

/// What a HostDevice has handed out and not been given back.
struct HostLedger {
  std::uint64_t segments = 0;      ///< from segment_alloc
  std::uint64_t reservations = 0;  ///< from address_reserve
  std::uint64_t page_handles = 0;  ///< not yet released
  std::uint64_t mappings = 0;      ///< from page_map
  std::uint64_t events = 0;        ///< from event_create
  std::uint64_t streams = 0;       ///< from create_stream; the default stream does not count
  std::uint64_t pinned = 0;        ///< from pinned_alloc
  std::uint64_t registered = 0;    ///< ranges of host_register
  /// bytes that count against the capacity: of segments, and of pages whose memory has not returned
  /// to the kernel
  Bytes held;
  friend bool operator==(const HostLedger&, const HostLedger&) = default;
};

/// This computer's memory, behind the interface that a GPU has. See the head of this file.
class ASHLAR_API HostDevice final : public Device {
 public:
  /// A device with that ordinal that hands out at most `capacity` bytes (Bytes::max(): as many as
  /// the kernel gives). Makes no system call. Throws std::bad_alloc if the host has no memory for
  /// the object itself.
  explicit HostDevice(DeviceId id = DeviceId{0}, Bytes capacity = Bytes::max());
  /// Returns to the kernel what was handed out and not given back.
  ~HostDevice() override;
  HostDevice(const HostDevice&) = delete;
  HostDevice& operator=(const HostDevice&) = delete;

  /// The handle of the default stream, which every device has.
  static constexpr StreamHandle kDefaultStream{0};
  /// Creates a stream with an identity unique in the process. kHostOutOfMemory if host
  /// bookkeeping memory cannot be allocated.
  Result<Stream> create_stream() noexcept;
  /// Destroys a stream that create_stream made. kInvalidHandle for a dead or foreign handle, and
  /// for the default stream.
  Status destroy_stream(StreamHandle stream) noexcept;
  /// What is handed out now.
  HostLedger ledger() const noexcept;

  /// Pages of 2 MiB, virtual memory, addresses that the CPU can dereference.
  DeviceTraits traits() const noexcept override;
  /// The segment is aligned to 2 MiB. kOutOfMemory over the capacity, or if the kernel has no more.
  Result<Address> segment_alloc(Bytes size) noexcept override;
  Status segment_free(Address base) noexcept override;
  /// `alignment` is a power of two or zero; less than 2 MiB gives 2 MiB. kOutOfAddresses if the
  /// kernel has no such range.
  Result<Address> address_reserve(Bytes size, Bytes alignment) noexcept override;
  /// kBusy while the reservation has mappings.
  Status address_release(Address base, Bytes size) noexcept override;
  Result<PageHandle> page_create(Bytes size) noexcept override;
  Status page_release(PageHandle handle) noexcept override;
  Status page_map(Address at, Bytes size, PageHandle handle) noexcept override;
  Status page_access(Address at, Bytes size) noexcept override;
  Status page_unmap(Address at, Bytes size) noexcept override;
  /// kHostOutOfMemory if host bookkeeping memory cannot be allocated.
  Result<EventHandle> event_create() noexcept override;
  Status event_destroy(EventHandle event) noexcept override;
  /// Checks both handles; there is no work to wait for.
  Status event_record(EventHandle event, StreamHandle stream) noexcept override;
  /// Ok for every event of this device: all work is done.
  Status event_query(EventHandle event) noexcept override;
  Status event_synchronize(EventHandle event, std::uint32_t timeout_ms) noexcept override;
  Status stream_wait(StreamHandle stream, EventHandle event) noexcept override;
  Result<Stream> identify(StreamHandle handle) noexcept override;
  /// Always kNone for a stream of this device.
  Result<CaptureStatus> capture_status(StreamHandle stream) noexcept override;
  Result<CaptureMode> exchange_capture_mode(CaptureMode mode) noexcept override;
  /// The capacity, or the computer's physical memory where there is none; free is what this device
  /// has not handed out.
  Result<MemoryInfo> memory_info() noexcept override;
  /// Ordinary host memory, aligned to 2 MiB.
  Result<Address> pinned_alloc(Bytes size) noexcept override;
  /// Frees the whole range that pinned_alloc returned. kInvalidArgument for any other address.
  Status pinned_free(Address base) noexcept override;
  /// Locks nothing: every access of this device is the CPU's own.
  Status host_register(Address base, Bytes size) noexcept override;
  Status host_unregister(Address base) noexcept override;
  Status synchronize() noexcept override;
  Status synchronize_for(std::uint32_t timeout_ms) noexcept override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ashlar::inline v0::device
