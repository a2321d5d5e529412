// HostDevice: the Device seam over this computer's own memory, so that everything above it runs for
// real without a GPU.
//
// Purpose: segments are anonymous mappings, backed by the kernel as they are touched. Virtual
// memory is real as well: a reservation is an inaccessible mapping, page handles are ranges of one
// memory file, mapping one is mmap over the reservation, access is mprotect. Touching what is
// unmapped or not given access is a fault, as on a GPU.
//
// What a CPU has not: streams that run behind the caller. All work is done when the call that does
// it returns, so every event is complete at once, waits return at once, and nothing ever captures
// (D6 has no occasion). Streams exist as handles with identities. Handles are checked: one that is
// dead or foreign gives kInvalidHandle, and none comes back.
//
// Thread safety: every member, from any thread (one mutex). Linux only.
//
// Invariants:
//   (1) ledger() counts exactly what was handed out and not returned; the destructor returns the
//       rest to the kernel.
//   (2) segments and page handles held never exceed the capacity. Pinned memory does not count: it
//       is the host's.
//   (3) a page's memory goes back to the kernel when its handle is released and it is mapped
//       nowhere.
#pragma once

#include <memory>

#include <ashlar/base/export.h>
#include <ashlar/device/device.h>

namespace ashlar::inline v0::device {

/// What a HostDevice has handed out and not got back.
struct HostLedger {
  std::uint64_t segments = 0;
  std::uint64_t reservations = 0;
  std::uint64_t page_handles = 0;  ///< not yet released
  std::uint64_t mappings = 0;
  std::uint64_t events = 0;
  std::uint64_t streams = 0;  ///< without the default stream
  std::uint64_t pinned = 0;
  /// what counts against the capacity: segments, and pages whose memory is not back
  Bytes held;
  friend bool operator==(const HostLedger&, const HostLedger&) = default;
};

class ASHLAR_API HostDevice final : public Device {
 public:
  /// A device with that ordinal which hands out at most `capacity` (Bytes::max(): whatever the
  /// kernel gives). Makes no system call; the host must have memory for the object itself
  /// (std::bad_alloc otherwise).
  explicit HostDevice(DeviceId id = DeviceId{0}, Bytes capacity = Bytes::max());
  ~HostDevice() override;
  HostDevice(const HostDevice&) = delete;
  HostDevice& operator=(const HostDevice&) = delete;

  /// The handle of the stream every device has.
  static constexpr StreamHandle kDefaultStream{0};
  /// A further stream, with an identity unique in the process. kOutOfMemory when the host has none.
  Result<Stream> create_stream() noexcept;
  /// kInvalidHandle for a dead or foreign handle, and for the default stream.
  Status destroy_stream(StreamHandle stream) noexcept;
  HostLedger ledger() const noexcept;

  DeviceTraits traits() const noexcept override;
  /// Aligned to 2 MiB.
  Result<Address> segment_alloc(Bytes size) noexcept override;
  Status segment_free(Address base) noexcept override;
  Result<Address> address_reserve(Bytes size, Bytes alignment) noexcept override;
  /// kBusy while anything is mapped in it.
  Status address_release(Address base, Bytes size) noexcept override;
  Result<PageHandle> page_create(Bytes size) noexcept override;
  Status page_release(PageHandle page) noexcept override;
  Status page_map(Address at, Bytes size, PageHandle page) noexcept override;
  Status page_access(Address at, Bytes size) noexcept override;
  Status page_unmap(Address at, Bytes size) noexcept override;
  Result<EventHandle> event_create() noexcept override;
  Status event_destroy(EventHandle event) noexcept override;
  Status event_record(EventHandle event, StreamHandle stream) noexcept override;
  Status event_query(EventHandle event) noexcept override;
  Status event_synchronize(EventHandle event, std::uint32_t timeout_ms) noexcept override;
  Status stream_wait(StreamHandle stream, EventHandle event) noexcept override;
  Result<Stream> identify(StreamHandle handle) noexcept override;
  Result<CaptureStatus> capture_status(StreamHandle stream) noexcept override;
  Result<CaptureMode> exchange_capture_mode(CaptureMode mode) noexcept override;
  Result<MemoryInfo> memory_info() noexcept override;
  Result<Address> pinned_alloc(Bytes size) noexcept override;
  Status pinned_free(Address base) noexcept override;
  Status synchronize() noexcept override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ashlar::inline v0::device
