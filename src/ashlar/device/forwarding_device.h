// ForwardingDevice: a device in front of another that forwards every call.
//
// Purpose: the base of every wrapper (the judge's witness, the cost meter, the suites' devices). A
// wrapper overrides the calls that it changes, or on_answer() to see them all but those of sharing(): a wrapper that must
// see these overrides sharing() with a ForwardingSharing.
// Thread safety: the inner device's.
#pragma once

#include <ashlar/device/device.h>

namespace ashlar::inline v0::device {

/// A device that passes every call to another one; what a wrapper overrides is what it changes.
class ForwardingDevice : public Device {
 public:
  /// `inner` must outlive this.
  explicit ForwardingDevice(Device& inner) : inner_(inner) {}
  /// Of a wrapper around a wrapper this would be chosen, and would leave one of the two out.
  ForwardingDevice(const ForwardingDevice&) = delete;
  ForwardingDevice& operator=(const ForwardingDevice&) = delete;

  DeviceTraits traits() const noexcept override { return inner_.traits(); }
  Result<Address> segment_alloc(Bytes size) noexcept override {
    return answer(CallKind::kSegmentAlloc, size, inner_.segment_alloc(size));
  }
  Status segment_free(Address base) noexcept override {
    return answer(CallKind::kSegmentFree, Bytes{}, inner_.segment_free(base));
  }
  Result<Address> address_reserve(Bytes size, Bytes alignment) noexcept override {
    return answer(CallKind::kAddressReserve, size, inner_.address_reserve(size, alignment));
  }
  Status address_release(Address base, Bytes size) noexcept override {
    return answer(CallKind::kAddressRelease, size, inner_.address_release(base, size));
  }
  Result<PageHandle> page_create(Bytes size) noexcept override {
    return answer(CallKind::kPageCreate, size, inner_.page_create(size));
  }
  Status page_release(PageHandle page) noexcept override {
    return answer(CallKind::kPageRelease, Bytes{}, inner_.page_release(page));
  }
  Status page_map(Address at, Bytes size, PageHandle page) noexcept override {
    return answer(CallKind::kPageMap, size, inner_.page_map(at, size, page));
  }
  Status page_access(Address at, Bytes size) noexcept override {
    return answer(CallKind::kPageAccess, size, inner_.page_access(at, size));
  }
  Status page_unmap(Address at, Bytes size) noexcept override {
    return answer(CallKind::kPageUnmap, size, inner_.page_unmap(at, size));
  }
  Result<EventHandle> event_create() noexcept override {
    return answer(CallKind::kEventCreate, Bytes{}, inner_.event_create());
  }
  Status event_destroy(EventHandle event) noexcept override {
    return answer(CallKind::kEventDestroy, Bytes{}, inner_.event_destroy(event));
  }
  Status event_record(EventHandle event, StreamHandle stream) noexcept override {
    return answer(CallKind::kEventRecord, Bytes{}, inner_.event_record(event, stream));
  }
  Status event_query(EventHandle event) noexcept override {
    return answer(CallKind::kEventQuery, Bytes{}, inner_.event_query(event));
  }
  Status event_synchronize(EventHandle event, std::uint32_t timeout_ms) noexcept override {
    return answer(CallKind::kEventSynchronize, Bytes{},
                  inner_.event_synchronize(event, timeout_ms));
  }
  Status stream_wait(StreamHandle stream, EventHandle event) noexcept override {
    return answer(CallKind::kStreamWait, Bytes{}, inner_.stream_wait(stream, event));
  }
  Result<Stream> identify(StreamHandle handle) noexcept override {
    return answer(CallKind::kIdentify, Bytes{}, inner_.identify(handle));
  }
  Result<CaptureStatus> capture_status(StreamHandle stream) noexcept override {
    return answer(CallKind::kCaptureStatus, Bytes{}, inner_.capture_status(stream));
  }
  Result<CaptureMark> capture_mark(StreamHandle stream) noexcept override {
    return answer(CallKind::kCaptureMark, Bytes{}, inner_.capture_mark(stream));
  }
  Status capture_covers(StreamHandle stream, CaptureMark mark) noexcept override {
    return answer(CallKind::kCaptureCovers, Bytes{}, inner_.capture_covers(stream, mark));
  }
  Result<CaptureMode> exchange_capture_mode(CaptureMode mode) noexcept override {
    return answer(CallKind::kExchangeCaptureMode, Bytes{}, inner_.exchange_capture_mode(mode));
  }
  Result<MemoryInfo> memory_info() noexcept override {
    return answer(CallKind::kMemoryInfo, Bytes{}, inner_.memory_info());
  }
  Result<Address> pinned_alloc(Bytes size) noexcept override {
    return answer(CallKind::kPinnedAlloc, size, inner_.pinned_alloc(size));
  }
  Status pinned_free(Address base) noexcept override {
    return answer(CallKind::kPinnedFree, Bytes{}, inner_.pinned_free(base));
  }
  Status host_register(Address base, Bytes size) noexcept override {
    return answer(CallKind::kHostRegister, size, inner_.host_register(base, size));
  }
  Status host_unregister(Address base) noexcept override {
    return answer(CallKind::kHostUnregister, Bytes{}, inner_.host_unregister(base));
  }
  Status synchronize() noexcept override {
    return answer(CallKind::kSynchronize, Bytes{}, inner_.synchronize());
  }
  Status synchronize_for(std::uint32_t timeout_ms) noexcept override {
    return answer(CallKind::kSynchronize, Bytes{}, inner_.synchronize_for(timeout_ms));
  }
  /// The inner device's: what is asked of it does not come to on_answer().
  Sharing* sharing() noexcept override { return inner_.sharing(); }
  Result<Address> stream_alloc(Bytes size, StreamHandle stream) noexcept override {
    return answer(CallKind::kStreamAlloc, size, inner_.stream_alloc(size, stream));
  }
  Status stream_free(Address base, StreamHandle stream) noexcept override {
    return answer(CallKind::kStreamFree, Bytes{}, inner_.stream_free(base, stream));
  }
  Status stream_trim(Bytes keep) noexcept override {
    return answer(CallKind::kStreamTrim, keep, inner_.stream_trim(keep));
  }
  std::uint64_t now_ns() const noexcept override { return inner_.now_ns(); }

 protected:
  /// Every call that was forwarded, once it is answered: its kind, its size (zero where it has
  /// none) and its outcome.
  virtual void on_answer(CallKind, Bytes /*size*/, Code) noexcept {}

 private:
  template <class Answer>
  Answer answer(CallKind kind, Bytes size, Answer got) noexcept {
    on_answer(kind, size, got.code());
    return got;
  }

  Device& inner_;
};

}  // namespace ashlar::inline v0::device
