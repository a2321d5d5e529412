// What a device must bring to be put through the conformance suite (conformance_test.cc).
//
// Thread safety: one thread, but for the Device itself.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include <ashlar/device/device.h>

namespace ashlar::props {

/// A device and the hands that a real machine's user would have on it.
class DeviceUnderTest {
 public:
  virtual ~DeviceUnderTest() = default;
  virtual device::Device& device() = 0;
  virtual Result<Stream> create_stream() = 0;
  virtual Status destroy_stream(StreamHandle stream) = 0;
  /// Handles, ranges and mappings handed out and not returned.
  virtual std::uint64_t held() = 0;
};

/// A kind of device, made with a capacity.
struct DeviceMaker {
  std::string name;
  std::function<std::unique_ptr<DeviceUnderTest>(Bytes capacity)> make;
  friend void PrintTo(const DeviceMaker& maker, std::ostream* out) { *out << maker.name; }
};

}  // namespace ashlar::props
