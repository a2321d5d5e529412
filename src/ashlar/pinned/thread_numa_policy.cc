#include <ashlar/pinned/thread_numa_policy.h>

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <cerrno>

namespace ashlar::inline v0::pinned {
namespace {

constexpr int kPreferred = 1;  // MPOL_PREFERRED
// The kernel reads one bit less than it is told.
constexpr unsigned long kMaskBits = kNodesMax + 1;

/// The thread's policy. False if the kernel says nothing of it.
bool get_policy(int* mode, unsigned long* mask) noexcept {
#if defined(__linux__)
  return ::syscall(SYS_get_mempolicy, mode, mask, kMaskBits, nullptr, 0UL) == 0;
#else
  static_cast<void>(mode);
  static_cast<void>(mask);
  return false;
#endif
}

/// Sets it. 0, or the error's number.
int set_policy(int mode, const unsigned long* mask) noexcept {
#if defined(__linux__)
  return ::syscall(SYS_set_mempolicy, mode, mask, kMaskBits) == 0 ? 0 : errno;
#else
  static_cast<void>(mode);
  static_cast<void>(mask);
  return ENOSYS;
#endif
}

}  // namespace

ThreadNumaPolicy::ThreadNumaPolicy(int node) noexcept {
  if (node == kAnyNode) return;
  if (!get_policy(&mode_before_, mask_before_.data())) {
    status_ = {Code::kUnsupported, "the kernel says nothing of NUMA policies"};
    return;
  }
  NodeMask mask{};
  mask[static_cast<unsigned>(node) / kWordBits] |= 1UL << static_cast<unsigned>(node) % kWordBits;
  const int error = set_policy(kPreferred, mask.data());
  is_changed_ = error == 0;
  if (error == EINVAL) {
    status_ = {Code::kInvalidArgument, "no NUMA node has that number"};
  } else if (error != 0) {
    status_ = {Code::kUnsupported, "the kernel permits no NUMA policy"};
  }
}

ThreadNumaPolicy::~ThreadNumaPolicy() {
  // What was read can be set again; a refusal would leave the preference, which is harmless.
  if (is_changed_) static_cast<void>(set_policy(mode_before_, mask_before_.data()));
}

}  // namespace ashlar::inline v0::pinned
