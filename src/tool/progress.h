// A progress bar on stderr for long work: only on a terminal, only after half a second, gone when
// done.
//
// Thread safety: one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace ashlar::tool {

class Progress {
 public:
  /// Work of `total` units, named in the bar. Nothing is ever shown when stderr is no terminal.
  Progress(std::string what, std::uint64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// So many units are done. Cheap: looks at the clock once in 4096 calls.
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
