// A thread of the library's own.
//
// Purpose: it starts without an exception, and the process's signals are handled on the process's own
// threads.
// Thread safety: a plain value; whoever holds it guards it.
#pragma once

#include <pthread.h>

#include <csignal>
#include <functional>

namespace ashlar::inline v0 {

class ServiceThread {
 public:
  /// Calls kBody on `object` on a new thread, with all signals blocked there. False if the host has no room for
  /// one. REQUIRES: none is running. `object` outlives the thread.
  template <auto kBody, class T>
  bool start(T& object) noexcept {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const auto run = [](void* of) noexcept -> void* {
      std::invoke(kBody, *static_cast<T*>(of));
      return nullptr;
    };
    is_running_ = pthread_create(&thread_, nullptr, run, &object) == 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return is_running_;
  }
  /// Was it started, and not joined?
  bool is_running() const noexcept { return is_running_; }
  /// Waits for its end. No effect where it does not run.
  void join() noexcept {
    if (is_running_) static_cast<void>(pthread_join(thread_, nullptr));
    is_running_ = false;
  }

 private:
  pthread_t thread_{};
  bool is_running_ = false;
};

}  // namespace ashlar::inline v0
