// How many uses wait without an event, by the device of their blocks and that of their streams.
//
// Purpose: tells which devices' synchronisations answer for the pending blocks of one device, with
// no walk over their uses: some of those devices may be stuck, and must not hide the others.
// Thread safety: any thread, once made.
//
// Invariant:
//   (1) a count is that of the uses in unrecorded lists (pending_uses.h) or taken from one by a
//       retry, except at the allocator's end, which drops the lists.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>

#include <ashlar/base/types.h>

namespace ashlar::inline v0::cache {

class UnrecordedUses {
 public:
  /// Before the first device is made. False if the host has no memory.
  bool make(std::size_t devices) noexcept {
    devices_ = static_cast<std::uint32_t>(devices);
    counts_.reset(new (std::nothrow) std::atomic<std::uint64_t>[devices * devices]());
    return counts_ != nullptr;
  }
  std::uint32_t devices() const noexcept { return devices_; }
  void add(DeviceId blocks, DeviceId users) noexcept { at(blocks, users).fetch_add(1); }
  void drop(DeviceId blocks, DeviceId users) noexcept { at(blocks, users).fetch_sub(1); }
  std::uint64_t count(DeviceId blocks, DeviceId users) const noexcept {
    return at(blocks, users).load();
  }

 private:
  std::atomic<std::uint64_t>& at(DeviceId blocks, DeviceId users) const noexcept {
    const auto row = static_cast<std::size_t>(blocks.value());
    return counts_[row * devices_ + static_cast<std::size_t>(users.value())];
  }

  std::uint32_t devices_ = 0;
  std::unique_ptr<std::atomic<std::uint64_t>[]> counts_;
};

}  // namespace ashlar::inline v0::cache
