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
  /// device refuses kFabric, or does not export and import the first page of that kind (a host may permit it by halves), pages made
  /// from then on have kDescriptor, and where it refuses that, none. Each page keeps what it was made with, and an exported header
  /// says it of each part. `inner` must outlive this.
  explicit ShareableDevice(device::Device& inner,
                           device::ShareKind wanted = device::ShareKind::kDescriptor)
      : ForwardingDevice(inner), kind_(wanted) {}

  /// A wrapper between this and the device does not see it, unless it overrides sharing().
  Result<PageHandle> page_create(Bytes size) noexcept override {
    device::Sharing* const shares = sharing();
    for (device::ShareKind kind = page_kind();
         shares != nullptr && kind != device::ShareKind::kNone; kind = page_kind()) {
      Result<PageHandle> made = create(*shares, size, kind);
      if (made.code() != Code::kUnsupported) return made;
      // Another thread may have learnt it first.
      kind_.compare_exchange_strong(kind, next_after(kind), std::memory_order_relaxed);
    }
    return ForwardingDevice::page_create(size);
  }
  /// How pages that are made now can leave the process.
  device::ShareKind page_kind() const noexcept { return kind_.load(std::memory_order_relaxed); }

 private:
  /// kUnsupported where that kind of handle does not work here.
  Result<PageHandle> create(device::Sharing& shares, Bytes size, device::ShareKind kind) noexcept {
    Result<PageHandle> made = shares.page_create(size, kind);
    const bool is_known =
        kind != device::ShareKind::kFabric || has_fabric_.load(std::memory_order_relaxed);
    if (is_known || !made.is_ok()) return made;
    const Status tried = try_handle(shares, size, made.value());
    if (tried.is_ok()) {
      has_fabric_.store(true, std::memory_order_relaxed);
      return made;
    }
    static_cast<void>(page_release(made.value()));
    return is_unrelated(tried) ? tried : Status{Code::kUnsupported, "fabric handles do not work"};
  }
  /// Exports the page and imports it.
  Status try_handle(device::Sharing& shares, Bytes size, PageHandle page) noexcept {
    const Result<device::ShareHandle> handle = shares.page_export(page);
    if (!handle.is_ok()) return handle.status();
    const Result<PageHandle> imported = shares.page_import(handle.value(), size);
    return imported.is_ok() ? page_release(imported.value()) : imported.status();
  }
  /// A shortage, or a lost device: the error does not tell whether handles of that kind work.
  static bool is_unrelated(const Status& status) noexcept {
    return status.code() == Code::kOutOfMemory || status.code() == Code::kHostOutOfMemory ||
           status.code() == Code::kDeviceLost;
  }
  static device::ShareKind next_after(device::ShareKind kind) noexcept {
    return kind == device::ShareKind::kFabric ? device::ShareKind::kDescriptor
                                              : device::ShareKind::kNone;
  }

  std::atomic<device::ShareKind> kind_;
  std::atomic<bool> has_fabric_{false};  ///< a page was exported and imported by such a handle
};

}  // namespace ashlar::inline v0::share
