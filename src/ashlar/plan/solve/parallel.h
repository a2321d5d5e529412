// Independent jobs on a few threads.
//
// Thread safety: concurrent calls are independent; the jobs of a call run at the same time. Which
// thread runs a job is not defined, so a result that has to be equal on every machine must not
// depend on it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include <ashlar/base/exceptions.h>

namespace ashlar::inline v0::plan::solve {

/// Calls job(0) .. job(count - 1), begun in that order, on up to `threads` threads, the caller's
/// among them; on fewer if the system cannot start more. After all threads have ended, rethrows the
/// first exception that a job threw; no job is begun after it. Throws std::bad_alloc.
template <class Job>
void for_each_job(unsigned threads, std::uint32_t count, const Job& job) {
  std::atomic<std::uint32_t> next{0};
  std::mutex mutex;
  std::exception_ptr thrown;
  const auto work = [&] {
    const std::exception_ptr own = exception_of([&] {
      for (std::uint32_t i = next++; i < count; i = next++) job(i);
    });
    if (!own) return;
    const std::lock_guard<std::mutex> lock(mutex);
    if (!thrown) thrown = own;
    next = count;
  };
  std::vector<std::thread> helpers;
  helpers.reserve(std::min(threads, count));
  // Where the system starts no more threads, or has no memory for one, fewer do the same work.
  static_cast<void>(exception_of([&] {
    while (helpers.size() + 1 < std::min(threads, count)) helpers.emplace_back(work);
  }));
  work();
  for (std::thread& helper : helpers) helper.join();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace ashlar::inline v0::plan::solve
