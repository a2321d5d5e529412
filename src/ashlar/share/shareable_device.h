// ShareableDevice: a device whose pages can leave the process.
//
// Purpose: an allocator made over it grows by pages that other processes can be given. Without it pages have no handles, which
// costs the driver least.
// Thread safety: any thread.
//
//   share::ShareableDevice shareable(*gpu, device::ShareKind::kDescriptor);
//   device::Device* const devices[] = {&shareable};
//   auto allocator = CachingAllocator::create(devices, config).value();
#pragma once

#include <atomic>

#include <ashlar/device/forwarding_device.h>
#include <ashlar/device/sharing.h>

namespace ashlar::inline v0::share {

/// A device whose pages other processes can open.
class ShareableDevice final : public device::ForwardingDevice {
 public:
  /// Pages are made with handles of the kind `wanted`: kFabric, which the host's administrator has to permit, or kDescriptor. Where the
  /// device refuses kFabric, pages made from then on have kDescriptor, and where it refuses that, none. Each page keeps what
  /// it was made with, and an exported header says it of each part. `inner` must outlive this.
  explicit ShareableDevice(device::Device& inner,
                           device::ShareKind wanted = device::ShareKind::kDescriptor)
      : ForwardingDevice(inner), kind_(wanted) {}

  /// A wrapper between this and the device does not see it, unless it overrides sharing().
  Result<PageHandle> page_create(Bytes size) noexcept override {
    device::Sharing* const shares = sharing();
    for (device::ShareKind kind = page_kind();
         shares != nullptr && kind != device::ShareKind::kNone; kind = page_kind()) {
      Result<PageHandle> made = shares->page_create(size, kind);
      if (made.code() != Code::kUnsupported) return made;
      // Another thread may have learnt it first.
      kind_.compare_exchange_strong(kind, next_after(kind), std::memory_order_relaxed);
    }
    return ForwardingDevice::page_create(size);
  }
  /// How pages that are made now can leave the process.
  device::ShareKind page_kind() const noexcept { return kind_.load(std::memory_order_relaxed); }

 private:
  static device::ShareKind next_after(device::ShareKind kind) noexcept {
    return kind == device::ShareKind::kFabric ? device::ShareKind::kDescriptor
                                              : device::ShareKind::kNone;
  }

  std::atomic<device::ShareKind> kind_;
};

}  // namespace ashlar::inline v0::share
