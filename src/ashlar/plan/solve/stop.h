// When a solver is to stop.
//
// Thread safety: a Stop is read only. With a deadline the answer depends on the machine; without
// one it does not, and the clock is never read.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

namespace ashlar::inline v0::plan::solve {

class Stop {
 public:
  using Clock = std::chrono::steady_clock;
  Stop() = default;
  explicit Stop(Clock::time_point deadline) : deadline_(deadline) {}
  /// The same deadline, or as soon as `is_over`, which outlives it.
  Stop or_when(const std::atomic<bool>* is_over) const {
    Stop stop = *this;
    stop.is_over_ = is_over;
    return stop;
  }

  /// Is the time up? Reads the clock: ask every few microseconds of work.
  bool now() const {
    return (is_over_ != nullptr && is_over_->load(std::memory_order_relaxed)) ||
           (deadline_ && Clock::now() >= *deadline_);
  }

 private:
  std::optional<Clock::time_point> deadline_;
  const std::atomic<bool>* is_over_ = nullptr;
};

/// How far one of several searches that run at once has come, and what the others have to say to
/// that.
class Pace {
 public:
  virtual ~Pace() = default;
  /// `steps` are done; is the search to end? Asked as often as the clock.
  virtual bool is_over(std::uint64_t steps) = 0;
};

}  // namespace ashlar::inline v0::plan::solve
