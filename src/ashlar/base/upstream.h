// The interface of an allocator that another layer gets its memory from.
//
// Purpose: a plan's replay falls back to an allocator through it (src/ashlar/plan knows no device),
// a recorder records the calls to one, and a router forwards each request to one of several.
// cache/caching_upstream.h adapts the caching allocator to it.
// Thread safety: every member may be called from any thread.
#pragma once

#include <ashlar/base/export.h>
#include <ashlar/base/status.h>
#include <ashlar/base/types.h>

namespace ashlar::inline v0 {

/// A stream-ordered allocator. Memory allocated on a stream may be used by work enqueued on that
/// stream afterwards; freed memory becomes available again in that stream's order. No member
/// throws.
class ASHLAR_API Upstream {
 public:
  virtual ~Upstream() = default;

  /// Allocates at least `size` bytes; returns the null address for zero bytes. A failed call has no
  /// effect.
  virtual Result<Address> allocate(Bytes size, const Stream& stream) noexcept = 0;
  /// Frees an allocation of this upstream. Freeing null is a no-op. Returns kUnknownPointer or
  /// kDoubleFree, without effect, if `address` is not live here. Never allocates.
  virtual Status free(Address address) noexcept = 0;
  /// Records that work on `stream` uses the memory at `address` too. Errors as free(), and
  /// kHostOutOfMemory if host bookkeeping memory cannot be allocated.
  virtual Status record_use(Address address, const Stream& stream) noexcept = 0;
};

}  // namespace ashlar::inline v0
