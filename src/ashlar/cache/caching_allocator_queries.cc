// The front door's questions: an allocation, figures, snapshots, and its invariants (queries.h).
#include <ashlar/cache/caching_allocator.h>

#include <ashlar/base/exceptions.h>
#include <ashlar/cache/caching_allocator_impl.h>
#include <ashlar/cache/queries.h>

namespace ashlar::inline v0::cache {

Result<AllocationInfo> CachingAllocator::info(Address address) const noexcept {
  if (const Status status = impl_->usable(); !status.is_ok()) return status;
  return DeviceCache::info(impl_->shared.pages.find(address), address);
}

Result<Bytes> CachingAllocator::largest_free_block(const Stream& stream) const noexcept {
  const Result<DeviceCache*> cache = impl_->usable_device(stream.device);
  if (!cache.is_ok()) return cache.status();
  ASHLAR_REQUIRE(stream.id != StreamId{}, Code::kInvalidArgument,
                 "a stream without identity: Device::identify gives it");
  return largest_reachable(*cache.value(), stream);
}

Result<DeviceStats> CachingAllocator::stats(DeviceId device) const noexcept {
  DeviceStats read;
  const Status status = stats(device, &read);
  if (!status.is_ok()) return status;
  return read;
}

Status CachingAllocator::stats(DeviceId device, DeviceStats* out) const noexcept {
  ASHLAR_REQUIRE(out != nullptr, Code::kInvalidArgument, kNoPlace);
  const Result<DeviceCache*> cache = impl_->usable_device(device);
  if (cache.is_ok()) write_stats(*cache.value(), out);
  return cache.status();
}

Status CachingAllocator::reset_peak_stats(DeviceId device) noexcept {
  const Result<DeviceCache*> cache = impl_->usable_device(device);
  if (cache.is_ok()) cache::reset_peak_stats(*cache.value());
  return cache.status();
}

Status CachingAllocator::reset_accumulated_stats(DeviceId device) noexcept {
  const Result<DeviceCache*> cache = impl_->usable_device(device);
  if (cache.is_ok()) cache::reset_accumulated_stats(*cache.value());
  return cache.status();
}

Status CachingAllocator::snapshot(DeviceId device, Snapshot* out) const noexcept {
  ASHLAR_REQUIRE(out != nullptr, Code::kInvalidArgument, kNoPlace);
  const Result<DeviceCache*> cache = impl_->usable_device(device);
  if (!cache.is_ok()) return cache.status();
  Status copied = kShortOfHostMemory;
  static_cast<void>(with_host_memory([&] { copied = write_snapshot(*cache.value(), out); }));
  if (copied.is_ok()) return copied;
  out->segments.clear();
  out->blocks.clear();
  return copied;
}

std::size_t CachingAllocator::device_count() const noexcept { return impl_->device_count; }

const Config& CachingAllocator::config() const noexcept { return impl_->shared.config; }

const char* CachingAllocator::validate() const noexcept {
  const SharedState& shared = impl_->shared;
  if (shared.blocking_calls.any()) return "C9: a blocking call has not ended";
  if (shared.event_waiters.load() != 0) return "wait: a call has not ended its hold on events";
  std::uint64_t references = 0;
  std::uint64_t uses = 0;
  std::uint64_t pages = 0;
  for (const auto& device : impl_->all()) {
    if (const char* broken = device->validate()) return broken;
    references += device->reference_count();
    uses += device->use_count();
    pages += device->page_count();
  }
  if (references != uses) return "life(1): the references are not those of the uses";
  if (shared.pages.owner_count() != pages) return "page map(4): a page of no segment has an owner";
  return nullptr;
}

}  // namespace ashlar::inline v0::cache
