#include <ashlar/pinned/touched_memory.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include <ashlar/base/checked.h>
#include <ashlar/base/host_pages.h>
#include <ashlar/base/service_thread.h>
#include <ashlar/pinned/thread_numa_policy.h>

namespace ashlar::inline v0::pinned {
namespace {

constexpr std::size_t kSmallestPage = 4096;

/// A run of pages that one thread touches.
struct Share {
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
  int node = kAnyNode;
};

void touch(const Share& share) noexcept {
  // Written, because a read would get the kernel's one page of zeros.
  for (std::size_t at = 0; at < share.bytes; at += kSmallestPage)
    *static_cast<volatile std::byte*>(share.begin + at) = std::byte{0};
}

void touch_on_thread(const Share& share) noexcept {
  const ThreadNumaPolicy policy(share.node);
  touch(share);
}

}  // namespace

Bytes touched_size(Bytes size) noexcept { return round_up(size, Bytes{kHugePageBytes}); }

Result<Address> map_touched(Bytes size, unsigned threads, int node) noexcept {
  constexpr Status kNoMemory{Code::kOutOfMemory, "the host has no memory to lock"};
  const std::size_t bytes = touched_size(size).count();
  // Of this thread, which touches a share too. A node that does not exist shows here.
  const ThreadNumaPolicy policy(node);
  if (!policy.status().is_ok()) return policy.status();
  std::byte* const begin = reserve_pages(bytes);
  if (begin == nullptr) return kNoMemory;
  if (!commit_pages(begin, bytes)) {
    release_pages(begin, bytes);
    return kNoMemory;
  }
  advise_huge_pages(begin, bytes);
  // Whole huge pages each: two threads at one would wait for each other.
  const std::size_t huge = bytes / kHugePageBytes;
  const std::size_t shares = std::min<std::size_t>(threads, huge);
  std::array<Share, kTouchThreadsMax> share;
  std::array<ServiceThread, kTouchThreadsMax> thread;
  std::size_t from = 0;
  for (std::size_t i = 0; i < shares; ++i) {
    const std::size_t to = huge * (i + 1) / shares;
    share[i] = {begin + from * kHugePageBytes, (to - from) * kHugePageBytes, node};
    from = to;
    if (i + 1 == shares || !thread[i].start<touch_on_thread>(share[i])) touch(share[i]);
  }
  for (ServiceThread& each : thread) each.join();
  return Address::of(begin);
}

void unmap_touched(Address base, Bytes size) noexcept {
  release_pages(static_cast<std::byte*>(base.pointer()), touched_size(size).count());
}

}  // namespace ashlar::inline v0::pinned
