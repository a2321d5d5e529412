// When a solver is to stop.
//
// Thread safety: a Stop is read only. With a deadline the answer depends on the machine; without one it does not, and the clock
// is never read.
#pragma once

#include <chrono>
#include <cstdint>
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

/// How far one of several searches that run at once has come, and what the others have to say to that.
class Pace {
 public:
  virtual ~Pace() = default;
  /// `steps` are done; is the search to end? Asked as often as the clock.
  virtual bool is_over(std::uint64_t steps) = 0;
};

}  // namespace plan
}  // namespace v0
}  // namespace ashlar
