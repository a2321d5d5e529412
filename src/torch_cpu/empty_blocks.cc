#include "src/torch_cpu/empty_blocks.h"

#include <sys/mman.h>

#include <algorithm>
#include <vector>

#include <ashlar/base/exceptions.h>

namespace ashlar::torch_cpu {
namespace {

constexpr std::uint64_t kPage = 4096;

struct FreeBlock {
  Bytes size;
  Stream stream;  ///< of the heap that has it
};

/// The free blocks that are worth it, the largest first, so that each allocation of its size finds it or one as large.
std::vector<FreeBlock> free_blocks_of(const cache::Snapshot& all, DeviceId device) {
  std::vector<FreeBlock> blocks;
  for (const cache::SnapshotSegment& segment : all.segments) {
    for (std::uint32_t i = 0; i < segment.block_count; ++i) {
      const cache::SnapshotBlock& block = all.blocks[segment.block_first + i];
      if (block.state != BlockState::kFree || block.size <= kEmptiedMin) continue;
      // The handle of an immediate device's stream is its identity.
      const StreamHandle handle{segment.stream.value()};
      blocks.push_back({block.size, {handle, segment.stream, device}});
    }
  }
  std::sort(blocks.begin(), blocks.end(),
            [](const FreeBlock& a, const FreeBlock& b) { return a.size > b.size; });
  return blocks;
}

/// The whole pages of the range.
void drop_pages(Address base, Bytes size) noexcept {
  const std::uint64_t first = (base.value() + kPage - 1) / kPage * kPage;
  const std::uint64_t end = (base.value() + size.count()) / kPage * kPage;
  if (first < end)
    static_cast<void>(::madvise(Address{first}.pointer(), end - first, MADV_DONTNEED));
}

}  // namespace

Status empty_free_blocks(cache::CachingAllocator& allocator, DeviceId device) noexcept {
  cache::Snapshot all;
  if (const Status seen = allocator.snapshot(device, &all); !seen.is_ok()) return seen;
  std::vector<Address> held;
  const bool has_room = with_host_memory([&] {
    const std::vector<FreeBlock> blocks = free_blocks_of(all, device);
    held.reserve(blocks.size());
    for (const FreeBlock& block : blocks) {
      const Result<Address> got = allocator.allocate(block.size, block.stream);
      if (!got.is_ok()) continue;  // another thread has it by now
      held.push_back(got.value());
      drop_pages(got.value(), block.size);
    }
  });
  for (const Address each : held) static_cast<void>(allocator.free(each));
  return has_room ? Status::ok() : Status{Code::kHostOutOfMemory, "no memory to look at blocks"};
}

}  // namespace ashlar::torch_cpu
