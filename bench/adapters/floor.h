// The floor: a bare offset allocator behind a mutex (offset_allocator.h).
#pragma once

#include "bench/adapters/adapter.h"
#include "bench/adapters/offset_allocator.h"

namespace ashlar::bench {

struct FloorAdapter {
  static constexpr const char* kName = "floor";
  using Handle = OffsetAllocator::Allocation;

  Handle allocate(std::uint64_t bytes, unsigned) {
    const Handle got =
        allocator.allocate(static_cast<std::uint32_t>((bytes + kUnitBytes - 1) / kUnitBytes));
    if (got.node == OffsetAllocator::kNone) give_up(kName, "no room");
    return got;
  }
  void free(Handle handle) { allocator.free(handle); }

  // 32-bit offsets of 1 KiB span 4 TiB: room for the largest mix.
  static constexpr std::uint64_t kUnitBytes = 1024;
  OffsetAllocator allocator{0xffffffffu};
};

}  // namespace ashlar::bench
