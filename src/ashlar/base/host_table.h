// Host memory for tables that grow by moving: records, tree nodes, hash cells, the trees of pages.
//
// Purpose: one place that asks the host for them. A table of 2 MiB and more is aligned to huge
// pages and asks for them (Linux, where transparent huge pages are `madvise` or `always`; elsewhere
// it is plain memory): an allocator's accesses to its tables are random, and with 10^5 blocks live
// half of them miss the TLB too (measured: 10 % of the mix's time). Every table has its cache lines
// to itself, so that two streams' threads never write to one.
// Thread safety: none of its own.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>

#include <ashlar/base/checked.h>

namespace ashlar::inline v0 {

inline constexpr std::size_t kLineBytes = 64;
inline constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

/// Asks the host to back the range with huge pages. A hint: it cannot fail. Cost: a system call on
/// Linux.
void ask_for_huge_pages(void* begin, std::size_t bytes) noexcept;

struct FreeTable {
  std::align_val_t alignment{};
  void operator()(void* table) const noexcept { ::operator delete[](table, alignment); }
};

/// Uninitialised memory for an array of T, whose elements nobody destroys.
template <class T>
using HostTable = std::unique_ptr<T[], FreeTable>;

/// A table of `count` elements, not initialised; nullptr if the host has no memory.
template <class T>
HostTable<T> make_host_table(std::size_t count) noexcept {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
  const std::size_t bytes = round_up(Bytes{count * sizeof(T)}, Bytes{kLineBytes}).count();
  const bool is_large = bytes >= kHugePageBytes;
  const std::align_val_t alignment{is_large ? kHugePageBytes : kLineBytes};
  void* const table = ::operator new[](bytes, alignment, std::nothrow);
  if (is_large && table != nullptr) ask_for_huge_pages(table, bytes);
  return HostTable<T>(static_cast<T*>(table), FreeTable{alignment});
}

}  // namespace ashlar::inline v0
