#include <ashlar/device/device.h>

#include <array>
#include <chrono>

namespace ashlar::inline v0::device {

const char* call_name(CallKind kind) noexcept {
  static constexpr std::array<const char*, kCallKinds> kNames{
      "segment-alloc",  "segment-free",          "address-reserve", "address-release",
      "page-create",    "page-release",          "page-map",        "page-access",
      "page-unmap",     "event-create",          "event-destroy",   "event-record",
      "event-query",    "event-synchronize",     "stream-wait",     "identify",
      "capture-status", "exchange-capture-mode", "memory-info",     "pinned-alloc",
      "pinned-free",    "synchronize",           "capture-mark",    "capture-covers",
      "host-register",  "host-unregister",       "page-export",     "page-import",
      "segment-export", "segment-open",          "segment-close",   "reach",
      "copy",           "stream-alloc",          "stream-free",     "stream-trim"};
  const auto index = static_cast<unsigned>(kind);
  return index < kCallKinds ? kNames[index] : "unknown";
}

Result<CaptureMark> Device::capture_mark(StreamHandle) noexcept {
  return Status{Code::kUnsupported, "the device makes no marks in captures"};
}

Status Device::capture_covers(StreamHandle, CaptureMark) noexcept {
  return {Code::kUnsupported, "the device makes no marks in captures"};
}

Status Device::host_register(Address, Bytes) noexcept {
  return {Code::kUnsupported, "the device registers no memory of the host"};
}

Status Device::host_unregister(Address) noexcept {
  return {Code::kUnsupported, "the device registers no memory of the host"};
}

Status Device::synchronize_for(std::uint32_t) noexcept {
  return {Code::kUnsupported, "the device has no synchronisation with a time limit"};
}

namespace {
constexpr Status kNoStreamMemory{Code::kUnsupported, "the device has no stream-ordered memory"};
}  // namespace

Result<Address> Device::stream_alloc(Bytes, StreamHandle) noexcept { return kNoStreamMemory; }
Status Device::stream_free(Address, StreamHandle) noexcept { return kNoStreamMemory; }
Status Device::stream_trim(Bytes) noexcept { return kNoStreamMemory; }

Sharing* Device::sharing() noexcept { return nullptr; }

std::uint64_t Device::now_ns() const noexcept {
  const auto since_start = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(since_start).count());
}

}  // namespace ashlar::inline v0::device
