// PeerAccess: memory of one device for the kernels of another, and copies between devices.
//
// Purpose: PyTorch enables access at the first copy between two devices, and copies directly if that succeeded, else through both
// contexts. This class does the same (row DEV-21). Pages of an allocator need none of it: they are given to all its devices as they are mapped, where the
// devices can use each other's memory. What is enabled here reaches plain segments as well; not memory of the driver's pools (`backend:cudaMallocAsync`), which have
// permissions of their own that nothing here sets.
// Thread safety: any thread. What was learnt of a pair of devices is remembered; a race asks twice.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include <ashlar/base/export.h>
#include <ashlar/device/device.h>
#include <ashlar/device/sharing.h>

namespace ashlar::inline v0::share {

/// Which devices may use each other's memory, and the copies between them.
class ASHLAR_API PeerAccess {
 public:
  /// `devices[i]` has DeviceId i, and must outlive this. Makes no device call. Throws std::bad_alloc.
  explicit PeerAccess(std::span<device::Device* const> devices);

  /// May `user`'s kernels use all memory of `owner` from now on? Enables it where the devices can. False where they cannot, or
  /// share nothing. kInvalidArgument for a device that is not one of those; an error of the driver is passed on, and the next
  /// call asks again. Cost: device calls for the first answer about a pair, one load for the later ones.
  Result<bool> enable(DeviceId user, DeviceId owner) noexcept;

  /// Enqueues a copy of `size` bytes on `stream`, from memory of `from_device` to memory of `to_device`: an ordinary one where
  /// the stream's device may use both, else one that goes through both devices. The allocations are live, and the copy is a
  /// use of both by `stream` (CachingAllocator::record_use). Errors as enable(); kUnsupported if a device copies nothing.
  Status copy(Address to, DeviceId to_device, Address from, DeviceId from_device, Bytes size,
              const Stream& stream) noexcept;

 private:
  enum class Known : std::uint8_t { kNothing, kCannot, kEnabled };

  device::Sharing* sharing_of(DeviceId id) const noexcept;
  bool has(DeviceId id) const noexcept {
    return static_cast<std::uint32_t>(id.value()) < devices_.size();
  }

  const std::vector<device::Device*> devices_;
  std::unique_ptr<std::atomic<Known>[]> known_;  ///< of each pair: user x devices + owner
};

}  // namespace ashlar::inline v0::share
