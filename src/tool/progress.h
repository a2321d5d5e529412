// A line on stderr that shows how far long work is: the one implementation behind every command.
//
// Shown only on a terminal (TERM=dumb counts as none), only once the command has run for half a second,
// and removed when the work is done. It has no colour. A thread of its own draws it, so that the time
// goes on while the work says nothing; without a terminal there is no thread.
// Thread safety: at() and note() may be called from any thread; one Progress at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace ashlar::tool {

class Progress {
 public:
  /// Begins work of `total` units, 0 if that is not known; `what` names it. May throw std::bad_alloc,
  /// as may note(). Where no thread can be made, nothing is shown.
  explicit Progress(std::string what, std::uint64_t total = 0);
  /// Begins work that ends when `limit` has passed, or before.
  Progress(std::string what, std::chrono::nanoseconds limit);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Reports that `done` units are done. Cost: one store.
  void at(std::uint64_t done) { done_.store(done, std::memory_order_relaxed); }
  /// Says more behind the name, such as the best result so far.
  void note(std::string text);
  /// Removes the line, and keeps it away while the result lives: for what is printed meanwhile.
  std::unique_lock<std::mutex> hidden();

 private:
  using Clock = std::chrono::steady_clock;

  void start();
  void run();
  void draw();
  void erase();

  const std::string what_;
  const std::uint64_t total_ = 0;
  const std::optional<std::chrono::nanoseconds> limit_;
  const Clock::time_point start_ = Clock::now();
  std::atomic<std::uint64_t> done_{0};
  std::mutex mutex_;  // of all below but the thread
  std::condition_variable ended_;
  std::string note_;
  bool is_over_ = false;
  bool is_shown_ = false;
  std::thread thread_;
};

}  // namespace ashlar::tool
