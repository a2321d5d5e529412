// A host that refuses the n-th allocation, or all from there on. Linking refusing_host.cc replaces
// the operators new of the executable, and the host's pages (base/host_pages.h).
//
// Purpose: tests of what happens when host memory runs out. The nothrow operators, which return
// nullptr, and the reservation and commitment of pages count and refuse; the library uses no others
// for its records. The throwing ones, which containers use, do so only where a test asks for it.
// Thread safety: none; one thread allocates.
#pragma once

#include <cstdint>

namespace ashlar::props {

struct RefusingHost {
  std::uint64_t allocations = 0;
  std::uint64_t fail_at = 0;      ///< the allocation to refuse, counted from 1; 0 for none
  bool has_pages = true;          ///< false: no addresses are reserved, as on a host without pages
  bool stays_empty = false;       ///< refuses all after that one too
  bool throws = false;            ///< the throwing operators count and refuse as well
  bool is_off = false;            ///< neither counts nor refuses: for several threads
  std::uint64_t refused = 0;      ///< how many it has refused
  std::int64_t mapped_bytes = 0;  ///< of addresses that are reserved and not released
  /// Counts one allocation; true if it is one to refuse.
  bool refuses() {
    if (is_off) return false;
    const bool is_refused =
        ++allocations == fail_at || (stays_empty && fail_at != 0 && allocations > fail_at);
    refused += is_refused;
    return is_refused;
  }
};
extern RefusingHost host;

}  // namespace ashlar::props
