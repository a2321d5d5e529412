// Exceptions of the standard library, where the library meets them.
//
// Purpose: containers report by exceptions that the host has no memory, and a user's callback may
// throw. The library turns the first into typed values and passes the second on. Here alone stand
// the words that a compiler without exceptions (-fno-exceptions) refuses: in such a build there is
// nothing to catch, and where the standard library would throw it ends the process.
// Thread safety: pure functions.
#pragma once

#include <exception>
#include <new>
#include <stdexcept>
#include <utility>

namespace ashlar::inline v0 {

/// Calls f(). False if the host had no memory for a container in it.
template <class F>
bool with_host_memory(F&& f) {
#if defined(__cpp_exceptions)
  try {
    std::forward<F>(f)();
  } catch (const std::bad_alloc&) {
    return false;
  } catch (const std::length_error&) {  // more elements than any host's memory has room for
    return false;
  }
#else
  std::forward<F>(f)();
#endif
  return true;
}

/// Calls f(). What it threw, or null.
template <class F>
std::exception_ptr exception_of(F&& f) noexcept {
#if defined(__cpp_exceptions)
  try {
    std::forward<F>(f)();
  } catch (...) {
    return std::current_exception();
  }
#else
  std::forward<F>(f)();
#endif
  return nullptr;
}

/// For interfaces that demand it: throws std::bad_alloc, or ends the process.
[[noreturn]] inline void throw_bad_alloc() {
#if defined(__cpp_exceptions)
  throw std::bad_alloc();
#else
  std::terminate();
#endif
}

}  // namespace ashlar::inline v0
