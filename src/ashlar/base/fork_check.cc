#include <ashlar/base/fork_check.h>

#include <pthread.h>

namespace ashlar::inline v0 {

std::atomic<unsigned> forks_survived{0};

namespace {
unsigned forks_seen() noexcept {
  static const bool registered = [] {
    return pthread_atfork(nullptr, nullptr,
                          [] { forks_survived.fetch_add(1, std::memory_order_relaxed); }) == 0;
  }();
  static_cast<void>(registered);
  return forks_survived.load(std::memory_order_relaxed);
}
}  // namespace

ForkCheck::ForkCheck() noexcept : at_birth_(forks_seen()) {}

}  // namespace ashlar::inline v0
