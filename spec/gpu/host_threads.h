// HostThreads: the host threads that a simulated machine knows, and the capture mode of each.
//
// Every real thread gets a number at its first call; act_as lets it act as another number.
// Thread safety: none (the machine's lock). Cost: O(1) while a thread calls the same machine, else
// O(threads).
#pragma once

#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include <ashlar/device/device.h>

namespace ashlar::spec {

class HostThreads {
 public:
  HostThreads();

  /// The calling thread's number on this machine.
  std::uint32_t current();
  void act_as(std::uint32_t n);
  /// The calling thread's capture mode.
  device::CaptureMode& capture_mode();

 private:
  std::uint64_t serial_;  // tells machines apart in the calling thread's cache
  std::vector<std::pair<std::thread::id, std::uint32_t>> numbers_;
  std::vector<device::CaptureMode> capture_modes_;  // by number
};

}  // namespace ashlar::spec
