// Gives the kernel the pages of free blocks back.
//
// Purpose: a segment with one live block stays, though most of it may be free; on a host its free pages need not stay
// resident. Blocks keep their addresses, and the kernel gives zeroed pages where they are touched next.
// Thread safety: any thread. A block is allocated while its pages go, so that nobody else can have it.
#pragma once

#include <ashlar/cache/caching_allocator.h>

namespace ashlar::torch_cpu {

/// Blocks of this size and more are emptied: where a small one's pages go, touching them again costs more.
inline constexpr Bytes kEmptiedMin{std::uint64_t{1} << 20};

/// Empties the free blocks of more than kEmptiedMin of a page-locked device that locks nothing (HostDevice). They are
/// allocated meanwhile, which the peaks of live bytes show. kHostOutOfMemory; kBusy as snapshot().
Status empty_free_blocks(cache::CachingAllocator& allocator, DeviceId device) noexcept;

}  // namespace ashlar::torch_cpu
