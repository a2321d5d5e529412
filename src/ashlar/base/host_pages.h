// The host's pages: addresses that are reserved first and get memory later.
//
// Purpose: a table in reserved addresses grows in place (growing_table.h). The one place that asks
// the operating system for pages; tests replace it (props/host_memory/refusing_host.cc).
// Thread safety: any thread, each on its own pages.
//
// Only Linux has them so far. Elsewhere every function refuses, and tables grow by copying.
#pragma once

#include <cstddef>

namespace ashlar::inline v0 {

inline constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

/// Reserves addresses that hold no memory and may not be read. The result is aligned to
/// kHugePageBytes; nullptr if the host refuses. REQUIRES: `bytes` is a multiple of kHugePageBytes.
/// Cost: one system call, or five where the host does not align by itself.
std::byte* reserve_pages(std::size_t bytes) noexcept;

/// Gives memory to reserved addresses: zero bytes, which the host provides page by page at the
/// first write to each. False if the host refuses (nothing changed). REQUIRES: `begin` and `bytes`
/// are multiples of the size of a page. Cost: one system call.
bool commit_pages(std::byte* begin, std::size_t bytes) noexcept;

/// Moves pages with memory, and what they hold, to the beginning of a reservation, without copying.
/// False if the host cannot (nothing changed); otherwise `from` is no longer this process's.
/// REQUIRES: all are multiples of kHugePageBytes. Cost: one step for each kHugePageBytes.
bool move_pages(std::byte* from, std::byte* to, std::size_t bytes) noexcept;

/// Gives pages back, with or without memory.
void release_pages(std::byte* begin, std::size_t bytes) noexcept;

/// Advises the host to back the range with huge pages; a refusal has no effect.
/// Cost: one system call on Linux.
void advise_huge_pages(void* begin, std::size_t bytes) noexcept;

}  // namespace ashlar::inline v0
