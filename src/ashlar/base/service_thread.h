// A thread of the library's own.
//
// Purpose: it starts without an exception, and the process's signals are handled on the process's own
// threads.
// Thread safety: any thread.
#pragma once

#include <pthread.h>

#include <csignal>

namespace ashlar::inline v0 {

/// Starts run(argument) on a new thread, with all signals blocked there. False if the host has no room for
/// one. The caller joins it.
inline bool start_service_thread(pthread_t* thread, void* (*run)(void*), void* argument) noexcept {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const bool is_started = pthread_create(thread, nullptr, run, argument) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return is_started;
}

}  // namespace ashlar::inline v0
