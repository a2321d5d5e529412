#include "spec/cuda_face/page_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <memory>

#include <ashlar/base/mutex.h>

#include "spec/cuda_face/face_calls.h"

namespace ashlar::spec::cuda_face {
namespace {

/// Of the file, which has memory only where pages are: offsets are used once.
constexpr off_t kFileBytes = off_t{1} << 46;

/// A file without a name, from which pages are mapped. The host has these calls wherever the library has its pages.
int page_file() {
  static const int file = [] {
    const int opened = memfd_create("pages", MFD_CLOEXEC);
    if (opened < 0 || ftruncate(opened, kFileBytes) != 0) std::abort();
    return opened;
  }();
  return file;
}

struct PageOfFile {
  PageOfFile(off_t begins, Bytes bytes) : begin(begins), size(bytes) {}
  ~PageOfFile() {
    static_cast<void>(fallocate(page_file(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, begin,
                                static_cast<off_t>(size.count())));
  }
  PageOfFile(const PageOfFile&) = delete;
  PageOfFile& operator=(const PageOfFile&) = delete;

  const off_t begin;
  const Bytes size;
};
using SharedPage = std::shared_ptr<const PageOfFile>;

struct Pages {
  Mutex lock;
  std::map<MemoryHandle, SharedPage> by_handle ASHLAR_GUARDED_BY(lock);
  std::map<Address, SharedPage> mapped ASHLAR_GUARDED_BY(lock);  ///< by where it begins
  off_t used ASHLAR_GUARDED_BY(lock) = 0;
};
Pages pages;

void put_at(Address at, Bytes size, int flags, int file, off_t offset) {
  constexpr int kReadWrite = PROT_READ | PROT_WRITE;
  // Whoever gives bytes gives enough of them.
  if (!is_of_machine(at.value()) || !is_of_machine((at + size).value() - 1)) std::abort();
  if (mmap(at.pointer(), size.count(), kReadWrite, flags | MAP_FIXED, file, offset) == MAP_FAILED)
    std::abort();  // the host has too many mappings
}

}  // namespace

void create_page_bytes(MemoryHandle handle, Bytes size) {
  if (!has_bytes()) return;
  const MutexGuard guard(pages.lock);
  pages.by_handle[handle] = std::make_shared<const PageOfFile>(pages.used, size);
  pages.used += static_cast<off_t>(size.count());
}

void release_page_bytes(MemoryHandle handle) {
  const MutexGuard guard(pages.lock);
  pages.by_handle.erase(handle);
}

void map_page_bytes(Address at, Bytes size, MemoryHandle handle) {
  const MutexGuard guard(pages.lock);
  const auto page = pages.by_handle.find(handle);
  if (page == pages.by_handle.end()) return;
  put_at(at, size, MAP_SHARED, page_file(), page->second->begin);
  pages.mapped[at] = page->second;
}

void unmap_page_bytes(Address at, Bytes size) {
  if (!has_bytes()) return;
  const MutexGuard guard(pages.lock);
  put_at(at, size, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  const auto first = pages.mapped.lower_bound(at);
  pages.mapped.erase(first, pages.mapped.lower_bound(at + size));
}

bool move_page_bytes(MemoryHandle handle, int to_file) {
  const MutexGuard guard(pages.lock);
  const auto page = pages.by_handle.find(handle);
  if (page == pages.by_handle.end()) return true;  // moved before
  off_t from = page->second->begin;
  off_t to = 0;
  auto left = static_cast<std::size_t>(page->second->size.count());
  while (left > 0) {
    const ssize_t copied = copy_file_range(page_file(), &from, to_file, &to, left, 0);
    if (copied <= 0) return false;
    left -= static_cast<std::size_t>(copied);
  }
  pages.by_handle.erase(page);
  return true;
}

void forget_page_bytes() {
  const MutexGuard guard(pages.lock);
  pages.by_handle.clear();
  pages.mapped.clear();
}

}  // namespace ashlar::spec::cuda_face
