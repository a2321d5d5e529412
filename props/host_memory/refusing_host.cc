// The operators new and delete, and the pages, of an executable whose host can refuse
// (refusing_host.h).
#include "props/host_memory/refusing_host.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

#include <ashlar/base/host_pages.h>

namespace ashlar::props {
RefusingHost host;
}  // namespace ashlar::props

namespace ashlar::inline v0 {

std::byte* reserve_pages(std::size_t bytes) noexcept {
  if (!props::host.has_pages || props::host.refuses()) return nullptr;
  void* const at =
      ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  props::host.mapped_bytes += static_cast<std::int64_t>(bytes);
  return static_cast<std::byte*>(at);
}
bool commit_pages(std::byte* begin, std::size_t bytes) noexcept {
  return !props::host.refuses() && ::mprotect(begin, bytes, PROT_READ | PROT_WRITE) == 0;
}
bool move_pages(std::byte*, std::byte*, std::size_t) noexcept { return false; }
void release_pages(std::byte* begin, std::size_t bytes) noexcept {
  props::host.mapped_bytes -= static_cast<std::int64_t>(bytes);
  ::munmap(begin, bytes);
}
void advise_huge_pages(void*, std::size_t) noexcept {}

}  // namespace ashlar::inline v0

namespace {

using ashlar::props::host;

void* aligned(std::size_t size, std::align_val_t alignment) {
  const auto unit = static_cast<std::size_t>(alignment);
  return std::aligned_alloc(unit, (size + unit - 1) / unit * unit);
}
void* or_throw(void* p) {
  if (p == nullptr) std::abort();
  if (host.throws && host.refuses()) {
    std::free(p);
    throw std::bad_alloc();
  }
  return p;
}

}  // namespace

void* operator new(std::size_t size) { return or_throw(std::malloc(size)); }
void* operator new[](std::size_t size) { return or_throw(std::malloc(size)); }
void* operator new(std::size_t size, std::align_val_t at) { return or_throw(aligned(size, at)); }
void* operator new[](std::size_t size, std::align_val_t at) { return or_throw(aligned(size, at)); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return host.refuses() ? nullptr : std::malloc(size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return host.refuses() ? nullptr : std::malloc(size);
}
void* operator new(std::size_t size, std::align_val_t at, const std::nothrow_t&) noexcept {
  return host.refuses() ? nullptr : aligned(size, at);
}
void* operator new[](std::size_t size, std::align_val_t at, const std::nothrow_t&) noexcept {
  return host.refuses() ? nullptr : aligned(size, at);
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
