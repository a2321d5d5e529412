// When a solver is to stop.
//
// Thread safety: none. With a deadline the answer depends on the machine; without one it does not, and the clock is never
// read.
#pragma once

#include <chrono>
#include <optional>

namespace ashlar {
inline namespace v0 {
namespace plan {

class Stop {
 public:
  using Clock = std::chrono::steady_clock;
  Stop() = default;
  explicit Stop(Clock::time_point deadline) : deadline_(deadline) {}

  /// Is the time up? Reads the clock: ask every few microseconds of work.
  bool now() const { return deadline_ && Clock::now() >= *deadline_; }

 private:
  std::optional<Clock::time_point> deadline_;
};

}  // namespace plan
}  // namespace v0
}  // namespace ashlar
