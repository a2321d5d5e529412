#include <ashlar/base/host_table.h>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace ashlar::inline v0 {

void advise_huge_pages([[maybe_unused]] void* begin, [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(__linux__)
  // A kernel without huge pages refuses the hint; the table then uses ordinary pages.
  static_cast<void>(::madvise(begin, bytes, MADV_HUGEPAGE));
#endif
}

}  // namespace ashlar::inline v0
