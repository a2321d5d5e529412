// The way from the cache to its device: every device call the caching allocator makes goes through
// here.
//
// Purpose: one place that counts calls, checks that no spin lock is held (C18), and remembers a
// sticky error. After that error no call is made to this device, or, if the driver was unloaded, to
// any device of the allocator (C25, C26).
// Thread safety: any thread, once all drivers of an allocator are made.
#pragma once

#include <array>
#include <atomic>

#include <ashlar/base/spin_lock.h>
#include <ashlar/device/device.h>
#include <ashlar/device/relaxed_capture.h>

namespace ashlar::inline v0::cache {

class Driver {
 public:
  /// `first` heads the list of the allocator's drivers; this one joins it.
  Driver(device::Device& device, Driver*& first) noexcept
      : device_(device), traits_(device.traits()), first_(first), next_(first) {
    first = this;
  }
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  const device::DeviceTraits& traits() const noexcept { return traits_; }
  /// To name it, not to call it.
  device::Device& device() const noexcept { return device_; }
  /// Ok, or the sticky error that ended this device. Not a device call. Cost: one load.
  Status health() const noexcept {
    const Code code = dead_.load(std::memory_order_relaxed);
    return code == Code::kOk ? Status::ok()
                             : Status{code, "the device, or its driver, has gone (C26)"};
  }
  std::uint64_t calls(device::CallKind kind) const noexcept {
    return calls_[static_cast<unsigned>(kind)].load(std::memory_order_relaxed);
  }
  void reset_calls() noexcept {
    for (auto& count : calls_) count.store(0, std::memory_order_relaxed);
  }

