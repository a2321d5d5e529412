// The front door's captures and memory pools: which device's and which pool's they are, and the lifecycle (C24 to C26); the rest is
// MemoryPools' (memory_pools.h) and the heaps' (stream_life.h).
#include <ashlar/cache/caching_allocator.h>

#include <utility>

#include <ashlar/cache/caching_allocator_impl.h>

namespace ashlar::inline v0::cache {

Status CachingAllocator::begin_capture(const Stream& stream) noexcept {
  if (const Result<DeviceCache*> cache = impl_->device_outside_filter(stream.device);
      !cache.is_ok())
    return cache.status();
  const Result<StreamHeap*> heap = impl_->heap_of(stream);
  if (!heap.is_ok()) return heap.status();
  const MutexGuard lock(impl_->captures_lock);
  if (const Status begun = impl_->announce(*heap.value(), stream); !begun.is_ok()) return begun;
  for (const auto& device : impl_->all()) device->quiesce();
  return Status::ok();
}

Status CachingAllocator::begin_body(const Stream& stream, const Stream& parent) noexcept {
  const Result<DeviceCache*> cache = impl_->device_outside_filter(parent.device);
  if (!cache.is_ok()) return cache.status();
  ASHLAR_REQUIRE(stream.device == parent.device, Code::kInvalidArgument,
                 "the body's stream is of another device than its parent's");
  const MutexGuard lock(impl_->captures_lock);
  StreamHeap* const outer = cache.value()->heaps().find_stable(parent.id);
  const bool is_announced =
      outer != nullptr && outer->stream.id == parent.id && outer->life.is_capturing();
  ASHLAR_REQUIRE(is_announced, Code::kNotFound, "no capture of the parent's stream was announced");
  ASHLAR_REQUIRE(outer->life.body() == nullptr, Code::kBusy,
                 "a body of that capture is announced already");
  const Result<StreamHeap*> heap = impl_->heap_of(stream);
  if (!heap.is_ok()) return heap.status();
  StreamHeap& body = *heap.value();
  if (const Status begun = impl_->announce(body, stream); !begun.is_ok()) return begun;
  cache.value()->quiesce();
  body.life.set_parent(outer);
  outer->life.set_body(&body);
  impl_->shared.bodies.count.fetch_add(1);
  if (change_body_uses(*cache.value(), body, LiveUses::kAddOfBody)) return Status::ok();
  change_body_uses(*cache.value(), body, LiveUses::kDropOfBody);
  impl_->close_body(body);
  return kShortOfHostMemory;
}

Status CachingAllocator::end_capture(const Stream& stream) noexcept {
  const Result<DeviceCache*> cache = impl_->device_outside_filter(stream.device);
  if (!cache.is_ok()) return cache.status();
  const MutexGuard lock(impl_->captures_lock);
  StreamHeap* heap = cache.value()->heaps().find_stable(stream.id);
  ASHLAR_REQUIRE(heap != nullptr, Code::kNotFound, "no capture of that stream was announced");
  {
    const Guard guard(heap->lock);
    // Not serves(): a stream lost in its capture may end it. But the heap may be another stream's
    // by now.
    const bool is_announced = heap->stream.id == stream.id && heap->life.is_capturing();
    ASHLAR_REQUIRE(is_announced, Code::kNotFound, "no capture of that stream was announced");
    ASHLAR_REQUIRE(heap->life.body() == nullptr, Code::kBusy,
                   "a body of that capture is still announced");
    if (heap->life.parent() == nullptr) heap->life.set_capturing(false);
  }
  if (heap->life.parent() != nullptr) {
    impl_->shared.bodies.ended.store(heap);
    for (const auto& device : impl_->all()) end_body(*device, *heap);
    impl_->shared.bodies.ended.store(nullptr);
    impl_->close_body(*heap);
    return Status::ok();
  }
  if (impl_->shared.captures.fetch_sub(1) > 1) return Status::ok();
  for (const auto& device : impl_->all()) device->record_deferred();
  return Status::ok();
}

Status CachingAllocator::create_pool(DeviceId device, MemoryPoolId pool,
                                     const MemoryPoolOptions& options) noexcept {
  const Result<MemoryPools*> pools = impl_->pools_for(device, pool);
  return pools.is_ok() ? pools.value()->create(pool, options) : pools.status();
}

Status CachingAllocator::begin_pool(DeviceId device, MemoryPoolId pool,
                                    StreamFilter filter) noexcept {
  const Result<MemoryPools*> pools = impl_->pools_for(device, pool);
  if (!pools.is_ok()) return pools.status();
  ASHLAR_REQUIRE(filter != nullptr, Code::kInvalidArgument, "a memory pool's route needs a filter");
  return pools.value()->begin(pool, std::move(filter));
}

Status CachingAllocator::end_pool(DeviceId device, MemoryPoolId pool) noexcept {
  const Result<MemoryPools*> pools = impl_->pools_for(device, pool);
  return pools.is_ok() ? pools.value()->end(pool) : pools.status();
}

Status CachingAllocator::retain_pool(DeviceId device, MemoryPoolId pool) noexcept {
  const Result<MemoryPools*> pools = impl_->pools_for(device, pool);
  return pools.is_ok() ? pools.value()->retain(pool) : pools.status();
}

Status CachingAllocator::release_pool(DeviceId device, MemoryPoolId pool) noexcept {
  const Result<MemoryPools*> pools = impl_->pools_for(device, pool);
  return pools.is_ok() ? pools.value()->release(pool) : pools.status();
}

Result<PoolCheckpoint> CachingAllocator::checkpoint_pool(DeviceId device,
                                                         MemoryPoolId pool) noexcept {
  const Result<MemoryPools*> pools = impl_->pools_for(device, pool);
  if (!pools.is_ok()) return pools.status();
  return pools.value()->checkpoint(device, pool);
}

Status CachingAllocator::restore_pool(const PoolCheckpoint& to, RestoredPool* out) noexcept {
  ASHLAR_REQUIRE(out != nullptr, Code::kInvalidArgument, kNoPlace);
  const Result<MemoryPools*> pools = impl_->pools_for(to.device(), to.pool());
  return pools.is_ok() ? pools.value()->restore(to, out) : pools.status();
}

}  // namespace ashlar::inline v0::cache
