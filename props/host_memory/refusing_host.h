// A host that refuses the n-th allocation. Linking refusing_host.cc replaces the operators new of
// the executable, and the host's pages (base/host_pages.h).
//
// Purpose: tests of what happens when host memory runs out. Only the nothrow operators, which
// return nullptr, and the reservation and commitment of pages count and refuse; the library uses no
// others for its records. The throwing operators never refuse.
// Thread safety: none; one thread allocates.
#pragma once

#include <cstdint>

namespace ashlar::props {

struct RefusingHost {
  std::uint64_t allocations = 0;
  std::uint64_t fail_at = 0;  ///< the allocation to refuse, counted from 1; 0 for none
  bool has_pages = true;      ///< false: no addresses are reserved, as on a host without pages
  /// Counts one allocation; true if it is the one to refuse.
  bool refuses() { return ++allocations == fail_at; }
};
extern RefusingHost host;

}  // namespace ashlar::props
