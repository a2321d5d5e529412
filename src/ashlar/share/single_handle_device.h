// SingleHandleDevice: a device each of whose segments is one piece of physical memory with one handle.
//
// Purpose: memory pools for whoever registers or exports whole segments, and wants one handle for each: symmetric memory, a network
// library's buffers (row DEV-21). It is a pool's MemoryPoolOptions::growth; the pool's segments neither grow nor move.
// Thread safety: any thread. No driver call is made under its lock.
//
//   share::SingleHandleDevice source(shareable);     // or of the device itself: then the handles stay in the process
//   allocator->create_pool(device, pool, {.growth = &source});
//
// A pool's statistics and limits count its segments as they were asked for; the device holds whole pages. With segments of whole
// pages, as the usual settings make them, the two are the same.
//
// Invariants:
//   (1) each segment that is handed out is mapped, its users have access, and its handle is held until segment_free().
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <ashlar/base/export.h>
#include <ashlar/device/forwarding_device.h>
#include <ashlar/device/sharing.h>

namespace ashlar::inline v0::share {

/// A device whose segments are one physical handle each.
class ASHLAR_API SingleHandleDevice final : public device::ForwardingDevice {
 public:
  /// Pages come from `inner`. Those of `peers` that can reach it, which is asked here, may use every segment too: kernels of other
  /// GPUs, as a communication library's, fault without (PeerAccess does not reach mapped pages). All must outlive this. REQUIRES:
  /// every segment is freed before the destructor. Throws std::bad_alloc.
  explicit SingleHandleDevice(device::Device& inner, std::span<device::Device* const> peers = {});
  ~SingleHandleDevice() override;

  /// A segment of `size`, rounded up to whole pages. kOutOfMemory if the device has no memory or no addresses for it; kUnsupported where
  /// it has no virtual memory; kHostOutOfMemory; else the error of the call that failed. After an error nothing is held.
  Result<Address> segment_alloc(Bytes size) noexcept override;
  /// If the driver refuses to unmap, its error, and nothing has changed. What it refuses to take back after that is forgotten:
  /// ok, and it stays the driver's.
  Status segment_free(Address base) noexcept override;
  /// The inner device's, with segment_page().
  device::Sharing* sharing() noexcept override;

 private:
  struct Segments;
  class Shares;

  std::vector<device::Device*> users_;        ///< the inner device, and peers
  const std::unique_ptr<Segments> segments_;  ///< that are handed out, with their pages
  std::unique_ptr<Shares> shares_;
};

}  // namespace ashlar::inline v0::share
