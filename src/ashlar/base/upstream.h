// What a layer that hands out memory asks of the one below it.
//
// Purpose: a plan's replay falls back to an allocator it does not know (src/ashlar/plan knows no
// device), a recorder listens to one, a router picks one. The caching allocator stands behind it by
// cache/caching_upstream.h.
// Thread safety: every member may be called from any thread.
#pragma once

#include <ashlar/base/export.h>
#include <ashlar/base/status.h>
#include <ashlar/base/types.h>

namespace ashlar::inline v0 {

/// Stream-ordered memory: what is allocated on a stream is for work enqueued on it from then on;
/// what is freed comes back in that stream's order. No member throws.
class ASHLAR_API Upstream {
 public:
  virtual ~Upstream() = default;

  /// At least `size` bytes; zero bytes give the null address. A failed call changes nothing.
  virtual Result<Address> allocate(Bytes size, const Stream& stream) noexcept = 0;
  /// Ends an allocation of this upstream. Null is nothing. kUnknownPointer or kDoubleFree, and
  /// nothing changes, for what is none of its live ones. Never allocates.
  virtual Status free(Address address) noexcept = 0;
  /// The memory at `address` is used by work on `stream` too. Errors as free, and kOutOfMemory
  /// where there is no room to note it.
  virtual Status record_use(Address address, const Stream& stream) noexcept = 0;
};

}  // namespace ashlar::inline v0
