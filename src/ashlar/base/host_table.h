// Host memory for tables of a fixed length. Tables that grow: growing_table.h.
//
// Purpose: a table of 2 MiB or more is aligned to huge pages and requests them (effective on Linux
// where transparent huge pages are `madvise` or `always`; plain memory elsewhere). No table shares
// a cache line with another, so that threads of two streams never write to the same line.
// Thread safety: make_host_table may be called from any thread; a table has no lock of its own.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>

#include <ashlar/base/checked.h>
#include <ashlar/base/host_pages.h>

namespace ashlar::inline v0 {

inline constexpr std::size_t kCacheLineBytes = 64;

struct HostTableDeleter {
  std::align_val_t alignment{};
  void operator()(void* table) const noexcept { ::operator delete[](table, alignment); }
};

/// An owned array of T whose elements are neither constructed nor destroyed.
template <class T>
using HostTable = std::unique_ptr<T[], HostTableDeleter>;

/// An uninitialised table of `count` elements; nullptr if the host has no memory.
template <class T>
HostTable<T> make_host_table(std::size_t count) noexcept {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
  const std::size_t bytes = round_up(Bytes{count * sizeof(T)}, Bytes{kCacheLineBytes}).count();
  const bool is_large = bytes >= kHugePageBytes;
  const std::align_val_t alignment{is_large ? kHugePageBytes : kCacheLineBytes};
  void* const table = ::operator new[](bytes, alignment, std::nothrow);
  if (is_large && table != nullptr) advise_huge_pages(table, bytes);
  return HostTable<T>(static_cast<T*>(table), HostTableDeleter{alignment});
}

}  // namespace ashlar::inline v0
