// The operators new and delete, and the pages, of an executable whose host counts (counting_host.h).
#include "props/host_memory/counting_host.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

#include <ashlar/base/host_pages.h>

namespace ashlar::props {
CountingHost counted;
}  // namespace ashlar::props

namespace ashlar::inline v0 {

std::byte* reserve_pages(std::size_t bytes) noexcept {
  void* const at =
      ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  props::counted.mapped_bytes += static_cast<std::int64_t>(bytes);
  return static_cast<std::byte*>(at);
}
bool commit_pages(std::byte* begin, std::size_t bytes) noexcept {
  return ::mprotect(begin, bytes, PROT_READ | PROT_WRITE) == 0;
}
bool move_pages(std::byte*, std::byte*, std::size_t) noexcept { return false; }
void release_pages(std::byte* begin, std::size_t bytes) noexcept {
  props::counted.mapped_bytes -= static_cast<std::int64_t>(bytes);
  ::munmap(begin, bytes);
}
void advise_huge_pages(void*, std::size_t) noexcept {}

}  // namespace ashlar::inline v0

namespace {

using ashlar::props::counted;

void* note(void* p, std::size_t size) noexcept {
  if (p == nullptr) return nullptr;
  ++counted.live;
  ++counted.made;
  std::size_t largest = counted.largest;
  while (size > largest && !counted.largest.compare_exchange_weak(largest, size)) {
  }
  return p;
}
void* aligned(std::size_t size, std::align_val_t alignment) noexcept {
  const auto unit = static_cast<std::size_t>(alignment);
  return note(std::aligned_alloc(unit, (size + unit - 1) / unit * unit), size);
}
void* plain(std::size_t size) noexcept { return note(std::malloc(size == 0 ? 1 : size), size); }
void* or_end(void* p) {
  if (p == nullptr) std::abort();
  return p;
}
void give(void* p) noexcept {
  if (p != nullptr) --counted.live;
  std::free(p);
}

}  // namespace

void* operator new(std::size_t size) { return or_end(plain(size)); }
void* operator new[](std::size_t size) { return or_end(plain(size)); }
void* operator new(std::size_t size, std::align_val_t at) { return or_end(aligned(size, at)); }
void* operator new[](std::size_t size, std::align_val_t at) { return or_end(aligned(size, at)); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return counted.is_empty ? nullptr : plain(size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return counted.is_empty ? nullptr : plain(size);
}
void* operator new(std::size_t size, std::align_val_t at, const std::nothrow_t&) noexcept {
  return counted.is_empty ? nullptr : aligned(size, at);
}
void* operator new[](std::size_t size, std::align_val_t at, const std::nothrow_t&) noexcept {
  return counted.is_empty ? nullptr : aligned(size, at);
}
void operator delete(void* p) noexcept { give(p); }
void operator delete[](void* p) noexcept { give(p); }
void operator delete(void* p, std::size_t) noexcept { give(p); }
void operator delete[](void* p, std::size_t) noexcept { give(p); }
void operator delete(void* p, std::align_val_t) noexcept { give(p); }
void operator delete[](void* p, std::align_val_t) noexcept { give(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { give(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { give(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { give(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { give(p); }
