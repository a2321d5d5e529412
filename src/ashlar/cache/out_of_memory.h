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

struct ASHLAR_API OutOfMemory {
  DeviceId device;
  Bytes requested;
  Bytes rounded;  ///< what the pools were searched for
  Bytes segment;  ///< what the driver was asked for
  /// What the driver says of the device; all zero if it does not say.
  device::MemoryInfo device_memory;
  Bytes limit;                ///< the memory limit in force; Bytes::max() = none
  Bytes reserved;             ///< by this allocator on this device
  Bytes allocated;            ///< live
  Bytes pending;              ///< freed, uses not yet complete
  Bytes in_transfer;          ///< in the hands of another thread's slow path
  Bytes free_cached;          ///< reserved and unallocated
  Bytes largest_free;         ///< the largest single free block over all heaps
  bool wait_ran_out = false;  ///< the permitted wait ended while frees were pending (C12)
  bool capturing = false;     ///< reclaim was not allowed because a capture is underway
  Config config;              ///< so that no advice repeats what is already on

  /// External fragmentation of the reserved-but-free bytes: 1 - largest_free / free_cached; 0 when
  /// nothing is free.
  double fragmentation() const;
  /// Several lines of plain English with every figure, and advice that applies.
  std::string message() const;
};

}  // namespace ashlar::inline v0::cache
