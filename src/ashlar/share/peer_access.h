// PeerAccess: memory of one device for the kernels of another, and copies between devices.
//
// Purpose: access to another device's segments is enabled at the first copy between the two, as PyTorch does it, and copies between
// devices name both (cuMemcpyPeerAsync), which goes directly where they are peers and suits every kind of memory (row DEV-21).
// What is enabled here reaches plain segments alone (cuMemAlloc). Mapped pages have permissions of their own: an allocator gives
// its pages to all its devices, where they can use each other's memory; SingleHandleDevice to the peers it was told; opened memory
// (opened_memory.h) is of its own device alone. So have the driver's pools (`backend:cudaMallocAsync`), which nothing here sets.
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

  /// May `user`'s kernels use the segments of `owner` from now on, all that cuMemAlloc gives? Enables it where the devices can. False
  /// where they cannot, or share nothing. kInvalidArgument for a device that is not one of those; an error of the driver is passed
  /// on, and the next call asks again. Cost: device calls for the first answer about a pair, one load for the later ones.
  Result<bool> enable(DeviceId user, DeviceId owner) noexcept;

  /// Enqueues a copy of `size` bytes on `stream`, from memory of `from_device` to memory of `to_device`: an ordinary one within
  /// the stream's device, else one between devices, for which access is enabled first. The allocations are live, and the copy is a
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
