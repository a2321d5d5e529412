// Independent jobs on a few threads.
//
// Thread safety: one call to a caller; the jobs run at once. Which thread runs a job is nobody's to
// rely on: what is to be the same on every machine must be the same for any assignment.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace ashlar::inline v0::plan::solve {

/// Calls job(0) .. job(count - 1), begun in that order, on up to `threads` threads, the caller's
/// among them: fewer where the system has no more to give. Rethrows the first exception of a job,
/// after all have ended.
template <class Job>
void for_each_job(unsigned threads, std::uint32_t count, const Job& job) {
  std::atomic<std::uint32_t> next{0};
  std::mutex mutex;
  std::exception_ptr thrown;
  const auto work = [&] {
    try {
      for (std::uint32_t i = next++; i < count; i = next++) job(i);
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex);
      if (!thrown) thrown = std::current_exception();
      next = count;
    }
  };
  std::vector<std::thread> helpers;
  helpers.reserve(std::min(threads, count));
  try {
    while (helpers.size() + 1 < std::min(threads, count)) helpers.emplace_back(work);
  } catch (const std::exception&) {  // no more threads, or no memory for one
  }
  work();
  for (std::thread& helper : helpers) helper.join();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace ashlar::inline v0::plan::solve
