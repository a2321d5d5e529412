// A host that counts what the executable holds of it. Linking counting_host.cc replaces the operators
// new and delete, and the host's pages (base/host_pages.h).
//
// Purpose: tests that a life leaves nothing behind, and of how much memory a structure asks for.
// Thread safety: the counters are atomic; a difference of two readings means something only if no
// other thread allocates.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ashlar::props {

struct CountingHost {
  std::atomic<std::int64_t> live{0};          ///< allocations that are not freed
  std::atomic<std::int64_t> mapped_bytes{0};  ///< of pages that are not released
  std::atomic<std::uint64_t> made{0};         ///< allocations so far
  std::atomic<std::size_t> largest{0};        ///< the bytes of the largest since it was set to 0
  std::atomic<bool> is_empty{false};          ///< the nothrow operators return nullptr
};
extern CountingHost counted;

/// What the executable holds now.
struct HostHolding {
  std::int64_t live = counted.live;
  std::int64_t mapped_bytes = counted.mapped_bytes;
  friend bool operator==(const HostHolding&, const HostHolding&) = default;
};

}  // namespace ashlar::props
