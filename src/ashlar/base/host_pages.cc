#include <ashlar/base/host_pages.h>

#include <cstdint>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace ashlar::inline v0 {

#if defined(__linux__)

namespace {

/// Addresses without memory, aligned as the host likes; nullptr if it refuses.
std::byte* map_nothing(std::size_t bytes) noexcept {
  void* const at =
      ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
}
std::size_t past_huge_page(const std::byte* begin) noexcept {
  return reinterpret_cast<std::uintptr_t>(begin) % kHugePageBytes;
}

}  // namespace

std::byte* reserve_pages(std::size_t bytes) noexcept {
  // Recent kernels align ranges of this length by themselves.
  std::byte* begin = map_nothing(bytes);
  if (begin == nullptr || past_huge_page(begin) == 0) return begin;
  release_pages(begin, bytes);
  // One huge page more than asked for contains an aligned range; the rest goes back at once.
  if (bytes + kHugePageBytes < bytes) return nullptr;
  begin = map_nothing(bytes + kHugePageBytes);
  if (begin == nullptr) return nullptr;
  const std::size_t past = past_huge_page(begin);
  const std::size_t before = past == 0 ? 0 : kHugePageBytes - past;
  if (before > 0) release_pages(begin, before);
  release_pages(begin + before + bytes, kHugePageBytes - before);
  return begin + before;
}

bool commit_pages(std::byte* begin, std::size_t bytes) noexcept {
  return ::mprotect(begin, bytes, PROT_READ | PROT_WRITE) == 0;
}

bool move_pages(std::byte* from, std::byte* to, std::size_t bytes) noexcept {
  return ::mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) != MAP_FAILED;
}

void release_pages(std::byte* begin, std::size_t bytes) noexcept {
  static_cast<void>(::munmap(begin, bytes));
}

void advise_huge_pages(void* begin, std::size_t bytes) noexcept {
  // A kernel without huge pages refuses the hint; the table then uses ordinary pages.
  static_cast<void>(::madvise(begin, bytes, MADV_HUGEPAGE));
}

#else

std::byte* reserve_pages(std::size_t) noexcept { return nullptr; }
bool commit_pages(std::byte*, std::size_t) noexcept { return false; }
bool move_pages(std::byte*, std::byte*, std::size_t) noexcept { return false; }
void release_pages(std::byte*, std::size_t) noexcept {}
void advise_huge_pages(void*, std::size_t) noexcept {}

#endif

}  // namespace ashlar::inline v0
