// The caching allocator as an Upstream.
//
// Purpose: a plan's replay gets its segment, and the allocations that it does not serve itself,
// from the caching allocator.
// Thread safety: as the allocator.
#pragma once

#include <ashlar/base/upstream.h>
#include <ashlar/cache/caching_allocator.h>

namespace ashlar::inline v0::cache {

/// Forwards each call to an allocator, which must outlive it.
class CachingUpstream final : public Upstream {
 public:
  /// An upstream over `allocator`.
  explicit CachingUpstream(CachingAllocator& allocator) noexcept : allocator_(allocator) {}

  Result<Address> allocate(Bytes size, const Stream& stream) noexcept override {
    return allocator_.allocate(size, stream);
  }
  Status free(Address address) noexcept override { return allocator_.free(address); }
  Status record_use(Address address, const Stream& stream) noexcept override {
    return allocator_.record_use(address, stream);
  }

 private:
  CachingAllocator& allocator_;
};

}  // namespace ashlar::inline v0::cache
