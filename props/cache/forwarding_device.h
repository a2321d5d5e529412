// A device in front of another, that passes every call on: suites override the calls they linger or
// cross in.
//
// Thread safety: the inner device's.
#pragma once

#include <ashlar/device/device.h>

namespace ashlar::props {

class ForwardingDevice : public device::Device {
 public:
  explicit ForwardingDevice(device::Device& inner) : inner_(inner) {}

  device::DeviceTraits traits() const noexcept override { return inner_.traits(); }
  Result<Address> segment_alloc(Bytes size) noexcept override { return inner_.segment_alloc(size); }
  Status segment_free(Address base) noexcept override { return inner_.segment_free(base); }
  Result<Address> address_reserve(Bytes s, Bytes a) noexcept override {
    return inner_.address_reserve(s, a);
  }
  Status address_release(Address b, Bytes s) noexcept override {
    return inner_.address_release(b, s);
  }
  Result<PageHandle> page_create(Bytes s) noexcept override { return inner_.page_create(s); }
  Status page_release(PageHandle p) noexcept override { return inner_.page_release(p); }
  Status page_map(Address a, Bytes s, PageHandle p) noexcept override {
    return inner_.page_map(a, s, p);
  }
  Status page_access(Address a, Bytes s) noexcept override { return inner_.page_access(a, s); }
  Status page_unmap(Address a, Bytes s) noexcept override { return inner_.page_unmap(a, s); }
  Result<EventHandle> event_create() noexcept override { return inner_.event_create(); }
  Status event_destroy(EventHandle e) noexcept override { return inner_.event_destroy(e); }
  Status event_record(EventHandle e, StreamHandle s) noexcept override {
    return inner_.event_record(e, s);
  }
  Status event_query(EventHandle e) noexcept override { return inner_.event_query(e); }
  Status event_synchronize(EventHandle e, std::uint32_t ms) noexcept override {
    return inner_.event_synchronize(e, ms);
  }
  Status stream_wait(StreamHandle s, EventHandle e) noexcept override {
    return inner_.stream_wait(s, e);
  }
  Result<Stream> identify(StreamHandle s) noexcept override { return inner_.identify(s); }
  Result<device::CaptureStatus> capture_status(StreamHandle s) noexcept override {
    return inner_.capture_status(s);
  }
  Result<device::CaptureMode> exchange_capture_mode(device::CaptureMode m) noexcept override {
    return inner_.exchange_capture_mode(m);
  }
  Result<device::MemoryInfo> memory_info() noexcept override { return inner_.memory_info(); }
  Result<Address> pinned_alloc(Bytes s) noexcept override { return inner_.pinned_alloc(s); }
  Status pinned_free(Address b) noexcept override { return inner_.pinned_free(b); }
  Status synchronize() noexcept override { return inner_.synchronize(); }

 private:
  device::Device& inner_;
};

}  // namespace ashlar::props
