// How much memory this computer has.
//
// Thread safety: any thread.
#pragma once

#include <unistd.h>

#include <ashlar/base/types.h>

namespace ashlar::inline v0::device {

/// The computer's memory. Cost: two library calls.
inline Bytes physical_memory() noexcept {
  return Bytes{static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES))} *
         static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace ashlar::inline v0::device
