// When a solver has to stop.
//
// Thread safety: a StopCondition is immutable; any thread may ask it. A SearchMonitor says itself.
// With a deadline the answer depends on the machine. Without one it does not, and the clock is
// never read.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

namespace ashlar::inline v0::plan::solve {

/// Met at a deadline, or when a flag is set, whichever is first. By default it is never met.
class StopCondition {
 public:
  using Clock = std::chrono::steady_clock;
  StopCondition() = default;
  explicit StopCondition(Clock::time_point deadline) : deadline_(deadline) {}
  /// The same deadline, and also met as soon as `*flag` is true. `flag` outlives the result.
  StopCondition or_when(const std::atomic<bool>* flag) const {
    StopCondition either = *this;
    either.flag_ = flag;
    return either;
  }

  /// Reads the clock if there is a deadline: ask once every few microseconds of work.
  bool is_met() const {
    return (flag_ != nullptr && flag_->load(std::memory_order_relaxed)) ||
           (deadline_ && Clock::now() >= *deadline_);
  }

 private:
  std::optional<Clock::time_point> deadline_;
  const std::atomic<bool>* flag_ = nullptr;
};

/// Watches one of several searches that run at the same time, and may end it.
class SearchMonitor {
 public:
  virtual ~SearchMonitor() = default;
  /// Reports that the run has done `steps` steps; returns whether it has to stop. Called as often
  /// as a StopCondition would be asked.
  virtual bool should_stop(std::uint64_t steps) = 0;
};

}  // namespace ashlar::inline v0::plan::solve