  /// From `source`, or from the device itself if that is nullptr (MemoryPoolOptions::growth).
  Result<Address> segment_alloc(Bytes size, device::Device* source) noexcept {
    device::Device& from = source == nullptr ? device_ : *source;
    return call<Result<Address>>(device::CallKind::kSegmentAlloc,
                                 [&] { return from.segment_alloc(size); });
  }
  /// Likewise.
  Status segment_free(Address base, device::Device* source) noexcept {
    device::Device& from = source == nullptr ? device_ : *source;
    return call<Status>(device::CallKind::kSegmentFree, [&] { return from.segment_free(base); });
  }
  Result<Address> address_reserve(Bytes size, Bytes alignment) noexcept {
    return call<Result<Address>>(device::CallKind::kAddressReserve,
                                 [&] { return device_.address_reserve(size, alignment); });
  }
  Status address_release(Address base, Bytes size) noexcept {
    return call<Status>(device::CallKind::kAddressRelease,
                        [&] { return device_.address_release(base, size); });
  }
  Result<PageHandle> page_create(Bytes size) noexcept {
    return call<Result<PageHandle>>(device::CallKind::kPageCreate,
                                    [&] { return device_.page_create(size); });
  }
  Status page_release(PageHandle page) noexcept {
    return call<Status>(device::CallKind::kPageRelease, [&] { return device_.page_release(page); });
  }
  Status page_map(Address at, Bytes size, PageHandle page) noexcept {
    return call<Status>(device::CallKind::kPageMap,
                        [&] { return device_.page_map(at, size, page); });
  }
  Status page_access(Address at, Bytes size) noexcept {
    return call<Status>(device::CallKind::kPageAccess,
                        [&] { return device_.page_access(at, size); });
  }
  Status page_unmap(Address at, Bytes size) noexcept {
    return call<Status>(device::CallKind::kPageUnmap, [&] { return device_.page_unmap(at, size); });
  }
  Result<EventHandle> event_create() noexcept {
    return call<Result<EventHandle>>(device::CallKind::kEventCreate,
                                     [&] { return device_.event_create(); });
  }
  Status event_destroy(EventHandle event) noexcept {
    return call<Status>(device::CallKind::kEventDestroy,
                        [&] { return device_.event_destroy(event); });
  }
  Status event_record(EventHandle event, StreamHandle stream) noexcept {
    return call<Status>(device::CallKind::kEventRecord,
                        [&] { return device_.event_record(event, stream); });
  }
  Status event_query(EventHandle event) noexcept {
    return call<Status>(device::CallKind::kEventQuery, [&] { return device_.event_query(event); });
  }
  Status event_synchronize(EventHandle event, std::uint32_t timeout_ms) noexcept {
    return call<Status>(device::CallKind::kEventSynchronize,
                        [&] { return device_.event_synchronize(event, timeout_ms); });
  }
  Status stream_wait(StreamHandle stream, EventHandle event) noexcept {
    return call<Status>(device::CallKind::kStreamWait,
                        [&] { return device_.stream_wait(stream, event); });
  }
  Result<Stream> identify(StreamHandle handle) noexcept {
    return call<Result<Stream>>(device::CallKind::kIdentify,
                                [&] { return device_.identify(handle); });
  }
  Result<device::CaptureStatus> capture_status(StreamHandle handle) noexcept {
    return call<Result<device::CaptureStatus>>(device::CallKind::kCaptureStatus,
                                               [&] { return device_.capture_status(handle); });
  }
  Result<device::CaptureMark> capture_mark(StreamHandle stream) noexcept {
    return call<Result<device::CaptureMark>>(device::CallKind::kCaptureMark,
                                             [&] { return device_.capture_mark(stream); });
  }
  Status capture_covers(StreamHandle stream, device::CaptureMark mark) noexcept {
    return call<Status>(device::CallKind::kCaptureCovers,
                        [&] { return device_.capture_covers(stream, mark); });
  }
  Result<device::CaptureMode> exchange_capture_mode(device::CaptureMode mode) noexcept {
    return call<Result<device::CaptureMode>>(device::CallKind::kExchangeCaptureMode,
                                             [&] { return device_.exchange_capture_mode(mode); });
  }
  Result<device::MemoryInfo> memory_info() noexcept {
    return call<Result<device::MemoryInfo>>(device::CallKind::kMemoryInfo,
                                            [&] { return device_.memory_info(); });
  }
  Result<Address> stream_alloc(Bytes size, StreamHandle stream) noexcept {
    return call<Result<Address>>(device::CallKind::kStreamAlloc,
                                 [&] { return device_.stream_alloc(size, stream); });
  }
  Status stream_free(Address base, StreamHandle stream) noexcept {
    return call<Status>(device::CallKind::kStreamFree,
                        [&] { return device_.stream_free(base, stream); });
  }
  Status stream_trim(Bytes keep) noexcept {
    return call<Status>(device::CallKind::kStreamTrim, [&] { return device_.stream_trim(keep); });
  }
  Status synchronize() noexcept {
    return call<Status>(device::CallKind::kSynchronize, [&] { return device_.synchronize(); });
  }
  Status synchronize_for(std::uint32_t timeout_ms) noexcept {
    return call<Status>(device::CallKind::kSynchronize,
                        [&] { return device_.synchronize_for(timeout_ms); });
  }
  /// The device's clock; not a driver call.
  std::uint64_t now_ns() const noexcept { return device_.now_ns(); }

 private:
  template <class R, class F>
  R call(device::CallKind kind, F&& f) noexcept {
#if ASHLAR_ASSERTIONS
    ASHLAR_ASSERT(spin_locks_held == 0, "C18: a device call under a heap's lock");
#endif
    if (const Status dead = health(); !dead.is_ok()) return dead;
    calls_[static_cast<unsigned>(kind)].fetch_add(1, std::memory_order_relaxed);
    R result = f();
    const Code code = result.code();
    if (code == Code::kDeviceLost || code == Code::kTornDown) [[unlikely]]
      end(code);
    return result;
  }
  /// Every device keeps a flag of its own, so that a hit reads no memory that others share.
  [[gnu::cold]] void end(Code code) noexcept {
    for (Driver* each = first_; each != nullptr; each = each->next_) {
      Code alive = Code::kOk;
      if (each == this || code == Code::kTornDown)
        each->dead_.compare_exchange_strong(alive, code, std::memory_order_relaxed);
    }
  }

  device::Device& device_;
  const device::DeviceTraits traits_;
  Driver* const& first_;
  Driver* const next_;
  std::atomic<Code> dead_{Code::kOk};
  std::array<std::atomic<std::uint64_t>, device::kCallKinds> calls_{};
};

using device::RelaxedCapture;

}  // namespace ashlar::inline v0::cache
