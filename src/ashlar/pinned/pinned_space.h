// PinnedSpace: page-locked memory of the host as one more device of a caching allocator.
//
// Purpose: what the caching allocator does for a GPU's memory (reuse by events, bounded waits, limits, memory
// pools, statistics, snapshots) it does for page-locked memory as well, with the same code: a GPU's stream
// that uses a block of this device is one of another device's, whose event the block waits for. The streams
// of this device are *arenas*: no work is ever enqueued on them, so a block without such uses is free at once.
// Work that no event tells of (launches of graphs) is of other devices too: to synchronise this device is to
// synchronise them.
// Thread safety: any thread. No lock is held while memory is locked or unlocked, which takes milliseconds.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <ashlar/base/export.h>
#include <ashlar/device/immediate_device.h>
#include <ashlar/pinned/numa_node.h>

namespace ashlar::inline v0::pinned {

/// How memory becomes page-locked.
enum class PinBy : std::uint8_t {
  kDriver,  ///< the driver allocates it: Device::pinned_alloc (default)
  /// it is mapped, its pages are touched by several threads, and it is registered: Device::host_register.
  /// Faster for large segments
  kRegistration,
};

/// What a PinnedSpace is made with.
struct PinnedSpaceOptions {
  PinBy by = PinBy::kDriver;  ///< how memory is locked
  /// with PinBy::kRegistration: how many threads touch the pages of a segment, 1 to 128
  unsigned touch_threads = 1;
  /// the node of the host that the memory shall come from, while that has any (its number, or kAnyNode)
  int numa_node = kAnyNode;
  /// the most bytes that are page-locked at a time
  Bytes capacity = Bytes::max();
};

/// How often a call was made, and how long it took, in nanoseconds by the device's clock.
struct LockTimes {
  std::uint64_t calls = 0;     ///< made so far
  std::uint64_t total_ns = 0;  ///< of all of them
  std::uint64_t least_ns = 0;  ///< 0 before the first call
  std::uint64_t most_ns = 0;   ///< of the longest
};

/// How long memory took to be page-locked and unlocked. Failed calls count.
struct PinTimes {
  LockTimes pin;    ///< of locking
  LockTimes unpin;  ///< of unlocking
};

/// Page-locked memory of the host. See the head of this file.
class ASHLAR_API PinnedSpace final : public device::ImmediateDevice {
 public:
  /// The device `id` of an allocator. The first of `devices` locks the memory, which all of them can reach
  /// then; they must outlive this. Throws std::bad_alloc if the host has no memory for the object itself.
  /// REQUIRES: at least one device; the options are in their ranges (check_options).
  PinnedSpace(DeviceId id, std::span<device::Device* const> devices,
              const PinnedSpaceOptions& options);
  /// What is still handed out stays locked: the driver, or this process's part of it, may be gone (C25).
  ~PinnedSpace() override;

  /// kInvalidArgument, with the bad field in its text, if an option is out of its range.
  static Status check_options(const PinnedSpaceOptions& options) noexcept;

  /// As it was made.
  const PinnedSpaceOptions& options() const noexcept { return options_; }
  /// How long the calls took so far. In a forked child: zeros (C25).
  PinTimes times() const noexcept;

  /// Addresses that the CPU can dereference.
  device::DeviceTraits traits() const noexcept override;
  /// Locks `size` bytes. kOutOfMemory over the capacity, or if the host has no more; kInvalidArgument for a
  /// NUMA node that does not exist; kUnsupported if the kernel permits no NUMA policy, or the device
  /// registers no memory.
  Result<Address> segment_alloc(Bytes size) noexcept override;
  /// Unlocks a range and gives it back.
  Status segment_free(Address base) noexcept override;
  /// The capacity, or this computer's memory where there is none; free is what this space has not locked.
  Result<device::MemoryInfo> memory_info() noexcept override;
  Result<Address> pinned_alloc(Bytes size) noexcept override { return segment_alloc(size); }
  Status pinned_free(Address base) noexcept override { return segment_free(base); }
  /// Locking memory is a call of the driver, which captures may forbid.
  Result<device::CaptureMode> exchange_capture_mode(device::CaptureMode mode) noexcept override {
    return through_.exchange_capture_mode(mode);
  }
  /// Synchronises every device that can reach the memory. The work of a lost one is over.
  Status synchronize() noexcept override;
  /// kUnsupported if one of them has no such call.
  Status synchronize_for(std::uint32_t timeout_ms) noexcept override;
  std::uint64_t now_ns() const noexcept override { return through_.now_ns(); }

 private:
  struct Book;
  /// What is locked for a range of that size: whole huge pages where memory is registered.
  Bytes locked_size(Bytes size) const noexcept;
  Result<Address> pin(Bytes size) noexcept;
  Status unpin(Address base, Bytes size) noexcept;

  const std::vector<device::Device*> devices_;
  device::Device& through_;  ///< the first of them
  const PinnedSpaceOptions options_;
  std::unique_ptr<Book> book_;
};

}  // namespace ashlar::inline v0::pinned
