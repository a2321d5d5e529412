#include <ashlar/base/host_pages.h>

#include <cstdint>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace ashlar::inline v0 {

#if defined(__linux__)

std::byte* reserve_pages(std::size_t bytes) noexcept {
  // One huge page more than asked for contains an aligned range; the rest goes back at once.
  const std::size_t mapped = bytes + kHugePageBytes;
  if (mapped < bytes) return nullptr;
  void* const at =
      ::mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(at);
  const std::size_t past = reinterpret_cast<std::uintptr_t>(begin) % kHugePageBytes;
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
