// What the conformance suite (conformance_test.cc) needs from a device beyond the Device interface.
//
// Thread safety: one thread, except for the Device itself.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include <ashlar/device/device.h>

namespace ashlar::props {

/// A device, and the operations on it that an application makes past the Device interface.
class DeviceUnderTest {
 public:
  virtual ~DeviceUnderTest() = default;
  virtual device::Device& device() = 0;
  virtual Result<Stream> create_stream() = 0;
  virtual Status destroy_stream(StreamHandle stream) = 0;
  /// Zero exactly when every handle, range and mapping was returned.
  virtual std::uint64_t held() = 0;
};

/// A kind of device: its name, and a function that makes one with a capacity.
struct DeviceMaker {
  std::string name;
  std::function<std::unique_ptr<DeviceUnderTest>(Bytes capacity)> make;
  friend void PrintTo(const DeviceMaker& maker, std::ostream* out) { *out << maker.name; }
};

}  // namespace ashlar::props
