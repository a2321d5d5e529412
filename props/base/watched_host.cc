// The system calls and operators of an executable whose host is watched (watched_host.h).
#include "props/base/watched_host.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <map>
#include <new>
#include <ostream>

namespace ashlar::props {

WatchedHost watched;

std::ostream& operator<<(std::ostream& out, const HostEvent& event) {
  constexpr const char* kNames[kHostCalls] = {"reserve", "commit", "move",    "release",
                                              "advise",  "new[]",  "delete[]"};
  return out << kNames[static_cast<std::size_t>(event.call)] << " 0x" << std::hex << event.begin
             << std::dec << " + " << event.bytes << " (" << event.other << ')'
             << (event.is_refused ? " refused" : "");
}

}  // namespace ashlar::props

namespace {

using ashlar::props::HostCall;
using ashlar::props::HostEvent;
using ashlar::props::watched;

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kPage = 4096;

std::uintptr_t number(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }
void* as_pointer(long result) { return reinterpret_cast<void*>(result); }
void* map_anywhere(void* at, std::size_t bytes, int protection, int flags, int file, off_t offset) {
  return as_pointer(::syscall(SYS_mmap, at, bytes, protection, flags, file, offset));
}
/// Writes the call down. True if the host refuses it.
bool note(HostEvent event) {
  event.is_refused = watched.refuses(event.call);
  watched.events.push_back(event);
  return event.is_refused;
}

/// Addresses that begin so far past a huge page's beginning.
std::uintptr_t map_misaligned(std::size_t bytes, int protection, int flags, std::size_t past) {
  void* const wide = map_anywhere(nullptr, bytes + 2 * kHugePage, protection, flags, -1, 0);
  if (wide == MAP_FAILED) return 0;
  const std::uintptr_t first = number(wide);
  const std::uintptr_t begin = (first + kHugePage - 1) / kHugePage * kHugePage + past;
  if (begin > first) ::syscall(SYS_munmap, first, begin - first);
  const std::uintptr_t end = first + bytes + 2 * kHugePage;
  if (end > begin + bytes) ::syscall(SYS_munmap, begin + bytes, end - begin - bytes);
  return begin;
}

std::map<std::uintptr_t, std::size_t>& allocations() {
  static std::map<std::uintptr_t, std::size_t> sizes;
  return sizes;
}

}  // namespace

extern "C" {

void* mmap(void* at, std::size_t bytes, int protection, int flags, int file,
           off_t offset) noexcept {
  if (!watched.is_watched) return map_anywhere(at, bytes, protection, flags, file, offset);
  // "The fd argument is ignored; however, some implementations require fd to be -1" (mmap(2)).
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  const bool is_as_meant = at == nullptr && bytes > 0 && protection == PROT_NONE &&
                           flags == kFlags && file == -1 && offset == 0;
  watched.misuses += !is_as_meant;
  std::size_t past = 0;
  if (!watched.misaligned_by.empty()) {
    past = watched.misaligned_by.front();
    watched.misaligned_by.erase(watched.misaligned_by.begin());
  }
  if (watched.refuses(HostCall::kReserve)) {
    watched.events.push_back({HostCall::kReserve, 0, bytes, 0, true});
    errno = ENOMEM;
    return MAP_FAILED;
  }
  const std::uintptr_t begin =
      watched.pretends ? kHugePage + past : map_misaligned(bytes, protection, flags, past);
  watched.events.push_back({HostCall::kReserve, begin, bytes, 0, begin == 0});
  return begin == 0 ? MAP_FAILED : reinterpret_cast<void*>(begin);
}

int munmap(void* begin, std::size_t bytes) noexcept {
  if (watched.is_watched) {
    watched.misuses += bytes == 0 || bytes % kPage != 0 || number(begin) % kPage != 0;
    note({HostCall::kRelease, number(begin), bytes});
    if (watched.pretends) return 0;
  }
  return static_cast<int>(::syscall(SYS_munmap, begin, bytes));
}

int mprotect(void* begin, std::size_t bytes, int protection) noexcept {
  if (watched.is_watched) {
    watched.misuses += protection != (PROT_READ | PROT_WRITE) || bytes % kPage != 0;
    if (note({HostCall::kCommit, number(begin), bytes})) {
      errno = ENOMEM;
      return -1;
    }
  }
  return static_cast<int>(::syscall(SYS_mprotect, begin, bytes, protection));
}

void* mremap(void* from, std::size_t bytes, std::size_t bytes_after, int flags, ...) noexcept {
  std::va_list arguments;
  va_start(arguments, flags);
  void* const to = (flags & MREMAP_FIXED) != 0 ? va_arg(arguments, void*) : nullptr;
  va_end(arguments);
  if (watched.is_watched) {
    watched.misuses += bytes != bytes_after || bytes == 0 || number(to) % kHugePage != 0;
    if (note({HostCall::kMove, number(from), bytes, number(to)})) {
      errno = EFAULT;
      return MAP_FAILED;
    }
  }
  return as_pointer(::syscall(SYS_mremap, from, bytes, bytes_after, flags, to));
}

int madvise(void* begin, std::size_t bytes, int advice) noexcept {
  if (watched.is_watched) {
    watched.misuses += advice != MADV_HUGEPAGE;
    note({HostCall::kAdvise, number(begin), bytes});
  }
  return static_cast<int>(::syscall(SYS_madvise, begin, bytes, advice));
}

}  // extern "C"

void* operator new[](std::size_t bytes, std::align_val_t at, const std::nothrow_t&) noexcept {
  const auto alignment = static_cast<std::size_t>(at);
  if (watched.is_watched && watched.refuses(HostCall::kNew)) {
    watched.events.push_back({HostCall::kNew, 0, bytes, alignment, true});
    return nullptr;
  }
  void* const memory =
      std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (watched.is_watched) {
    watched.events.push_back({HostCall::kNew, number(memory), bytes, alignment, false});
    allocations()[number(memory)] = bytes;
  }
  return memory;
}

void operator delete[](void* memory, std::align_val_t at) noexcept {
  if (watched.is_watched) {
    const auto found = allocations().find(number(memory));
    const bool is_known = found != allocations().end();
    watched.events.push_back({HostCall::kDelete, number(memory), is_known ? found->second : 0,
                              static_cast<std::size_t>(at)});
    if (is_known) allocations().erase(found);
  }
  std::free(memory);
}
