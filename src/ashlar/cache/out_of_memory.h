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

/// Why an allocation returned kOutOfMemory: the request, the device, and what the allocator held at
/// that moment.
struct ASHLAR_API OutOfMemory {
  DeviceId device;  ///< the device that was short
  Bytes requested;  ///< what the caller asked for
  Bytes rounded;    ///< the size that the pools were searched for
  Bytes segment;    ///< the size that the driver was asked for
  /// what the driver says of the device's memory; all zero if it does not say
  device::MemoryInfo device_memory;
  Bytes limit;                ///< the memory limit in force; Bytes::max() if there is none
  Bytes reserved;             ///< segments of this allocator on this device
  Bytes allocated;            ///< in live blocks
  Bytes pending;              ///< in blocks that were freed and whose uses are not complete
  Bytes in_transfer;          ///< in segments that a slow path of another call has taken out
  Bytes free_cached;          ///< in free blocks
  Bytes largest_free;         ///< the largest free block that the asking stream may be given
  bool wait_ran_out = false;  ///< the permitted wait ended while frees were pending (C12)
  bool capturing = false;     ///< memory could not be reclaimed, because a capture is announced
  Config config;  ///< the settings, so that message() advises nothing that is already set

  /// The external fragmentation of the free bytes, from 0 to 1: 1 - largest_free / free_cached, or
  /// 0 if nothing is free.
  double fragmentation() const;
  /// Several lines of text with every figure, and the advice that applies. Throws std::bad_alloc.
  std::string message() const;
};

}  // namespace ashlar::inline v0::cache
