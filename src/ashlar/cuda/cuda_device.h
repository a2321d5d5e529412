// CudaDevice: a GPU behind the CUDA driver, found at run time.
//
// Purpose: the Device interface on real hardware. A program needs no toolkit to build, and no driver to start.
// Thread safety: every member from any thread; the driver has its own locks.
//
// Each call acts on the device's primary context, which CUDA's runtime uses too, and leaves the calling thread's
// current context as it was (D2). The context is retained as long as the object lives.
// An error that the driver repeats for ever, and its unloading, is remembered: later calls answer with it and do not
// reach the driver (D8).
// No member allocates but open() and capture_covers(), which needs room for the nodes that it visits.
#pragma once

#include <cstdint>
#include <memory>

#include <ashlar/base/export.h>
#include <ashlar/cuda/host_clock.h>
#include <ashlar/device/device.h>
#include <ashlar/device/sharing.h>

namespace ashlar::inline v0::cuda {

class DriverPool;
class PrimaryContext;

/// Where the CUDA driver is on Linux.
inline constexpr const char* kDriverLibrary = "libcuda.so.1";

/// A GPU. See the head of this file.
class ASHLAR_API CudaDevice final : public device::Device {
 public:
  /// Opens the GPU with that ordinal (the driver's, from 0) as the device `id` of an allocator, and makes its primary
  /// context, which takes the driver some 100 ms and memory of the GPU where no one has made it yet. Errors: kNotFound
  /// if there is no driver, or no GPU of that ordinal; kUnsupported if the driver is older than CUDA 12.0;
  /// kHostOutOfMemory; otherwise the driver's. `clock`: what bounded waits go by, which must outlive the device; null: the
  /// machine's own.
  static Result<std::unique_ptr<CudaDevice>> open(int ordinal, DeviceId id,
                                                  const char* library = kDriverLibrary,
                                                  HostClock* clock = nullptr) noexcept;
  /// Gives up its use of the primary context. The driver may be gone by then.
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  device::DeviceTraits traits() const noexcept override { return traits_; }

  Result<Address> segment_alloc(Bytes size) noexcept override;
  Status segment_free(Address base) noexcept override;

  Result<Address> address_reserve(Bytes size, Bytes alignment) noexcept override;
  Status address_release(Address base, Bytes size) noexcept override;
  /// Memory that network cards can reach too (GPUDirect RDMA), where the GPU has that.
  Result<PageHandle> page_create(Bytes size) noexcept override;
  Status page_release(PageHandle page) noexcept override;
  Status page_map(Address at, Bytes size, PageHandle page) noexcept override;
  Status page_access(Address at, Bytes size) noexcept override;
  Status page_unmap(Address at, Bytes size) noexcept override;

  Result<EventHandle> event_create() noexcept override;
  Status event_destroy(EventHandle event) noexcept override;
  Status event_record(EventHandle event, StreamHandle stream) noexcept override;
  Status event_query(EventHandle event) noexcept override;
  /// The driver's own call has no limit; with one the event is asked again and again, ever more rarely.
  Status event_synchronize(EventHandle event, std::uint32_t timeout_ms) noexcept override;
  Status stream_wait(StreamHandle stream, EventHandle event) noexcept override;

  Result<Stream> identify(StreamHandle handle) noexcept override;
  Result<device::CaptureStatus> capture_status(StreamHandle stream) noexcept override;
  Result<device::CaptureMark> capture_mark(StreamHandle stream) noexcept override;
  Status capture_covers(StreamHandle stream, device::CaptureMark mark) noexcept override;
  Result<device::CaptureMode> exchange_capture_mode(device::CaptureMode mode) noexcept override;

  Result<device::MemoryInfo> memory_info() noexcept override;
  /// Memory that every context can reach.
  Result<Address> pinned_alloc(Bytes size) noexcept override;
  Status pinned_free(Address base) noexcept override;
  Status host_register(Address base, Bytes size) noexcept override;
  Status host_unregister(Address base) noexcept override;
  Status synchronize() noexcept override;
  device::Sharing* sharing() noexcept override { return sharing_.get(); }
  /// Of a pool of this object's own, made at the first call, which keeps what is freed until a trim.
  Result<Address> stream_alloc(Bytes size, StreamHandle stream) noexcept override;
  Status stream_free(Address base, StreamHandle stream) noexcept override;
  Status stream_trim(Bytes keep) noexcept override;
  std::uint64_t now_ns() const noexcept override { return clock_->now_ns(); }

 private:
  CudaDevice(DeviceId id, std::unique_ptr<PrimaryContext> gpu, HostClock* clock) noexcept;
  /// Asks for what the GPU has.
  Status read_traits() noexcept;

  const std::unique_ptr<PrimaryContext> gpu_;
  HostClock* const clock_;
  std::unique_ptr<device::Sharing> sharing_;
  device::DeviceTraits traits_;
  bool has_direct_rdma_ = false;      ///< network cards can reach its pages
  std::unique_ptr<DriverPool> pool_;  ///< of stream_alloc
};

}  // namespace ashlar::inline v0::cuda
