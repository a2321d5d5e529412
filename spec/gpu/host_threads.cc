#include "spec/gpu/host_threads.h"

#include <atomic>

namespace ashlar::spec {
namespace {

std::uint64_t next_serial() {
  static std::atomic<std::uint64_t> serial{0};
  return ++serial;
}

// The calling thread's number on the machine it called last.
struct ThreadSlot {
  std::uint64_t serial = 0;
  std::uint32_t number = 0;
};
thread_local ThreadSlot thread_slot;

}  // namespace

HostThreads::HostThreads() : serial_(next_serial()) {}

std::uint32_t HostThreads::current() {
  if (thread_slot.serial == serial_) return thread_slot.number;
  const std::thread::id self = std::this_thread::get_id();
  for (const auto& [id, number] : numbers_) {
    if (id != self) continue;
    thread_slot = ThreadSlot{serial_, number};
    return number;
  }
  const auto number = static_cast<std::uint32_t>(numbers_.size());
  numbers_.emplace_back(self, number);
  thread_slot = ThreadSlot{serial_, number};
  return number;
}

void HostThreads::act_as(std::uint32_t n) {
  current();
  for (auto& [id, number] : numbers_) {
    if (id == std::this_thread::get_id()) number = n;
  }
  thread_slot = ThreadSlot{serial_, n};
}

device::CaptureMode& HostThreads::capture_mode() {
  const std::uint32_t self = current();
  if (capture_modes_.size() <= self) capture_modes_.resize(self + 1, device::CaptureMode::kGlobal);
  return capture_modes_[self];
}

}  // namespace ashlar::spec
