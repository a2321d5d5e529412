// The allocators as std::pmr::memory_resource, for containers of the standard library and others that take one.
//
// Purpose: a program without a GPU uses the library as its allocator; one with a GPU puts a container's elements into
// page-locked memory.
// Thread safety: as the allocator: any thread, unlike the standard library's unsynchronized_pool_resource.
//
// A request takes at least Config::granule bytes (512 unless set otherwise; 16 at least). A container of small nodes
// (std::pmr::map, list) therefore gets a std::pmr::unsynchronized_pool_resource in between, whose upstream this is.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory_resource>

#include <ashlar/base/export.h>
#include <ashlar/cache/caching_allocator.h>
#include <ashlar/pinned/pinned_allocator.h>

namespace ashlar::inline v0::interop {

/// What the two resources below share: alignments larger than the allocator's, zero bytes, failures.
class ASHLAR_API AllocatorResource : public std::pmr::memory_resource {
 public:
  /// How many deallocations the allocator refused: pointers that are not live allocations of it. A resource cannot
  /// report them otherwise, and they have no effect.
  std::uint64_t refused_frees() const noexcept {
    return refused_frees_.load(std::memory_order_relaxed);
  }

  ~AllocatorResource() override = default;

 protected:
  /// `alignment`: what every address of the allocator is aligned to.
  explicit AllocatorResource(Bytes alignment) noexcept : alignment_(alignment) {}

  /// Allocates; the allocator's errors.
  virtual Result<Address> take(Bytes size) noexcept = 0;
  /// Frees; the allocator's errors.
  virtual Status give_back(Address address) noexcept = 0;

 private:
  /// Throws std::bad_alloc where the allocator fails. Zero bytes have an address of their own.
  void* do_allocate(std::size_t bytes, std::size_t alignment) override;
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) noexcept override;
  /// Is it the same object? Two resources over one allocator are not taken for equal: without run-time types the other's
  /// kind is not known.
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  const Bytes alignment_;
  std::atomic<std::uint64_t> refused_frees_{0};
};

/// A stream's memory of a caching allocator. REQUIRES: the stream's device is host-accessible (DeviceTraits), and the
/// allocator outlives this.
class ASHLAR_API CachingResource final : public AllocatorResource {
 public:
  /// Allocates on `stream`.
  CachingResource(cache::CachingAllocator& allocator, const Stream& stream) noexcept;

 private:
  Result<Address> take(Bytes size) noexcept override { return allocator_.allocate(size, stream_); }
  Status give_back(Address address) noexcept override { return allocator_.free(address); }

  cache::CachingAllocator& allocator_;
  const Stream stream_;
};

/// Page-locked memory; over a HostDevice, ordinary memory, each thread from its own arena. The allocator outlives this.
class ASHLAR_API PinnedResource final : public AllocatorResource {
 public:
  /// Over that allocator.
  explicit PinnedResource(pinned::PinnedAllocator& allocator) noexcept;

 private:
  Result<Address> take(Bytes size) noexcept override { return allocator_.allocate(size); }
  Status give_back(Address address) noexcept override { return allocator_.free(address); }

  pinned::PinnedAllocator& allocator_;
};

}  // namespace ashlar::inline v0::interop
