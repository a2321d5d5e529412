#include <ashlar/pinned/thread_numa_policy.h>

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#endif

namespace ashlar::inline v0::pinned {

#if defined(__linux__)

namespace {

constexpr int kPreferred = 1;  // MPOL_PREFERRED
// The kernel reads one bit less than it is told.
constexpr unsigned long kMaskBits = kNodesMax + 1;

}  // namespace

ThreadNumaPolicy::ThreadNumaPolicy(int node) noexcept {
  if (node == kAnyNode) return;
  if (node < 0 || node >= kNodesMax) {
    status_ = {Code::kInvalidArgument, "no NUMA node has that number"};
    return;
  }
  if (::syscall(SYS_get_mempolicy, &mode_before_, mask_before_.data(), kMaskBits, nullptr, 0UL) !=
      0) {
    status_ = {Code::kUnsupported, "the kernel says nothing of NUMA policies"};
    return;
  }
  NodeMask mask{};
  mask[static_cast<unsigned>(node) / kWordBits] |= 1UL << static_cast<unsigned>(node) % kWordBits;
  if (::syscall(SYS_set_mempolicy, kPreferred, mask.data(), kMaskBits) == 0) {
    is_changed_ = true;
  } else {
    status_ = errno == EINVAL ? Status{Code::kInvalidArgument, "no NUMA node has that number"}
                              : Status{Code::kUnsupported, "the kernel permits no NUMA policy"};
  }
}

ThreadNumaPolicy::~ThreadNumaPolicy() {
  // What was read can be set again; a refusal would leave the preference, which is harmless.
  if (is_changed_)
    static_cast<void>(::syscall(SYS_set_mempolicy, mode_before_, mask_before_.data(), kMaskBits));
}

#else

ThreadNumaPolicy::ThreadNumaPolicy(int node) noexcept {
  if (node != kAnyNode) status_ = {Code::kUnsupported, "no NUMA policies on this platform"};
}
ThreadNumaPolicy::~ThreadNumaPolicy() = default;

#endif

}  // namespace ashlar::inline v0::pinned
