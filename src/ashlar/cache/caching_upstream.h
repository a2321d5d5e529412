// The caching allocator as an Upstream: what plans fall back to, and where their segments come
// from.
//
// Thread safety: the allocator's. The allocator must outlive this.
#pragma once

#include <ashlar/base/upstream.h>
#include <ashlar/cache/caching_allocator.h>

namespace ashlar::inline v0::cache {

class CachingUpstream final : public Upstream {
 public:
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
