// Whether the host refused memory for the allocator's own records.
//
// Purpose: an allocation that the host has no memory for fails at once with kHostOutOfMemory. It is
// no shortage of the device's: nothing is given back or waited for. A search that finds nothing and
// one that the host refused a record both give the null address, so that a hit costs no more; what
// is noted here tells them apart.
// Thread safety: each thread has its own count.
#pragma once

#include <cstdint>

#include <ashlar/base/status.h>

namespace ashlar::inline v0::cache {

/// A miss's answer where the host has no memory.
inline constexpr Status kShortOfHostMemory{Code::kHostOutOfMemory,
                                           "the host has no memory for the allocator's records"};

/// The refusals that this thread sees from its making on.
class HostRefusals {
 public:
  HostRefusals() noexcept : before_(count()) {}
  bool any() const noexcept { return count() != before_; }
  /// The host has refused this thread memory.
  [[gnu::cold, gnu::noinline]] static void note() noexcept { ++count(); }

 private:
  static std::uint64_t& count() noexcept {
    thread_local std::uint64_t refusals = 0;
    return refusals;
  }

  const std::uint64_t before_;
};

}  // namespace ashlar::inline v0::cache
