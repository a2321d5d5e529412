// A progress bar on stderr for long work: shown only on a terminal and only after half a second, and
// removed when the work is done.
//
// Thread safety: one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace ashlar::tool {

class Progress {
 public:
  /// Begins work of `total` units; `what` names it in the bar. Nothing is shown unless stderr is a
  /// terminal.
  Progress(std::string what, std::uint64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// Reports that `done` units are done. Cost: reads the clock once in 4096 calls.
  void at(std::uint64_t done) {
    if (is_terminal_ && (++calls_ & 0xfff) == 0) show(done);
  }

 private:
  void show(std::uint64_t done);

  const std::string what_;
  const std::uint64_t total_;
  const bool is_terminal_;
  bool is_shown_ = false;
  std::uint32_t calls_ = 0;
  const std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace ashlar::tool
