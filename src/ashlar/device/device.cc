#include <ashlar/device/device.h>

#include <array>

namespace ashlar::inline v0::device {

const char* call_name(CallKind kind) noexcept {
  static constexpr std::array<const char*, kCallKinds> kNames{
      "segment-alloc",   "segment-free",      "address-reserve",
      "address-release", "page-create",       "page-release",
      "page-map",        "page-access",       "page-unmap",
      "event-create",    "event-destroy",     "event-record",
      "event-query",     "event-synchronize", "stream-wait",
      "identify",        "capture-status",    "exchange-capture-mode",
      "memory-info",     "pinned-alloc",      "pinned-free",
      "synchronize"};
  const auto index = static_cast<unsigned>(kind);
  return index < kCallKinds ? kNames[index] : "unknown";
}

}  // namespace ashlar::inline v0::device
