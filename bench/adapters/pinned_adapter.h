// Ours for page-locked memory, over a device that costs nothing.
//
// Thread safety: see adapter.h.
#pragma once

#include <memory>

#include <ashlar/pinned/pinned_allocator.h>

#include "bench/adapters/adapter.h"
#include "src/tool/null_device.h"

namespace ashlar::bench {

/// Which stream a caller names is of no account: a thread has its arena.
struct PinnedAdapter {
  static constexpr const char* kName = "pinned";
  using Handle = Address;

  PinnedAdapter() {
    device::Device* devices[] = {&device};
    pinned::PinnedConfig config;
    config.arenas = 8;
    auto made = pinned::PinnedAllocator::create(devices, config);
    if (!made.is_ok()) give_up(kName, made.status().why());
    allocator = std::move(made).value();
  }
  Handle allocate(std::uint64_t bytes, unsigned) {
    const Result<Address> got = allocator->allocate(Bytes{bytes});
    if (!got.is_ok()) give_up(kName, got.status().why());
    return got.value();
  }
  void free(Handle handle) {
    const Status status = allocator->free(handle);
    if (!status.is_ok()) give_up(kName, status.why());
  }

  tool::NullDevice device;
  std::unique_ptr<pinned::PinnedAllocator> allocator;
};

}  // namespace ashlar::bench
