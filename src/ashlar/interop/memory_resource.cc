#include <ashlar/interop/memory_resource.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include <ashlar/base/checked.h>
#include <ashlar/base/exceptions.h>

namespace ashlar::inline v0::interop {
namespace {

// An alignment larger than the allocator's: the allocation begins before the memory that the caller gets, and its
// address stands right before that.
constexpr Bytes kAddressSize{sizeof(std::uint64_t)};

}  // namespace

void* AllocatorResource::do_allocate(std::size_t bytes, std::size_t alignment) {
  const Bytes size{std::max<std::size_t>(bytes, 1)};
  const bool is_aligned = Bytes{alignment} <= alignment_;
  const std::optional<Bytes> needed = checked_add(size, is_aligned ? 0_B : Bytes{alignment});
  if (!needed) throw_bad_alloc();
  const Result<Address> got = take(*needed);
  if (!got.is_ok()) throw_bad_alloc();
  if (is_aligned) return got.value().pointer();
  const std::uint64_t begin = got.value().value();
  const std::uint64_t aligned = round_up(Bytes{begin} + kAddressSize, Bytes{alignment}).count();
  std::memcpy(Address{aligned - kAddressSize.count()}.pointer(), &begin, sizeof begin);
  return Address{aligned}.pointer();
}

void AllocatorResource::do_deallocate(void* memory, std::size_t, std::size_t alignment) noexcept {
  Address address = Address::of(memory);
  if (Bytes{alignment} > alignment_ && !address.is_null()) {
    std::uint64_t begin = 0;
    std::memcpy(&begin, (address - kAddressSize).pointer(), sizeof begin);
    address = Address{begin};
  }
  if (!give_back(address).is_ok()) refused_frees_.fetch_add(1, std::memory_order_relaxed);
}

CachingResource::CachingResource(cache::CachingAllocator& allocator, const Stream& stream) noexcept
    : AllocatorResource(allocator.config().granule), allocator_(allocator), stream_(stream) {}

PinnedResource::PinnedResource(pinned::PinnedAllocator& allocator) noexcept
    : AllocatorResource(allocator.caching().config().granule), allocator_(allocator) {}

}  // namespace ashlar::inline v0::interop
