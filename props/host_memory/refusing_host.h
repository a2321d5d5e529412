// A host that refuses the n-th allocation that may fail: link refusing_host.cc, and the
// executable's operators new are replaced.
//
// Only those that answer nullptr count and refuse: the library uses no others for its records. The
// rest are as always.
// Thread safety: none; one thread allocates.
#pragma once

#include <cstdint>

namespace ashlar::props {

struct RefusingHost {
  std::uint64_t allocations = 0;
  std::uint64_t fail_at = 0;  ///< counted from 1; 0: never
  bool refuses() { return ++allocations == fail_at; }
};
extern RefusingHost host;

}  // namespace ashlar::props
