// Ours: CachingAllocator over a device that costs nothing, and its block pool alone.
//
// Thread safety: see adapter.h.
#pragma once

#include <memory>

#include <ashlar/block/block_pool.h>
#include <ashlar/cache/caching_allocator.h>

#include "bench/adapters/adapter.h"
#include "src/tool/null_device.h"

namespace ashlar::bench {

/// `DeviceType` is a Device with NullDevice's stream(number).
template <class DeviceType>
struct CachingAllocatorAdapter {
  static constexpr const char* kName = "ashlar";
  using Handle = Address;

  CachingAllocatorAdapter() {
    device::Device* devices[] = {&device};
    auto made = cache::CachingAllocator::create(devices, cache::Config{});
    if (!made.is_ok()) give_up(kName, made.status().why());
    allocator = std::move(made).value();
    for (unsigned i = 0; i < kStreamsMax; ++i) streams[i] = device.stream(i);
  }
  Handle allocate(std::uint64_t bytes, unsigned stream) {
    const Result<Address> got = allocator->allocate(Bytes{bytes}, streams[stream]);
    if (!got.is_ok()) give_up(kName, got.status().why());
    return got.value();
  }
  void free(Handle handle) {
    const Status status = allocator->free(handle);
    if (!status.is_ok()) give_up(kName, status.why());
  }

  DeviceType device;
  std::unique_ptr<cache::CachingAllocator> allocator;
  Stream streams[kStreamsMax];
};
using AshlarAdapter = CachingAllocatorAdapter<tool::NullDevice>;

/// The block pool without lock, streams or policy, over one endless segment: what the structure
/// alone costs. Unlike the floor it finds a freed block by its address, as a caching allocator has
/// to.
struct PoolAdapter {
  static constexpr const char* kName = "pool";
  using Handle = Address;

  PoolAdapter() {
    if (pool.add_segment(kBase, kSegment, block::Position{}, 0, 0) == block::kNoSegment)
      give_up(kName, "no memory for a segment");
  }
  Handle allocate(std::uint64_t bytes, unsigned) {
    const Bytes size{(bytes + kGranule.count() - 1) / kGranule.count() * kGranule.count()};
    const block::BlockIndex found = pool.best_fit(size, Bytes::max());
    if (found == block::kNoBlock) give_up(kName, "no block fits");
    const block::BlockIndex taken = pool.take(found, size, true, Bytes{bytes}, 0);
    if (taken == block::kNoBlock) give_up(kName, "no memory for a record");
    return pool.address(taken);
  }
  void free(Handle handle) {
    const block::BlockIndex found = pool.find(handle);
    if (found == block::kNoBlock) give_up(kName, "an unknown address");
    pool.release(found, 0);
  }

  static constexpr Bytes kGranule{512};
  static constexpr Address kBase{std::uint64_t{1} << 40};
  static constexpr Bytes kSegment{std::uint64_t{1} << 45};
  block::BlockPool pool{kGranule};
};

}  // namespace ashlar::bench
