// The account of an allocation that failed for want of memory (row DEV-14).
//
// Thread safety: plain values.
#pragma once

#include <cstdint>
#include <string>

#include <ashlar/base/export.h>
#include <ashlar/cache/config.h>
#include <ashlar/device/device.h>

namespace ashlar::inline v0::cache {

/// What a caller can do about an out-of-memory.
enum class Advice : std::uint8_t {
  kWarmUp,         ///< run the same work once before it is captured
  kRaiseLimit,     ///< the limit is in the way, not the device
  kAllowWait,      ///< waiting is off, and memory is still in use (wait_ms)
  kWaitLonger,     ///< the permitted wait ran out (wait_ms)
  kShareComplete,  ///< another stream's memory would do (reuse:completed)
  kShareOrdered,   ///< it would do, but its last use is not complete (reuse:ordered)
  kKeepWhole,      ///< enough is free, but in pieces (max_split_size_mb)
  kRepeatSizes,    ///< the same, with that setting on already (roundup_power2_divisions)
  kLowerHeadroom,  ///< the headroom is in the way, not the device (headroom_mb)
};

/// What an allocator held on a device when a request failed.
struct HeldMemory {
  Bytes reserved;       ///< in segments of this allocator on this device
  Bytes allocated;      ///< in live blocks
  Bytes pending;        ///< in blocks that were freed and whose uses are not complete
  Bytes in_transfer;    ///< in segments that a slow path of another call has taken out
  Bytes free_cached;    ///< in free blocks
  Bytes free_splits;    ///< of these, in segments that are partly in use
  Bytes free_in_pools;  ///< of free_cached, in memory pools in use that the request may not take of
  Bytes pinned;  ///< in whole pages and segments, in use or not: none of it could be given back
  Bytes largest_free;  ///< the largest free block of any stream
  /// the largest free block that the asking stream may be given now: its own, and with `reuse`
  /// other than `own` those of other streams whose last use is known complete
  Bytes largest_reachable;
  /// the smallest free block of another stream that is right for the request, were it in reach;
  /// zero if there is none
  Bytes fits_elsewhere;
};

/// Why an allocation returned kOutOfMemory: the request, the device, and what the allocator held at
/// that moment.
struct ASHLAR_API OutOfMemory : HeldMemory {
  DeviceId device;  ///< the device that was short
  Bytes requested;  ///< what the caller asked for
  Bytes rounded;    ///< the size that the pools were searched for
  Bytes segment;    ///< the size that the driver was asked for
  /// what the driver says of the device's memory; all zero if it does not say
  device::MemoryInfo device_memory;
  Bytes limit;                ///< the memory limit in force; Bytes::max() if there is none
  bool wait_ran_out = false;  ///< the permitted wait ended while frees were pending (C12)
  bool capturing = false;     ///< memory could not be reclaimed, because a capture is announced
  std::uint16_t advice = 0;   ///< a bit for each Advice, as advise() works it out
  Config config;              ///< the settings, so that nothing is advised that is already set

  /// Works out `advice` from the other fields.
  void advise() noexcept;
  /// True if the account gives that advice.
  bool advises(Advice what) const noexcept {
    return (advice >> static_cast<unsigned>(what) & 1) != 0;
  }
  /// True if the request alone is larger than the device, as far as the driver says how large that is. Nothing
  /// that a caller could set helps then, so nothing is advised.
  bool exceeds_device() const noexcept {
    return device_memory.total != Bytes{} && rounded > device_memory.total;
  }
  /// The external fragmentation of the free bytes, from 0 to 1: 1 - largest_free / free_cached, or
  /// 0 if nothing is free.
  double fragmentation() const;
  /// Several lines of text with every figure, and the advice. Throws std::bad_alloc.
  std::string message() const;
};

}  // namespace ashlar::inline v0::cache
