// The front door: finds the device, guards the lifecycle (C24, C25, C26), and leaves the rest to
// DeviceCache.
#include <ashlar/cache/caching_allocator.h>

#include <algorithm>
#include <new>
#include <utility>

#include <ashlar/cache/caching_allocator_impl.h>
#include <ashlar/cache/hit_inl.h>
#include <ashlar/cache/observer_scope.h>

namespace ashlar::inline v0::cache {

CachingAllocator::Impl::Impl(const Config& config) noexcept : shared(config) {}

Result<Address> CachingAllocator::Impl::allocate_by_detour(DeviceCache& cache, Bytes size,
                                                           const Stream& stream,
                                                           OutOfMemory* account) noexcept {
  const ContextScope context(cache.heaps().history().recorder(false));
  if (shared.detours.routes.load(std::memory_order_relaxed) != 0)
    return cache.allocate_routed(size, stream, account);
  return cache.allocate(size, stream, account);
}

ContextRecorder* CachingAllocator::Impl::free_recorder_of(const PageMap::Found& found) noexcept {
  for (const Owner owner : {found.first, found.second}) {
    if (owner.is_nobody()) continue;
    ContextRecorder* const recorder = owner.heap()->cache.heaps().history().recorder(true);
    if (recorder != nullptr) return recorder;
  }
  return nullptr;
}

Status CachingAllocator::Impl::free_by_detour(const PageMap::Found& found, Address address,
                                              StreamHeap* user) const noexcept {
  const ContextScope context(free_recorder_of(found));
  const Status freed = user == nullptr ? DeviceCache::free(found, address)
                                       : DeviceCache::free_used_on(found, address, *user);
  // By base, the map names one owner at most.
  StreamHeap* const heap = found.first.heap();
  if (freed.is_ok() && !shared.config.caches) {
    heap->cache.reclaimer().note_freed(*heap);
    give_back_finished(heap->cache, heap);
  }
  return freed;
}

void CachingAllocator::Impl::give_back_finished(DeviceCache& cache,
                                                StreamHeap* fresh) const noexcept {
  // An observer of mappings, or a pool's filter, runs with a lock held that this takes.
  if (shared.config.caches || ObserverScope::is_inside(shared.running.filters)) return;
  cache.reclaimer().give_back_finished(
      fresh, fresh == nullptr ? Reclaimer::kAllHeaps : Reclaimer::kOtherHeapsMax);
}

namespace {
/// The settings as they can be obeyed, with segments or pages chosen: where no device has virtual memory,
/// memory comes in segments.
Config obeyable(const Config& config, std::span<device::Device* const> devices) noexcept {
  Config obeyed = config;
  const auto has_pages = [](const device::Device* device) {
    return device != nullptr && device->traits().has_virtual_memory;
  };
  if (obeyed.backing == Backing::kAuto)
    obeyed.backing = config.max_split_size == Bytes::max() ? Backing::kPages : Backing::kSegments;
  const bool has_none = std::none_of(devices.begin(), devices.end(), has_pages);
  if (config.backend != AllocatorBackend::kNative) obeyed.caches = false;
  if (has_none || !obeyed.caches) obeyed.backing = Backing::kSegments;
  return obeyed;
}
}  // namespace

Result<std::unique_ptr<CachingAllocator>> CachingAllocator::create(
    std::span<device::Device* const> devices, const Config& config) noexcept {
  if (const Status status = check_config(config); !status.is_ok()) return status;
  ASHLAR_REQUIRE(!devices.empty(), Code::kInvalidArgument,
                 "an allocator needs at least one device");
  std::unique_ptr<Impl> impl(new (std::nothrow) Impl(obeyable(config, devices)));
  if (!impl) return kShortOfHostMemory;
  impl->devices.reset(new (std::nothrow) std::unique_ptr<DeviceCache>[devices.size()]);
  if (!impl->devices || !impl->shared.unrecorded.make(devices.size())) return kShortOfHostMemory;
  impl->shared.caches = impl->devices.get();
  for (device::Device* device : devices) {
    ASHLAR_REQUIRE(device != nullptr, Code::kInvalidArgument, "a null device");
    const device::DeviceTraits traits = device->traits();
    ASHLAR_REQUIRE(traits.id == DeviceId{static_cast<std::int32_t>(impl->device_count)},
                   Code::kInvalidArgument, "device i must have id i");
    ASHLAR_REQUIRE(
        traits.address_alignment >= config.granule, Code::kInvalidArgument,
        "the granule is larger than the alignment that the device promises of addresses");
    ASHLAR_REQUIRE(config.backend == AllocatorBackend::kNative || traits.has_stream_memory,
                   Code::kUnsupported, "backend: cudaMallocAsync needs a device with memory pools");
    const bool caches = impl->shared.config.caches;
    ASHLAR_REQUIRE(caches || traits.address_alignment >= PageMap::kBaseAlignment,
                   Code::kInvalidArgument,
                   "cache: off needs a device that aligns segments to 256 bytes");
    auto* const cache = new (std::nothrow) DeviceCache(*device, impl->shared);
    if (cache == nullptr) return kShortOfHostMemory;
    impl->devices[impl->device_count].reset(cache);
    impl->device_count += 1;
  }
  std::unique_ptr<CachingAllocator> made(new (std::nothrow) CachingAllocator(std::move(impl)));
  if (!made) return kShortOfHostMemory;
  return made;
}

CachingAllocator::CachingAllocator(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}

CachingAllocator::~CachingAllocator() {
  if (impl_->is_forked()) {
    // Locks and conditions may be held by threads that the child does not have: all of it stays.
    [[maybe_unused]] const Impl* const left = impl_.release();
    return;
  }
  // All devices' work first: a block of one may wait for a stream of another.
  bool unfinished = false;
  for (const auto& device : impl_->all()) unfinished |= device->has_unfinished();
  for (const auto& device : impl_->all()) device->settle(unfinished);
  for (const auto& device : impl_->all()) device->give_everything_back();
  for (const auto& device : impl_->all()) device->uses().synchronizer().stop();
  for (const auto& device : impl_->all()) device->uses().events().clear();
}

[[gnu::flatten]] Result<Address> CachingAllocator::allocate(Bytes size, const Stream& stream,
                                                            OutOfMemory* account) noexcept {
  if (const Status status = impl_->usable(); !status.is_ok()) return status;
  DeviceCache* cache = impl_->device(stream.device);
  ASHLAR_REQUIRE(cache != nullptr, Code::kInvalidArgument, "no device with that id");
  if (impl_->shared.running.observers.load(std::memory_order_relaxed) != 0) {
    ASHLAR_REQUIRE(!ObserverScope::is_inside(impl_->shared.running.observers), Code::kReentrant,
                   "an observer may free and query, not allocate from its own allocator");
  }
  if (size == Bytes{}) return Address{};
  if (impl_->shared.detours.count.load(std::memory_order_relaxed) != 0) [[unlikely]]
    return impl_->allocate_by_detour(*cache, size, stream, account);
  return cache->allocate(size, stream, account);
}

[[gnu::flatten]] Status CachingAllocator::free(Address address) noexcept {
  if (address.is_null()) return Status::ok();
  if (const Status status = impl_->usable(); !status.is_ok()) return status;
  const PageMap::Found found = impl_->shared.pages.find(address);
  if (impl_->shared.detours.frees.load(std::memory_order_relaxed) != 0) [[unlikely]]
    return impl_->free_by_detour(found, address, nullptr);
  return DeviceCache::free(found, address);
}

Status CachingAllocator::free(Address address, const Stream& stream) noexcept {
  if (address.is_null()) return Status::ok();
  const PageMap::Found found = impl_->shared.pages.find(address);
  const Result<StreamHeap*> user = impl_->user_of(found, address, stream, DeviceCache::check);
  if (!user.is_ok()) return user.status();
  if (impl_->shared.detours.frees.load(std::memory_order_relaxed) != 0) [[unlikely]]
    return impl_->free_by_detour(found, address, user.value());
  return DeviceCache::free_used_on(found, address, *user.value());
}

Status CachingAllocator::record_use(Address address, const Stream& stream) noexcept {
  const PageMap::Found found = impl_->shared.pages.find(address);
  const Result<StreamHeap*> user = impl_->user_of(found, address, stream, DeviceCache::reserve_use);
  if (!user.is_ok()) return user.status();
  return DeviceCache::record_use(found, address, *user.value());
}

Result<PinnedRange> CachingAllocator::pin(Address address) noexcept {
  if (const Status status = impl_->usable(); !status.is_ok()) return status;
  const Result<HeldAllocation> held = DeviceCache::hold(impl_->shared.pages.find(address), address);
  if (!held.is_ok()) return held.status();
  return held.value().pins->pin(held.value());
}

template <class Ask>
Status CachingAllocator::Impl::ask_pins(Address base, Ask&& ask) const noexcept {
  const PageMap::Found found = shared.pages.find(base);
  Status answer{Code::kNotFound, "no such range is pinned"};
  // The page's other segment may be another device's, and that one may be gone (C26).
  for (const Owner owner : {found.first, found.second}) {
    if (owner.is_nobody() || answer.code() != Code::kNotFound) continue;
    DeviceCache& cache = owner.heap()->cache;
    answer = ask(cache.supply().pins(), cache.driver());
  }
  return answer;
}

Status CachingAllocator::unpin(const PinnedRange& range) noexcept {
  if (const Status status = impl_->usable(); !status.is_ok()) return status;
  return impl_->ask_pins(range.base, [&](Pins& pins, const Driver& driver) {
    return pins.unpin(range, driver.health());
  });
}

Status physical_ranges(const CachingAllocator& allocator, const PinnedRange& range,
                       std::vector<PhysicalRange>* out) noexcept {
  const CachingAllocator::Impl& impl = *allocator.impl_;
  if (const Status status = impl.usable(); !status.is_ok()) return status;
  ASHLAR_REQUIRE(out != nullptr, Code::kInvalidArgument, "nowhere to write to");
  out->clear();
  const Status answer = impl.ask_pins(range.base, [&](const Pins& pins, const Driver& driver) {
    return pins.find_physical(range, driver.device(), out);
  });
  if (!answer.is_ok()) out->clear();
  return answer;
}

Result<std::uint64_t> CachingAllocator::backing_generation(Address address) const noexcept {
  if (const Status status = impl_->usable(); !status.is_ok()) return status;
  const Result<HeldAllocation> held = DeviceCache::hold(impl_->shared.pages.find(address), address);
  if (!held.is_ok()) return held.status();
  return held.value().pins->read(held.value());
}

Status CachingAllocator::retire_stream(const Stream& stream) noexcept {
  const Result<DeviceCache*> cache = impl_->device_outside_filter(stream.device);
  if (!cache.is_ok()) return cache.status();
  return cache.value()->reclaimer().retire(stream);
}

Status CachingAllocator::trim(DeviceId device) noexcept {
  const Result<DeviceCache*> cache = impl_->device_outside_filter(device);
  return cache.is_ok() ? cache.value()->reclaimer().trim() : cache.status();
}

Status process_events(CachingAllocator& allocator, DeviceId device) noexcept {
  const Result<DeviceCache*> cache = allocator.impl_->usable_device(device);
  if (!cache.is_ok()) return cache.status();
  const Status freed = free_finished(*cache.value());
  if (freed.is_ok()) allocator.impl_->give_back_finished(*cache.value(), nullptr);
  return freed;
}

Status record_use_of_alive(CachingAllocator& allocator, Address address,
                           const Stream& stream) noexcept {
  const CachingAllocator::Impl& impl = *allocator.impl_;
  const Result<DeviceCache*> cache = impl.usable_device(stream.device);
  if (!cache.is_ok()) return cache.status();
  const StreamHeap* const known = cache.value()->heaps().find(stream.id);
  if (known == nullptr || !known->life.is_alive()) {
    // The block first: interfaces of this kind name any memory, and the device is not asked for that.
    if (const Status live = DeviceCache::check(impl.shared.pages.find(address), address);
        !live.is_ok())
      return live;
    ASHLAR_REQUIRE(known == nullptr, Code::kInvalidHandle, "the stream was retired or destroyed");
    if (const Status alive = cache.value()->reclaimer().ask_before(stream); !alive.is_ok())
      return alive;
  }
  return allocator.record_use(address, stream);
}

Status CachingAllocator::make_room(DeviceId device, Bytes free) noexcept {
  const Result<DeviceCache*> cache = impl_->device_outside_filter(device);
  return cache.is_ok() ? cache.value()->reclaimer().make_room(free) : cache.status();
}

Status CachingAllocator::set_memory_limit(DeviceId device, Bytes limit) noexcept {
  const Result<DeviceCache*> cache = impl_->device_outside_filter(device);
  if (!cache.is_ok()) return cache.status();
  cache.value()->ledger().set_limit(limit);
  cache.value()->reclaimer().shrink_to_limit();
  return Status::ok();
}

Status CachingAllocator::set_memory_fraction(DeviceId device, double fraction) noexcept {
  const Result<DeviceCache*> cache = impl_->device_outside_filter(device);
  if (!cache.is_ok()) return cache.status();
  const Status set = cache.value()->ledger().set_fraction(fraction);
  if (set.is_ok()) cache.value()->reclaimer().shrink_to_limit();
  return set;
}

void CachingAllocator::add_free_memory_callback(FreeMemoryCallback callback) {
  if (callback != nullptr) impl_->shared.callbacks.push_back(std::move(callback));
}

void CachingAllocator::add_out_of_memory_observer(OutOfMemoryObserver observer) {
  if (observer != nullptr) impl_->shared.observers.push_back(std::move(observer));
}

void CachingAllocator::add_mapping_observer(MappingObserver observer) {
  if (observer != nullptr) impl_->shared.mappings.observers.push_back(std::move(observer));
}

}  // namespace ashlar::inline v0::cache
